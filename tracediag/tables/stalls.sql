-- Calls that block the host until the device has caught up, and the idle time of the device that each of them brings about.
--
-- fetches: one row a copy to the host that eager TensorFlow makes on the thread of Python, outside every operator and function: .numpy(),
-- float(), bool(), print. It waits for the device to run dry, then for the copy. The wait shows in no event, only in this: the copy is
-- launched as the device runs dry or before. start_ns: end of what the thread did before.
CREATE VIEW fetches AS
WITH calls AS (
  SELECT l.op_id, l.name, l.rank, l.step, l.lane, l.source, l.start_ns AS call_ns, d.op_id AS copy_id, d.device, d.bytes, d.start_ns AS copy_ns,
    d.start_ns + d.dur_ns AS end_ns
  FROM ops d JOIN ops l ON l.op_id = d.launch_id LEFT JOIN ops p ON p.op_id = l.parent_id
  WHERE d.framework = 'tensorflow' AND d.place = 'device' AND d.role = 'copy' AND d.kind = 'copy_d2h' AND l.place = 'host'
    AND (p.op_id IS NULL OR p.role IN ('annotation', 'python') OR p.name IN ('TFE_TensorHandleResolve', 'EagerCopyToDevice'))
),
-- the thread of Python is where functions and operators are called from
python_lanes AS (
  SELECT DISTINCT lane FROM ops WHERE place = 'host' AND framework = 'tensorflow' AND (role = 'function' OR name LIKE 'EagerExecute%')
),
mine AS (SELECT c.* FROM calls c JOIN python_lanes p ON p.lane = c.lane),
earlier AS (
  SELECT o.lane, o.start_ns + o.dur_ns AS end_ns FROM ops o JOIN python_lanes p ON p.lane = o.lane
  WHERE o.place = 'host' AND (SELECT count(*) FROM mine) > 0
    AND (o.role IN ('function', 'op', 'runtime') OR o.name LIKE 'EagerExecute%')
),
worked AS (
  SELECT m.op_id, max(k.start_ns + k.dur_ns) AS dry_ns
  FROM mine m ASOF JOIN (
    SELECT device, start_ns, max(start_ns + dur_ns) OVER (PARTITION BY device ORDER BY start_ns, op_id) - start_ns AS dur_ns
    FROM ops WHERE place = 'device' AND role IN ('kernel', 'memset') AND (SELECT count(*) FROM mine) > 0
  ) k ON k.device = m.device AND m.copy_ns >= k.start_ns
  GROUP BY m.op_id
)
SELECT m.op_id, m.name, m.rank, m.step, m.lane, m.source, e.end_ns AS start_ns, m.end_ns, m.bytes
FROM mine m JOIN worked w ON w.op_id = m.op_id ASOF JOIN earlier e ON e.lane = m.lane AND m.call_ns >= e.end_ns
WHERE m.call_ns <= w.dry_ns + 100000 AND e.end_ns < w.dry_ns;

-- blocking: one row a call. cause: 'readback' (a few bytes are read on the host), 'shape' (the size of a result is asked for), 'copy' (a
-- larger or a pageable copy), 'explicit' (a synchronise that stands in no operator), 'other' (inside another operator).
-- TensorFlow waits for a copy without a call that the trace shows (fetches, below).
CREATE VIEW blocking AS
WITH RECURSIVE pageable AS (
  SELECT launch_id AS op_id, max(bytes)::BIGINT AS bytes, min(kind) AS kind
  FROM ops
  WHERE place = 'device' AND role = 'copy' AND launch_id IS NOT NULL AND name LIKE '%Pageable%' AND kind IN ('copy_d2h', 'copy_h2d')
  GROUP BY launch_id
),
copies AS (
  SELECT l.parent_id, max(d.bytes)::BIGINT AS bytes, max(d.kind) AS kind
  FROM ops d JOIN ops l ON l.op_id = d.launch_id
  WHERE d.place = 'device' AND d.role = 'copy' AND d.kind IN ('copy_d2h', 'copy_h2d')
  GROUP BY l.parent_id
),
calls AS (
  SELECT o.op_id, o.parent_id, o.name, o.rank, o.step, o.lane, o.source, o.start_ns, o.dur_ns, o.start_ns + o.dur_ns AS end_ns,
    coalesce(p.bytes, c.bytes) AS bytes, coalesce(p.kind, c.kind) AS copy_kind
  FROM ops o LEFT JOIN pageable p ON p.op_id = o.op_id LEFT JOIN copies c ON c.parent_id = o.parent_id
  WHERE o.role = 'runtime' AND o.place = 'host'
    AND ((o.kind = 'sync' AND NOT regexp_matches(o.name, 'Query|WaitEvent')) OR o.name = 'hipMemcpyWithStream' OR p.kind = 'copy_d2h')
),
-- what encloses each call, nearest first
above AS (
  SELECT op_id AS call_id, parent_id AS at, 1 AS depth FROM calls WHERE parent_id IS NOT NULL
  UNION ALL
  SELECT a.call_id, o.parent_id, a.depth + 1 FROM above a JOIN ops o ON o.op_id = a.at WHERE o.parent_id IS NOT NULL AND a.depth < 8
),
named AS (
  SELECT a.call_id,
    min(CASE WHEN o.role = 'op' THEN a.depth END) AS nearest,
    bool_or(o.role = 'op' AND regexp_matches(o.name, '^aten::(nonzero|masked_select|_unique|unique_|repeat_interleave|_assert_async|bincount)'))
      AS shape,
    bool_or(o.role = 'op' AND regexp_matches(o.name, '^aten::(item|_local_scalar_dense|is_nonzero|equal|allclose|_is_all_true|_is_any_true)$'))
      AS readback,
    bool_or(o.role = 'op' AND o.name IN ('aten::copy_', 'aten::_to_copy', 'aten::to')) AS copied
  FROM above a JOIN ops o ON o.op_id = a.at
  GROUP BY a.call_id
),
outer_op AS (
  SELECT a.call_id, arg_max(o.op_id, a.depth) AS op_id, arg_max(o.name, a.depth) AS name
  FROM above a JOIN ops o ON o.op_id = a.at
  WHERE o.role = 'op'
    AND regexp_matches(o.name, '^aten::(nonzero|masked_select|_?unique|repeat_interleave|item|_local_scalar_dense|is_nonzero|equal|allclose|index|index_put_?|_index_put_impl_|copy_|_to_copy|to|bincount)')
  GROUP BY a.call_id
)
SELECT c.op_id, c.name, c.rank, c.step, c.lane, c.source, c.start_ns, c.dur_ns, c.end_ns, c.bytes, c.copy_kind,
  u.op_id AS operator_id, u.name AS operator,
  CASE
    WHEN n.shape THEN 'shape'
    WHEN n.readback THEN 'readback'
    WHEN n.copied AND c.copy_kind = 'copy_d2h' AND c.bytes <= 64 THEN 'readback'
    WHEN n.copied OR regexp_matches(c.name, 'Memcpy') THEN 'copy'
    WHEN n.nearest IS NULL AND regexp_matches(c.name, 'Synchronize') THEN 'explicit'
    ELSE 'other'
  END AS cause
