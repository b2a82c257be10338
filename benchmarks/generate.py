"""Write a large synthetic trace: `python benchmarks/generate.py SIZE_MB --format kineto|xplane --seed N FILE`.

The same arguments give the same bytes. No step repeats another: batch, shapes, kernels, durations and ids differ. The layout is that of
the real writers (torch.profiler's export of today: host events first, then launches, device work and flows). Memory stays small.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import IO, TYPE_CHECKING

from generate_xplane import write_xplane

if TYPE_CHECKING:
    from collections.abc import Callable

PID, MAIN, BACKWARD = 4011, 4011, 4077
START_US = 6_027_413_646_000.0
BASE_NS = 1_727_743_122_000_000_000
LAYERS = 24
KERNELS = 30
_HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42346610688,
      "computeMajor": 8, "computeMinor": 0,
      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
      "regsPerBlock": 65536, "warpSize": 32,
      "sharedMemPerBlock": 49152, "numSms": 108
    }
  ],
  "record_shapes": 1,
  "with_stack": 0,
  "profile_memory": 1,
  "traceEvents": [
"""
_TAIL = """
  ],
  "traceName": "rank0.pt.trace.json",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": %d
}"""
_EVENT = """  {
    "ph": "X", "cat": "%s", "name": "%s", "pid": %d, "tid": %d,
    "ts": %.3f, "dur": %.3f,
    "args": {
      %s
    }
  }"""
_FLOW = """  {
    "ph": "%s", "id": %d, "pid": %d, "tid": %d, "ts": %.3f,
    "cat": "%s", "name": "%s"%s
  }"""
_MEMORY = """  {
    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",
    "pid": %d, "tid": %d,
    "ts": %.3f,
    "args": {
      "Total Reserved": %d, "Total Allocated": %d, "Bytes": %d, "Addr": %d, "Device Id": 0, "Device Type": 1, "Ev Idx": %d
    }
  }"""
_METADATA = """  {
    "name": "thread_name", "ph": "M", "ts": %.3f, "pid": %d, "tid": %d,
    "args": {
      "name": "thread %d (%s)"
    }
  }"""
_KERNEL = (
    '"External id": %d,      "queued": 0, "device": 0, "context": 1,      "stream": %d, "correlation": %d,      '
    '"registers per thread": %d,      "shared memory": %d,      "blocks per SM": %.6f,      "warps per SM": %.6f,      '
    '"grid": [%d, %d, 1],      "block": [%d, 1, 1],      "est. achieved occupancy %%": %d'
)
_FORWARD = (
    "aten::linear",
    "aten::layer_norm",
    "aten::gelu",
    "aten::dropout",
    "aten::add",
    "aten::scaled_dot_product_attention",
    "aten::softmax",
)
_INNER = {
    "aten::linear": ("aten::t", "aten::addmm"),
    "aten::layer_norm": ("aten::native_layer_norm",),
    "aten::scaled_dot_product_attention": ("aten::transpose", "aten::_flash_attention_forward"),
    "aten::softmax": ("aten::_softmax",),
}
_NO_KERNEL = ("aten::t", "aten::transpose", "aten::empty", "aten::view")
_FAMILIES = (
    "ampere_sgemm_{a}x{b}_tn",
    (
        "void at::native::vectorized_elementwise_kernel<{c}, at::native::CUDAFunctor_add<float>, std::array<char*, {d}ul> >"
        "(int, at::native::CUDAFunctor_add<float>, std::array<char*, {d}ul>)"
    ),
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, {d}, false, false>(float*, float const*, int, int, int)",
    "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize{a}x{b}x32_stage{c}_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
    (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<{c}>, "
        "at::native::(anonymous namespace)::FusedAdamMathFunctor<float, {d}> >"
    ),
    "triton_poi_fused_add_gelu_{e}",
)


