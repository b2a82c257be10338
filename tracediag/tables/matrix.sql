-- matrix_kernels: one row a device kernel of kind matmul or conv, with what its name and its operator say about precision and size.
--
-- precision: fp64 | fp32 | tf32 | 16 | 8 | NULL (the name does not tell). A plain fp32 name on a device with TF32 means that TF32 was not used.
-- m, n, k, batches: the product m x k times k x n of the operator that launched it, NULL where the shapes were not recorded. Operator names
-- and shapes are those of the innermost operator around the launch.
CREATE VIEW matrix_kernels AS
WITH kernels AS (
  SELECT k.op_id, k.rank, k.device, k.step, k.phase, k.name, k.kind, k.start_ns, k.dur_ns, k.detail, k.launch_id,
    o.op_id AS operator_id, o.name AS operator, o.in_shapes, o.in_dtypes, o.in_strides, o.source,
    CASE WHEN o.name IN ('aten::addmm', 'aten::baddbmm', 'aten::_addmm_activation') THEN 1
      WHEN o.name IN ('aten::mm', 'aten::bmm', 'aten::matmul', 'aten::linear') THEN 0 END AS arg
  FROM ops k
  LEFT JOIN ops l ON l.op_id = k.launch_id
  LEFT JOIN ops o ON o.op_id = l.parent_id AND o.role = 'op'
  WHERE k.place = 'device' AND k.role = 'kernel' AND k.kind IN ('matmul', 'conv')
),
names AS (
  SELECT name,
    CASE
      WHEN regexp_matches(name, 'MxE|_e4m3|_e5m2|E4m3|E5m2|_f8|fp8|i8816|_s8|int8|i8i8|_F8|_I8') THEN '8'
      WHEN regexp_matches(name, 'dgemm|double|_d884|f64f64|_DB_') THEN 'fp64'
      WHEN regexp_matches(name, '[bf]f?p?16|bf16|__half|[Hh]alf|bfloat16|s884|h884|16816|161616|h1688|hgemm|_HHS_|_HSS_|_BBS_|_BSS_|_BS_|_HS_|_HB_|nvjet_(sm\d+_)?[ht]')
        THEN '16'
      WHEN regexp_matches(name, 'tf32|s1688|tensorop_s\d|_XF32|_F32XEMUL') THEN 'tf32'
      WHEN regexp_matches(name, 'cgemm|zgemm|fft|FFT') THEN NULL
      WHEN regexp_matches(name, 'sgemm|scudnn|<float|<int, float|float, float|_SB_|f32f32_f32f32|ffma|simt|fp32') THEN 'fp32'
    END AS precision
  FROM (SELECT DISTINCT name FROM kernels)
),
named AS (
  SELECT k.*, n.precision,
    CASE WHEN arg IS NOT NULL THEN TRY_CAST(in_shapes::JSON->(arg::INT) AS BIGINT[]) END AS a,
    CASE WHEN arg IS NOT NULL THEN TRY_CAST(in_shapes::JSON->((arg + 1)::INT) AS BIGINT[]) END AS b,
    CASE WHEN arg IS NOT NULL THEN in_dtypes::JSON->>(arg::INT) END AS dtype
  FROM kernels k JOIN names n ON n.name = k.name
),
sized AS (
  SELECT * EXCLUDE (a, b, arg),
    CASE WHEN len(a) >= 2 AND len(b) >= 2 THEN coalesce(list_product(a[:-3]), 1)::BIGINT END AS batches,
    CASE WHEN len(a) >= 2 AND len(b) >= 2 THEN a[-2] END AS m,
    CASE WHEN len(a) >= 2 AND len(b) >= 2 THEN a[-1] END AS k,
    -- the second operand of linear is the weight, [n, k]
    CASE WHEN len(a) >= 2 AND len(b) >= 2 THEN CASE WHEN operator = 'aten::linear' THEN b[-2] ELSE b[-1] END END AS n
  FROM named
)
SELECT *,
  -- operations for each element read or written
  CASE WHEN m * n * k > 0 THEN 2.0 * m * n * k / (m * k + k * n + m * n) END AS flop_per_element
FROM sized;

-- matrix_devices: what each kind of device in the trace can do with matrices. tensor_cores: it has them (NVIDIA from 7.0, AMD Instinct);
-- tf32: it has TF32 (NVIDIA from 8.0). From the table of devices, else from kernels that only such a device runs.
CREATE VIEW matrix_devices AS
WITH told AS (
  SELECT
    max(compute_capability) FILTER (vendor = 'nvidia' AND NOT regexp_matches(coalesce(name, ''), 'GTX 16|GeForce MX')) AS capability,
    bool_or(vendor = 'amd' AND regexp_matches(coalesce(name, ''), 'Instinct|MI\d')) AS instinct
  FROM devices WHERE type = 'gpu'
),
seen AS (
  SELECT bool_or(regexp_matches(name, '^(volta|turing|ampere|hopper)_|^sm(7|8|9|10|12)\d_|cutlass_[789]\d_')) AS volta,
    bool_or(regexp_matches(name, '^(ampere|hopper)_|^sm(8|9|10|12)\d_|cutlass_[89]\d_')) AS ampere
  FROM ops WHERE place = 'device' AND role = 'kernel' AND kind IN ('matmul', 'conv')
)
SELECT
  coalesce(t.capability >= 7, false) OR coalesce(t.instinct, false) OR (t.capability IS NULL AND coalesce(s.volta, false)) AS tensor_cores,
  coalesce(t.capability >= 8, false) OR (t.capability IS NULL AND coalesce(s.ampere, false)) AS tf32,
  coalesce(t.instinct, false) AS amd
FROM told t, seen s;
