import pytest

from tracediag.kindnames import COPIES, KERNELS, RUNTIME, TENSORFLOW, TORCH
from tracediag.kinds import KINDS, PHASES, kind_of, merge_device_kind, scope_phase


def test_every_pattern_belongs_to_a_kind_of_the_vocabulary():
    assert {kind for family in (COPIES, KERNELS, RUNTIME, TENSORFLOW, TORCH) for kind, _ in family} <= set(KINDS)


@pytest.mark.parametrize(
    ("name", "role", "framework", "kind"),
    [
        ("aten::addmm", "op", "torch", "matmul"),
        ("aten::convolution_backward", "op", "torch", "conv"),
        ("aten::embedding_dense_backward", "op", "torch", "embedding_grad"),
        ("aten::embedding", "op", "torch", "embedding_lookup"),
        ("aten::add_", "op", "torch", "elementwise"),
        ("aten::item", "op", "torch", "sync"),
        ("aten::native_layer_norm", "op", "torch", "norm"),
        ("aten::_scaled_dot_product_flash_attention", "op", "torch", "attention"),
        ("Optimizer.step#Adam.step", "annotation", "torch", "optimizer_update"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "annotation", "torch", "input_wait"),
        ("my own op", "op", "torch", None),
        ("MatMul", "op", "tensorflow", "matmul"),
        ("ResourceSparseApplyAdam", "op", "tensorflow", "optimizer_update"),
        ("ReadVariableOp", "op", "tensorflow", "variable_read"),
        ("ResourceGather", "op", "tensorflow", "embedding_lookup"),
        ("UnsortedSegmentSum", "op", "tensorflow", "embedding_grad"),
        ("IteratorGetNext", "op", "tensorflow", "input_wait"),
        ("SoftmaxCrossEntropyWithLogits", "op", "tensorflow", "loss"),
        ("dot_general", "op", "jax", "matmul"),
        ("cudaLaunchKernel", "runtime", "torch", "launch"),
        ("cudaMemcpyAsync", "runtime", "torch", "launch"),
        ("cudaMemcpy", "runtime", "torch", "sync"),
        ("cudaStreamSynchronize", "runtime", "torch", "sync"),
        ("hipFree", "runtime", "torch", "alloc"),
        ("cuModuleLoadData", "runtime", "torch", "compile"),
        ("ampere_sgemm_128x64_tn", "kernel", "torch", "matmul"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "kernel", "torch", "collective"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >", "kernel", "torch", "elementwise"),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits>", "kernel", "torch", "attention"),
        ("Memcpy HtoD (Pinned -> Device)", "copy", "torch", "copy_h2d"),
        ("MemcpyD2H", "copy", "tensorflow", "copy_d2h"),
        ("Memset (Device)", "memset", "torch", "memset"),
        ("train.py(3): step", "python", "torch", "python"),
    ],
)
def test_kind_of_a_name(name, role, framework, kind):
    assert kind_of(name, role, framework) == kind


@pytest.mark.parametrize(
    ("own", "launcher", "kind"),
    [
        (None, "conv", "conv"),
        (None, "sync", None),
        (None, None, None),
        ("matmul", "conv", "conv"),
        ("matmul", "loss", "matmul"),
        ("elementwise", "optimizer_update", "optimizer_update"),
        ("reduction", "softmax", "softmax"),
        ("elementwise", "matmul", "elementwise"),
        ("copy_d2d", "index", "copy_d2d"),
        ("collective", "elementwise", "collective"),
    ],
)
def test_kind_of_a_kernel_and_its_operator(own, launcher, kind):
    assert merge_device_kind(own, launcher) == kind


@pytest.mark.parametrize(
    ("name", "label", "kind", "role", "phase"),
    [
        ("MatMul", "gradient_tape/model/dense/MatMul", "matmul", "op", "backward"),
        ("Mul", "adam/mul_1", "elementwise", "op", "optimizer"),
        ("Mul", "StatefulPartitionedCall/adam_w/mul_1", "elementwise", "op", "optimizer"),
        ("Mul", "StatefulPartitionedCall/rm_sprop_1/mul", "elementwise", "op", "optimizer"),
        ("Mul", "schedule_free_adam_w/mul", "elementwise", "op", "optimizer"),
        ("Mul", "loss_scale_optimizer/mul", "elementwise", "op", "optimizer"),
        ("Mul", "madam/mul", "elementwise", "op", None),
        ("Mul", "model/adamant/mul", "elementwise", "op", None),
        ("Mul", "StatefulPartitionedCall/Adam_1/mul", "elementwise", "op", "optimizer"),
        ("ResourceApplyAdam", None, "optimizer_update", "op", "optimizer"),
        ("autograd::engine::evaluate_function: MmBackward0", None, None, "op", "backward"),
        ("Optimizer.zero_grad#SGD.zero_grad", None, "optimizer_update", "annotation", "optimizer"),
        ("aten::mm", None, "matmul", "op", None),
        ("anything", None, "input_wait", "op", "input"),
        ("anything", None, "collective", "kernel", "comm"),
    ],
)
def test_phase_that_an_op_proves(name, label, kind, role, phase):
    assert scope_phase(name, label, kind, role) == phase
    assert phase is None or phase in PHASES


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aclnnMm_MatMulCommon_MatMulV2", "matmul"), ("aclnnMm_CastAiCore_Cast", "cast"), ("aclnnMm_TransData_TransData", "layout"),
        ("Conv2DBackpropFilter6", "conv"), ("Conv2DBackpropFilter6_MemSet", "memset"), ("aclnnAdd_AxpyAiCore_Axpy", "elementwise"),
        ("Im3d2Col", "conv"), ("convolution fusion", "conv"), ("loop fusion", "elementwise"), ("copy-done", "copy_d2d"),
        ("dynamic-update-slice", "index"), ("rng-bit-generator", "random"), ("infeed", "input_wait"), ("all-to-all", "collective"),
        ("concatenate", "layout"), ("exponential", "elementwise"), ("while", None), ("log_softmax_kernel", "softmax"),
    ],
)  # fmt: skip
def test_names_of_other_accelerators_and_of_hlo(name, kind):
    assert kind_of(name, "kernel", "jax") == kind
