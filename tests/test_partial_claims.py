"""Rules that claim a part of an op by from_ns and to_ns, and the shared views on collectives and matrix kernels that such rules read."""

from pathlib import Path

import pytest

from tracediag import engine
from tracediag.rules import load_rules
from tracediag.trace import Trace

RULE = """
id: part-of-an-op
code: K99
title: A part
category: kernel
frameworks: [torch]
severity: high
confidence: likely
summary: A part of an op.
why: For the test.
fix: [{framework: torch, text: nothing}]
query: |
  SELECT op_id, 'part' AS group_key, start_ns + 200000 AS from_ns%s
  FROM ops WHERE name = 'aten::mm'
saving: {transform: none}
message: "{percent} %%"
since: "0.1"
tests:
  - {name: fires, given: {ops: [{name: "aten::mm", dur_ns: 1000}]}, expect: {fires: true}}
  - {name: silent, given: {ops: [{name: "aten::add", dur_ns: 1000}]}, expect: {fires: false}}
"""
ROWS = {
    "steps": [{"step": 0, "start_ns": 0, "end_ns": 1_000_000}],
    "ops": [{"name": "aten::mm", "start_ns": 0, "dur_ns": 500_000}],
}


def rule(tmp_path: Path, more: str):
    path = tmp_path / "part-of-an-op.yaml"
    path.write_text(RULE % more, encoding="utf-8")
    return next(one for one in load_rules([str(path)]) if one.id == "part-of-an-op")


def test_only_the_part_of_the_op_is_claimed(tmp_path):
    result = engine.run(Trace.from_rows(ROWS), [rule(tmp_path, ", start_ns + 300000 AS to_ns")])
    assert result.findings[0].share == pytest.approx(0.1)


def test_a_part_that_reaches_beyond_the_op_is_cut(tmp_path):
    result = engine.run(Trace.from_rows(ROWS), [rule(tmp_path, ", start_ns + 900000 AS to_ns")])
    assert result.findings[0].share == pytest.approx(0.3)


def test_from_without_to_is_an_error_at_load(tmp_path):
    with pytest.raises(Exception, match="from_ns and to_ns go together"):
        rule(tmp_path, "")


def collective(rank, start, dur, **more):
    return {"name": "ncclDevKernel_AllReduce", "place": "device", "rank": rank, "start_ns": start, "dur_ns": dur, **more}


def test_exposed_pieces_leave_out_what_other_work_hides():
    work = {"name": "ampere_sgemm_128x64_tn", "place": "device", "rank": 0, "lane": "stream 20", "start_ns": 30_000, "dur_ns": 20_000}
    trace = Trace.from_rows({"ops": [{"name": "aten::mm", "rank": 0}, collective(0, 10_000, 90_000), work]})
    assert trace.sql("SELECT from_ns, to_ns FROM exposed ORDER BY from_ns").values.tolist() == [[10_000, 30_000], [50_000, 100_000]]


@pytest.mark.parametrize(("start", "met"), [(70_000, True), (150_000, False)])
def test_collectives_meet_where_all_ranks_overlap(start, met):
    ops = [{"name": "aten::mm", "rank": 0}, collective(0, 10_000, 90_000), {"name": "aten::mm", "rank": 1}, collective(1, start, 30_000)]
    found = Trace.from_rows({"ops": ops}).sql("SELECT met, last_ns, late_rank FROM collectives ORDER BY op_id")
    assert found["met"].tolist() == [met, met]
    assert found["last_ns"].dropna().tolist() == ([start, start] if met else [])


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("ampere_sgemm_128x64_tn", "fp32"),
        ("volta_scudnn_128x64_relu_medium_nn_v1", "fp32"),
        ("void gemmSN_NN_kernel<float, 128, 2, 4, 8, 4, 4, false, cublasGemvTensorStridedBatched<__half const> >", "16"),
        ("ampere_fp16_sgemm_fp16_64x64_tn", "16"),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4>", "tf32"),
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32", "tf32"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64_MI16x16x1", "16"),
        ("Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1", "fp32"),
        ("volta_dgemm_64x64_nt", "fp64"),
        ("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2", "8"),
    ],
)
def test_names_of_matrix_kernels_tell_the_precision(name, precision):
    trace = Trace.from_rows({"ops": [{"name": "aten::mm"}, {"name": name, "place": "device", "kind": "matmul"}]})
    assert trace.sql("SELECT precision FROM matrix_kernels")["precision"].tolist() == [precision]