FROM calls c LEFT JOIN named n ON n.call_id = c.op_id LEFT JOIN outer_op u ON u.call_id = c.op_id
UNION ALL
SELECT op_id, name, rank, step, lane, source, start_ns, end_ns - start_ns, end_ns, bytes, 'copy_d2h', NULL, NULL,
  CASE WHEN bytes <= 64 THEN 'readback' ELSE 'copy' END
FROM fetches;

-- stalls: one row a piece of idle time (gap_id) that a blocking call (op_id) brings about. The host stood still for dur_ns; without the
-- call it would have been that much ahead, so that at most so much of the idle time that follows would be gone. Idle time that others
-- own (input, compilation, memory calls, long launches) is left out, and so are jobs with several devices a process.
CREATE VIEW stalls AS
WITH lone AS (
  SELECT rank, min(device) AS device FROM gaps GROUP BY rank HAVING count(DISTINCT device) = 1
),
idle AS (
  SELECT g.rank, g.next_op_id, min(g.start_ns) AS start_ns, max(g.start_ns + g.dur_ns) AS end_ns
  FROM gaps g JOIN lone l ON l.rank IS NOT DISTINCT FROM g.rank AND l.device = g.device
  WHERE g.next_op_id IS NOT NULL
  GROUP BY g.rank, g.next_op_id
),
hit AS (
  SELECT b.op_id, b.dur_ns, b.end_ns, b.place, i.next_op_id, i.start_ns AS idle_ns, i.end_ns AS idle_end_ns
  FROM (SELECT *, coalesce(rank, -1) AS place FROM blocking) b
  ASOF JOIN (SELECT *, coalesce(rank, -1) AS place FROM idle) i ON b.place = i.place AND b.end_ns >= i.start_ns
  WHERE b.end_ns < i.end_ns
),
-- several calls in one stretch of idle time: it follows the last of them, and all of them together held the host up
held AS (
  SELECT place, next_op_id, arg_max(op_id, end_ns) AS op_id, max(end_ns) AS end_ns, sum(dur_ns)::BIGINT AS waited,
    min(idle_ns) AS idle_ns, min(idle_end_ns) AS idle_end_ns
  FROM hit GROUP BY place, next_op_id
),
-- stretches that follow each other within 200 us: the lead that the first call cost is still missing after the second
marked AS (
  SELECT *, CASE WHEN idle_ns - lag(idle_end_ns) OVER w <= 200000 THEN 0 ELSE 1 END AS fresh
  FROM held WINDOW w AS (PARTITION BY place ORDER BY idle_ns, next_op_id)
),
chained AS (
  SELECT *, sum(fresh) OVER (PARTITION BY place ORDER BY idle_ns, next_op_id ROWS UNBOUNDED PRECEDING) AS chain FROM marked
),
lead AS (
  SELECT *,
    sum(waited) OVER w - (sum(idle_end_ns - end_ns) OVER w - (idle_end_ns - end_ns)) AS missing
  FROM chained WINDOW w AS (PARTITION BY place, chain ORDER BY idle_ns, next_op_id ROWS UNBOUNDED PRECEDING)
)
SELECT h.op_id, g.gap_id, g.step, g.dur_ns AS idle_ns, h.missing::BIGINT AS waited_ns
FROM lead h JOIN gaps g ON g.next_op_id = h.next_op_id
WHERE g.owner IN ('op', 'python', 'runtime', 'launch', 'queue') AND g.start_ns >= h.end_ns
  AND g.start_ns + g.dur_ns / 2 - h.end_ns <= h.missing;
