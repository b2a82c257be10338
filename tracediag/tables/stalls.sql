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

-- stalls: one row a piece of idle time (gap_id) that a blocking call (op_id) brings about. Without it the host would be ahead by the
-- time that it stood still in it; this lead is used up by all idle time that follows, over many launches and into the next step, and what it
-- covers would be gone. lead_ns: the lead that is left there.
--
-- A lead adds to what an earlier call left of its own; idle time is charged to the last call whose lead is not used up yet, so that no call
-- pays for more than it waited (a piece is charged whole or not at all, as its middle falls). Idle time that others own (input, compilation,
-- long launches) uses the lead up as well and is not charged. No lead is gained by waiting for other ranks in a collective, nor by a thread
-- that launches no kernel. None outlasts a call of the driver's allocator, which may wait itself, nor a wait for a batch that other
-- processes make: it would not have come earlier. Jobs with several devices a process are left out.
CREATE VIEW stalls AS
WITH lone AS (
  SELECT rank, min(device) AS device FROM gaps GROUP BY rank HAVING count(DISTINCT device) = 1
),
launching AS (
  SELECT DISTINCT l.lane FROM ops d JOIN ops l ON l.op_id = d.launch_id WHERE d.place = 'device' AND d.role = 'kernel'
),
met AS (
  SELECT b.op_id, sum(least(b.end_ns, c.start_ns + c.dur_ns) - greatest(b.start_ns, c.start_ns))::BIGINT AS ns
  FROM blocking b JOIN ops c ON c.rank IS NOT DISTINCT FROM b.rank AND c.start_ns < b.end_ns AND c.start_ns + c.dur_ns > b.start_ns
  WHERE c.place = 'device' AND c.kind = 'collective'
  GROUP BY b.op_id
),
-- in the order of time: what adds to the lead, what uses it up, what ends it
events AS (
  SELECT coalesce(b.rank, -1) AS place, b.end_ns AS at_ns, b.op_id, NULL::BIGINT AS gap_id, b.step,
    greatest(b.dur_ns - coalesce(m.ns, 0), 0) AS change, false AS open, 0 AS ends
  FROM blocking b LEFT JOIN met m ON m.op_id = b.op_id
  WHERE b.step IS NOT NULL AND (b.lane IN (SELECT lane FROM launching) OR b.op_id IN (SELECT op_id FROM fetches))
  UNION ALL
  SELECT coalesce(g.rank, -1), g.start_ns, NULL, g.gap_id, g.step, -g.dur_ns,
    g.owner IN ('op', 'python', 'runtime', 'launch', 'queue') AND g.next_op_id IS NOT NULL, 0
  FROM gaps g JOIN lone l ON l.rank IS NOT DISTINCT FROM g.rank AND l.device = g.device
  WHERE (SELECT count(*) FROM blocking) > 0
  UNION ALL
  SELECT coalesce(rank, -1), start_ns + dur_ns, NULL, NULL, step, 0, false, 1
  FROM ops WHERE role = 'runtime' AND place = 'host' AND kind = 'alloc' AND dur_ns >= 20000 AND lane IN (SELECT lane FROM launching)
  UNION ALL
  SELECT coalesce(g.rank, -1), g.start_ns + g.dur_ns, NULL, NULL, g.step, 0, false, 1
  FROM gaps g JOIN ops o ON o.op_id = g.op_id
  WHERE g.owner = 'input' AND g.dur_ns >= 1000000 AND NOT contains(o.name, '_SingleProcess') AND (SELECT count(*) FROM blocking) > 0
),
stretched AS (
  SELECT *, sum(ends) OVER (PARTITION BY place ORDER BY at_ns, op_id NULLS LAST, gap_id NULLS FIRST ROWS UNBOUNDED PRECEDING) AS stretch
  FROM events
),
summed AS (
  SELECT *, sum(change) OVER w AS total, count(op_id) OVER w AS number
  FROM stretched WINDOW w AS (PARTITION BY place, stretch ORDER BY at_ns, op_id NULLS LAST, gap_id NULLS FIRST ROWS UNBOUNDED PRECEDING)
),
-- the lead after each event is never below nothing: the sum, seen from the lowest point so far
led AS (
  SELECT *, total - least(0, min(total) OVER w) AS left_over
  FROM summed WINDOW w AS (PARTITION BY place, stretch ORDER BY at_ns, op_id NULLS LAST, gap_id NULLS FIRST ROWS UNBOUNDED PRECEDING)
),
leads AS (
  SELECT *, coalesce(lag(left_over) OVER w, 0) AS lead
  FROM led WINDOW w AS (PARTITION BY place, stretch ORDER BY at_ns, op_id NULLS LAST, gap_id NULLS FIRST)
),
missed AS (
  SELECT place, stretch, number, gap_id, step, -change AS idle_ns, lead, lead + change / 2 AS middle FROM leads WHERE open AND lead + change / 2 > 0
),
-- a call's own lead lies above what there was when it came: mostly that of the last call; looked for among the last ones only, which
-- bounds the work
nearest AS (
  SELECT m.gap_id, c.op_id, c.step
  FROM missed m JOIN leads c ON c.place = m.place AND c.stretch = m.stretch AND c.number = m.number AND c.op_id IS NOT NULL
  WHERE c.lead < m.middle
),
charged AS (
  SELECT * FROM nearest
  UNION ALL
  SELECT m.gap_id, arg_max(c.op_id, c.number), arg_max(c.step, c.number)
  FROM (SELECT *, unnest(range(1, 16)) AS back FROM missed WHERE gap_id NOT IN (SELECT gap_id FROM nearest)) m
  JOIN leads c ON c.place = m.place AND c.stretch = m.stretch AND c.number = m.number - m.back AND c.op_id IS NOT NULL
  WHERE c.lead < m.middle
  GROUP BY m.gap_id
)
SELECT c.op_id, m.gap_id, m.step, m.idle_ns::BIGINT AS idle_ns, m.lead::BIGINT AS lead_ns
FROM missed m JOIN charged c ON c.gap_id = m.gap_id
WHERE m.step IS NULL OR m.step <= c.step + 1;
