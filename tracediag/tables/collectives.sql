-- Communication between ranks: what of it nothing else hides, and how long a rank waits in it for the last one to arrive.
--
-- collectives: one row a collective: of a device; of the host (place) in a rank without work on a device, where the range of the backend
-- (gloo:all_reduce) lasts from the call until all ranks have come and the data is there. A collective that the ranks of one trace take part
-- in together has the same key (name, process group, part, place in the order of start; part: shape on the host, where two threads may
-- start them in another order, and step where the ranks recorded different numbers of them); `met`: all of them overlap in time, so that the last start is known and clocks agree.
-- last_ns: start of the last of its ranks, NULL where the ranks were not met; least_ns: its shortest duration, which is the transfer.
-- source: on the host, of the last call before it with the same shapes; else NULL.
CREATE VIEW collectives AS
WITH alone AS (
  SELECT DISTINCT coalesce(rank, -1) AS rank_ FROM ops WHERE place = 'device'
),
hosts AS (
  SELECT op_id, rank, step, name, bytes, launch_id, start_ns, dur_ns, in_shapes,
    count(*) OVER (PARTITION BY name, in_shapes, rank) AS n
  FROM ops
  WHERE place = 'host' AND kind = 'collective' AND dur_ns > 0 AND regexp_matches(name, '^(gloo|mpi|ucc):')
    AND coalesce(rank, -1) NOT IN (SELECT rank_ FROM alone)
),
talks AS (
  SELECT op_id, place AS where_, rank, device, step, name, bytes, launch_id, start_ns, dur_ns, '' AS part, NULL::VARCHAR AS in_shapes,
    coalesce(json_extract_string(detail, '$."Process Group Name"'), '') AS process_group
  FROM ops
  WHERE place = 'device' AND kind = 'collective' AND dur_ns > 0
  UNION ALL
  SELECT op_id, 'host', rank, 'host', step, name, bytes, launch_id, start_ns, dur_ns,
    concat(CASE WHEN min(n) OVER same < max(n) OVER same THEN step END, ' ', in_shapes), in_shapes, ''
  FROM hosts
  WINDOW same AS (PARTITION BY name, in_shapes)
),
callers AS (
  SELECT coalesce(rank, -1) AS rank_, (in_shapes::JSON->0)::VARCHAR AS in_shapes, start_ns, source FROM ops
  WHERE place = 'host' AND role = 'op' AND starts_with(name, 'c10d::') AND source IS NOT NULL AND (SELECT count(*) FROM talks WHERE where_ = 'host') > 0
),
rows_ AS (
  SELECT *, start_ns + dur_ns AS end_ns,
    row_number() OVER (PARTITION BY rank, name, process_group, part ORDER BY start_ns, op_id) AS place
  FROM talks
),
counts AS (
  SELECT name, process_group, part, rank, count(*) AS n FROM rows_
  WHERE rank IS NOT NULL AND NOT (where_ = 'host' AND regexp_matches(name, 'send|recv'))
  GROUP BY name, process_group, part, rank
),
-- the same number of collectives of this name in two ranks or more
even AS (
  SELECT name, process_group, part FROM counts GROUP BY name, process_group, part HAVING count(*) > 1 AND min(n) = max(n)
),
joint AS (
  SELECT r.name, r.process_group, r.part, r.place, max(r.start_ns) AS last_ns, min(r.dur_ns) AS least_ns, arg_max(r.rank, r.start_ns) AS late_rank,
    count(*) AS ranks, max(r.start_ns) - min(r.start_ns) AS spread_ns, max(r.start_ns) <= min(r.end_ns) AS met
  FROM rows_ r JOIN even e ON e.name = r.name AND e.process_group = r.process_group AND e.part = r.part
  WHERE r.rank IS NOT NULL
  GROUP BY r.name, r.process_group, r.part, r.place
),
sound AS (SELECT name, process_group FROM joint GROUP BY name, process_group HAVING avg(met::INT) >= 0.9)
SELECT r.op_id, r.where_ AS place, r.rank, r.device, r.step, r.name, r.process_group, r.bytes, r.launch_id, r.start_ns, r.end_ns, r.dur_ns,
  coalesce(j.met, false) AS met, j.last_ns, j.least_ns, j.late_rank, coalesce(j.ranks, 1)::BIGINT AS ranks, j.spread_ns, s.source
