"""Hand-made reports that the tests of the renderers share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tracediag.findings import Finding, Fix, Place, Report, Speedup

FINDING = Finding(
    rule="emb-dense-grad-torch",
    code="E03",
    title="Dense gradient of an embedding table",
    category="embedding",
    severity="high",
    confidence="likely",
    share=0.61803398875,
    speedup=Speedup(2.1, 3.44),
    message="Every step fills and applies a gradient of 200000 x 64 although a batch touches 1024 rows.",
    where=(Place("train.py", 31, "main"), Place("model.py", 7)),
    evidence=(
        {
            "shapes": "[[1024,64],[1024]]",
            "op": "aten::embedding_dense_backward",
            "kind": "embedding_grad",
            "count_per_step": 1.0,
            "ms_per_step": 12.3456789,
        },
        {
            "op": "aten::_foreach_addcdiv_",
            "kind": "optimizer_update",
            "count_per_step": 2,
            "ms_per_step": 8.5,
            "shapes": None,
            "note": "fact",
        },
    ),
    why="nn.Embedding makes a gradient as large as its table. Adam then reads and writes all rows of the table and of both moments.",
    fix=(
        Fix(
            "torch",
            "Ask for a sparse gradient and use an optimizer that reads only its rows.",
            "emb = nn.Embedding(V, D, sparse=True)\nopt = SparseAdam(emb.parameters())",
        ),
        Fix("any", "Or shrink the table.", None),
    ),
    changes_training="moments of untouched rows no longer decay",
    references=("https://pytorch.org/docs/stable/generated/torch.nn.Embedding.html",),
    also=("opt-step-dominant",),
    fingerprint="emb-dense-grad-torch:[200000,64]",
)
QUIET = replace(
    FINDING,
    rule="float64",
    code="P03",
    title="Float64 arithmetic",
    severity="low",
    share=0.021,
    speedup=None,
    where=(),
    evidence=(),
    also=(),
    changes_training=None,
)


def report(*findings: Finding, **changes: Any) -> Report:
    """A report of a torch run with the given findings; `changes` replace whole fields."""
    first = next((f for f in findings if f.severity in ("high", "medium")), None)
    told = f"{first.title}: most of the step." if first else "Nothing owns 5 % of the step."
    base = Report(
        tool={"name": "tracediag", "version": "0.1.0", "rules": 22},
        inputs=({"path": "rank0.pt.trace.json.gz", "format": "kineto", "framework": "torch", "bytes": 51234, "events": 12345, "rank": 0},),
        run={
            "framework": "torch",
            "versions": {"torch": "2.13.0", "python": "3.11.7"},
            "devices": [{"device": "cuda:0", "name": "NVIDIA A100", "type": "gpu"}],
        },
        health=({"id": "short-trace", "level": "warning", "message": "the trace holds 3 steps", "effect": "shares are rough"},),
        subject={"script": "train.py", "framework": "torch", "kind": "training"},
        steps={
            "count": 10,
            "median_ms": 21.4,
            "mad_ms": 0.31,
            "unprofiled_median_ms": 19.5,
            "unprofiled_mean_ms": 19.8,
            "found_by": "optimizer",
        },
        device={"kernels": 3412, "busy_ms": 88.0, "busy_share": 0.41, "window_ms": 214.0},
        breakdown=(
            {"phase": "forward", "host_ms": 1.0, "device_ms": 4.0, "idle_ms": 0.5, "share": 0.257009},
            {"phase": None, "host_ms": 10.0, "device_ms": 0.0, "idle_ms": 5.9, "share": 0.742991},
        ),
        findings=findings,
        skipped=({"rule": "tf-retrace", "reason": "needs functions"},),
        verdict={"rule": first.rule if first else None, "text": told},
    )
    return replace(base, **changes)


EVIL = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> ![i](https://evil.example/x.png) [l](javascript:alert(3)) @octocat "
    "a@evil.example fixes #123 closes GH-7 resolves octo/repo#9 https://evil.example/ www.evil.example :shipit: $x^2$ `tick` ``two`` "
    "| a\\|b | **b** __u__ deadbeef1234567 </details> <!-- x --> --> ]]> &lt; {0} %s ${7*7} {{7*7}}"
)
"""A name that tries everything at once."""
HOSTILE = replace(
    FINDING,
    title="[bold]x[/bold] \x1b[31mred\x1b[0m @octocat fixes #1 | <b>",
    message=f"{EVIL} \u202e gnp.exe \ud800",
    where=(Place("we|ird `name`\n@octocat.py", 3, "<lambda>"), Place("../../etc/passwd", 1, EVIL)),
    evidence=(
        {
            "op": "void k<float, 4>(" + "x" * 300 + ")\r\n\x07",
            "kind": None,
            "count_per_step": float("nan"),
            "ms_per_step": None,
            "shapes": "not json [",
        },
        {"op": EVIL, "kind": "a\\|b`", "count_per_step": 1, "ms_per_step": 1.0, "shapes": EVIL},
        {"op": "\\", "kind": "|", "count_per_step": 1, "ms_per_step": 1.0, "shapes": "`"},
    ),
    why="y" * 500 + " @tf.function `@tf.function` #5",
    fix=(Fix("torch", "t", "print('```')\n\x1b]0;title\x07"), Fix("any", EVIL)),
    references=("javascript:alert(1)", "https://github.com/octo/repo/issues/1", "https://a.example/) [x](https://b.example"),
    also=("a|b",),
)
FIFTY = report(
    *(
        replace(
            FINDING,
            rule=f"rule-{i:02}",
            code=f"X{i:02}",
            title=f"Cause number {i}",
            severity=("high", "medium", "low", "info")[min(i // 10, 3)],
            share=0.5 / (i + 1),
            where=(Place(f"package/module_{i % 7}.py", 10 + i, "step"),),
            fingerprint=f"rule-{i:02}:x",
            evidence=tuple(
                {"op": f"aten::operator_{i}_{k}", "kind": "matmul", "count_per_step": k, "ms_per_step": 1.5, "shapes": [[k, 64]]}
                for k in range(12)
            ),
        )
        for i in range(50)
    ),
    inputs=tuple(
        {"path": f"rank{i}.json", "format": "kineto", "framework": "torch", "bytes": 1, "events": 5, "rank": i} for i in range(20)
    ),
)
EMPTY = report(
    run=None,
    device=None,
    breakdown=(),
    health=(),
    skipped=(),
    subject={"script": None, "framework": None, "kind": "unknown"},
    steps={"count": 0, "median_ms": None, "mad_ms": None, "unprofiled_median_ms": None, "unprofiled_mean_ms": None, "found_by": None},
)
SAMPLES = {
    "none": report(),
    "one": report(FINDING),
    "fifty": FIFTY,
    "many": report(FINDING, replace(FINDING, severity="medium", rule="x"), QUIET),
    "hostile": report(
        HOSTILE,
        health=({"id": "x", "level": "warning", "message": EVIL, "effect": EVIL},),
        subject={"script": EVIL, "framework": "torch", "kind": "training"},
        verdict={"rule": HOSTILE.rule, "text": EVIL},
        inputs=({"path": EVIL, "format": "kineto", "framework": "torch", "bytes": 1, "events": 1, "rank": None},),
        run={"framework": "torch", "versions": {"torch": EVIL}, "devices": [{"device": "cuda:0", "name": EVIL, "type": "gpu"}]},
    ),
    "empty": EMPTY,
}