class KinetoStep:
    """The events of one training step as text: `host` and `device`, in the order of the file. Ids of a step follow from its number."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = random.Random(f"{seed}/{number}")
        self.clock = START_US + number * 90_000.0 + self.random.random() * 500
        self.busy = self.clock + 40
        self.ids = 1 + number * 1500
        self.correlation = 7 + number * 2000
        self.batch = self.random.randrange(8, 129)
        self.width = 64 * self.random.randrange(2, 17)
        self.host: list[str] = []
        self.device: list[str] = []
        self.thread = MAIN
        begin = self.clock
        self._annotation(f"ProfilerStep#{number}", begin, 88_000.0)
        self.forward = [self._operator(_FORWARD[i % len(_FORWARD)], i) for i in range(LAYERS * self.random.randrange(6, 9))]
        self.thread = BACKWARD
        for i in reversed(range(len(self.forward))):
            self._backward(i)
        self.thread = MAIN
        self._optimizer()

    def _annotation(self, name: str, start: float, length: float) -> None:
        self.ids += 1
        text = f'"External id": {self.ids},"Record function id": 0, "Ev Idx": {self.ids - 2}'
        self.host.append(_EVENT % ("user_annotation", name, PID, self.thread, start, length, text))

    def _shapes(self, layer: int) -> tuple[str, str]:
        rows, inner = self.batch, self.width + 64 * (layer % 5)
        sizes = (f"[{rows}, {128 + layer % 7}, {inner}]", f"[{inner}, {self.width}]", f"[{self.width}]", "[]", "[]")
        strides = (f"[{inner * 128}, {inner}, 1]", f"[{self.width}, 1]", "[1]", "[]", "[]")
        count = 2 + layer % 4
        return f"[{', '.join(sizes[:count])}]", f"[{', '.join(strides[:count])}]"

    def _args(self, layer: int, sequence: int) -> str:
        self.ids += 1
        shapes, strides = self._shapes(layer)
        count = 2 + layer % 4
        kinds = ", ".join(('"float"', '"float"', '"float"', '"Scalar"', '""')[:count])
        values = ", ".join(('""', '""', '""', f'"{layer % 11}"', '"False"')[:count])
        forward = f'"Sequence number": {sequence}, "Fwd thread id": {int(self.thread == BACKWARD)}, ' if sequence >= 0 else ""
        return (
            f'"External id": {self.ids},"Record function id": 0, {forward}"Concrete Inputs": [{values}], "Input type": [{kinds}], '
            f'"Input Strides": {strides}, "Input Dims": {shapes}, "Ev Idx": {self.ids - 2}'
        )

    def _operator(self, name: str, layer: int) -> tuple[int, float]:
        """One operator, what it calls, and its kernels; returns its sequence number and start."""
        start, sequence = self.clock, self.ids * 3
        self.clock += 2 + self.random.random() * 6
        text, at = self._args(layer, sequence), len(self.host)
        for inner in _INNER.get(name, (name.removesuffix("_") + "_",)):
            begin, inner_text, here = self.clock, self._args(layer, sequence if self.thread == MAIN else -1), len(self.host)
            self.clock += 1 + self.random.random() * 4
            if self.random.random() < 0.3:
                self._allocate()
            if inner not in _NO_KERNEL:
                self._launch(layer)
            self.clock += 1 + self.random.random()
            self.host.insert(here, _EVENT % ("cpu_op", inner, PID, self.thread, begin, self.clock - begin, inner_text))
        self.clock += 1 + self.random.random() * 3
        self.host.insert(at, _EVENT % ("cpu_op", name, PID, self.thread, start, self.clock - start, text))
        self.clock += self.random.random() * 4
        return sequence, start

    def _backward(self, layer: int) -> None:
        sequence, forward = self.forward[layer]
        name = f"{_FORWARD[layer % len(_FORWARD)].split('::')[1].title().replace('_', '')}Backward0"
        start, at = self.clock, len(self.host)
        self.clock += 2
        self._operator(name, layer)
        self.clock += 1 + self.random.random()
        text = self._args(layer, sequence)
        self.host.insert(
            at, _EVENT % ("cpu_op", f"autograd::engine::evaluate_function: {name}", PID, BACKWARD, start, self.clock - start, text)
        )
        if layer % 2 == 0:
            self.host.append(_FLOW % ("s", sequence, PID, MAIN, forward, "fwdbwd", "fwdbwd", ""))
            self.host.append(_FLOW % ("f", sequence, PID, BACKWARD, start, "fwdbwd", "fwdbwd", ', "bp": "e"'))

    def _optimizer(self) -> None:
        start, at = self.clock, len(self.host)
        for i in range(12):
            self._operator("aten::_foreach_add" if i % 3 else "aten::_fused_adam_", i)
        rest = self.host[at:]
        del self.host[at:]
        self._annotation("Optimizer.step#Adam.step", start, self.clock - start)
        self.host += rest

    def _allocate(self) -> None:
        size = 512 * self.random.randrange(1, 1 << 16)
        self.host.append(
            _MEMORY % (PID, self.thread, self.clock, 20 << 30, self.random.randrange(1 << 34), size, 140 << 40 | self.ids << 9, self.ids)
        )

    def _launch(self, layer: int) -> None:
        """A runtime call, its kernel (a copy now and then), and the flow between them."""
        rng = self.random
        self.correlation += rng.randrange(1, 4)
        number, external = self.correlation, self.ids
        call = self.clock
        self.clock += 3 + rng.random() * 5
        self.busy = max(self.busy, self.clock) + rng.random()
        length = 2 + rng.random() * 40
        stream = 7 if rng.random() < 0.9 else 20
        if rng.random() < 0.06:
            call_name, kind, name = "cudaMemcpyAsync", "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)"
            size = rng.randrange(1 << 24)
            text = (
                f'"External id": {external},      "device": 0, "context": 1,      "stream": {stream}, "correlation": {number},      '
                f'"bytes": {size}, "memory bandwidth (GB/s)": {size / length / 1e3:.14f}'
            )
        else:
            call_name, kind, name = "cudaLaunchKernel", "kernel", _kernel_name(layer % KERNELS, self.batch // 8, self.thread == BACKWARD)
            config = (layer % KERNELS * 7919 + self.batch * 104_729 + self.width * 613) & 0xFFFF  # the same for the same work
            grid, block = 1 + config % 3989, 32 * (1 + config % 16)
            text = _KERNEL % (
                external, stream, number, 16 + config % 239, 1024 * (config % 47), grid / 108, grid / 108 * block / 32, grid,
                1 + config % 2, block, config % 101,
            )  # fmt: skip
        begin = self.busy
        self.busy += length
        self.device += (
            _EVENT % (kind, name, 0, stream, begin, length, text),
            _FLOW % ("f", number, 0, stream, begin, "ac2g", "ac2g", ', "bp": "e"'),
            _EVENT % (
                "cuda_runtime", call_name, PID, self.thread, call, self.clock - call - 1,
                f'"External id": {external},      "cbid": 211, "correlation": {number}',
            ),
            _FLOW % ("s", number, PID, self.thread, call, "ac2g", "ac2g", ""),
        )  # fmt: skip


def _kernel_name(layer: int, batch: int, backward: bool) -> str:
    pick = layer * 31 + batch * 7 + backward
    return _FAMILIES[layer % len(_FAMILIES)].format(a=32 << layer % 4, b=32 << pick % 4, c=1 + pick % 8, d=1 + pick % 7, e=pick % 400)


def write_kineto(file: IO[bytes], size: int, seed: int) -> None:
    """A torch.profiler trace of about `size` bytes: the host part of all steps, then their device part, each made anew in its turn."""
    first = [KinetoStep(seed, number) for number in range(16)]
    one = sum(len(text) + 2 for step in first for text in (*step.host, *step.device)) / len(first)
    steps = max(3, round(size / one))
    file.write(_HEAD.encode())
    for part in ("host", "device"):
        for number in range(steps):
            file.write((",\n".join(getattr(KinetoStep(seed, number), part)) + ",\n").encode())
    names = [_METADATA % (START_US, PID, thread, thread, name) for thread, name in ((MAIN, "python"), (BACKWARD, "pt_autograd_0"))]
    file.write(",\n".join(names).encode() + (_TAIL % BASE_NS).encode())


_WRITERS: dict[str, Callable[[IO[bytes], int, int], None]] = {"kineto": write_kineto, "xplane": write_xplane}


def generate(path: Path | str, megabytes: float, kind: str = "kineto", seed: int = 0) -> Path:
    """Write a trace of about `megabytes` (10**6 bytes) of the format `kind` (kineto or xplane) to `path`; returns it."""
    place = Path(path)
    with place.open("wb") as file:
        _WRITERS[kind](file, round(megabytes * 1e6), seed)
    return place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("megabytes", type=float)
    parser.add_argument("path", type=Path)
    parser.add_argument("--format", choices=sorted(_WRITERS), default="kineto")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    made = generate(given.path, given.megabytes, given.format, given.seed)
    print(f"{made}: {made.stat().st_size} bytes")


if __name__ == "__main__":
    main()