FROM rows_ r
LEFT JOIN (
  SELECT j.* FROM joint j JOIN sound s ON s.name = j.name AND s.process_group = j.process_group WHERE j.met
) j ON j.name = r.name AND j.process_group = r.process_group AND j.part = r.part AND j.place = r.place AND r.rank IS NOT NULL
ASOF LEFT JOIN callers s ON s.rank_ = coalesce(r.rank, -1) AND s.in_shapes = r.in_shapes AND r.start_ns >= s.start_ns;

-- exposed: the pieces of collectives (op_id, from_ns to to_ns) in which their device does nothing else; on the host: in which no operator of
-- the rank runs and no batch is loaded. An operator that waits for a collective inside of it does not count.
CREATE VIEW exposed AS
WITH RECURSIVE devices_ AS (SELECT DISTINCT coalesce(rank, -1) AS rank_, device FROM collectives WHERE place = 'device'),
hosts_ AS (SELECT DISTINCT coalesce(rank, -1) AS rank_ FROM collectives WHERE place = 'host'),
waiting AS (
  SELECT o.op_id, o.parent_id FROM ops o
  WHERE o.place = 'host' AND o.kind = 'collective' AND o.role <> 'annotation' AND coalesce(o.rank, -1) IN (SELECT rank_ FROM hosts_)
  UNION
  SELECT o.op_id, o.parent_id FROM waiting w JOIN ops o ON o.op_id = w.parent_id
),
spans AS (
  SELECT coalesce(o.rank, -1) AS rank_, o.device, o.start_ns, o.start_ns + o.dur_ns AS end_ns, (o.kind = 'collective')::INT AS talk,
    (o.kind IS DISTINCT FROM 'collective')::INT AS work
  FROM ops o JOIN devices_ d ON d.rank_ = coalesce(o.rank, -1) AND d.device IS NOT DISTINCT FROM o.device
  WHERE o.place = 'device' AND o.dur_ns > 0
  UNION ALL
  SELECT coalesce(rank, -1), device, start_ns, end_ns, 1, 0 FROM collectives WHERE place = 'host'
  UNION ALL
  SELECT coalesce(o.rank, -1), 'host', o.start_ns, o.start_ns + o.dur_ns, 0, 1
  FROM ops o
  WHERE o.place = 'host' AND o.dur_ns > 0 AND coalesce(o.rank, -1) IN (SELECT rank_ FROM hosts_)
    AND (o.role IN ('op', 'function') OR starts_with(o.name, 'enumerate(DataLoader)')) AND o.op_id NOT IN (SELECT op_id FROM waiting)
),
edges AS (
  SELECT rank_, device, start_ns AS t, talk, work FROM spans
  UNION ALL
  SELECT rank_, device, end_ns, -talk, -work FROM spans
),
moments AS (SELECT rank_, device, t, sum(talk) AS talk, sum(work) AS work FROM edges GROUP BY rank_, device, t),
pieces AS (
  SELECT rank_, device, t AS from_ns, lead(t) OVER w AS to_ns, sum(talk) OVER w AS talk, sum(work) OVER w AS work
  FROM moments WINDOW w AS (PARTITION BY rank_, device ORDER BY t)
)
-- the collective that began last before the piece; where two run at once, either may have it
SELECT c.op_id, c.rank, c.device, c.step, p.from_ns, least(p.to_ns, c.end_ns) AS to_ns
FROM (SELECT * FROM pieces WHERE talk > 0 AND work = 0 AND to_ns > from_ns) p
ASOF JOIN (SELECT *, coalesce(rank, -1) AS rank_ FROM collectives) c
  ON c.rank_ = p.rank_ AND c.device = p.device AND c.start_ns <= p.from_ns
WHERE least(p.to_ns, c.end_ns) > p.from_ns;
