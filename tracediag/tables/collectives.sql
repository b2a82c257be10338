-- Communication between ranks: what of it nothing else hides, and how long a rank waits in it for the last one to arrive.
--
-- collectives: one row a collective on a device. A collective that the ranks of one trace take part in together has the same key (name,
-- process group, place in the order of start); `met`: all of them overlap in time, so that the last start is known and clocks agree.
-- last_ns: start of the last of its ranks, NULL where the ranks were not met; least_ns: its shortest duration, which is the transfer.
CREATE VIEW collectives AS
WITH rows_ AS (
  SELECT op_id, rank, device, step, name, bytes, launch_id, start_ns, start_ns + dur_ns AS end_ns, dur_ns,
    coalesce(json_extract_string(detail, '$."Process Group Name"'), '') AS process_group,
    row_number() OVER (
      PARTITION BY rank, name, json_extract_string(detail, '$."Process Group Name"') ORDER BY start_ns, op_id
    ) AS place
  FROM ops
  WHERE place = 'device' AND kind = 'collective' AND dur_ns > 0
),
counts AS (
  SELECT name, process_group, rank, count(*) AS n FROM rows_ WHERE rank IS NOT NULL GROUP BY name, process_group, rank
),
-- the same number of collectives of this name in two ranks or more
even AS (
  SELECT name, process_group FROM counts GROUP BY name, process_group HAVING count(*) > 1 AND min(n) = max(n)
),
joint AS (
  SELECT r.name, r.process_group, r.place, max(r.start_ns) AS last_ns, min(r.dur_ns) AS least_ns, arg_max(r.rank, r.start_ns) AS late_rank,
    count(*) AS ranks, max(r.start_ns) - min(r.start_ns) AS spread_ns, max(r.start_ns) <= min(r.end_ns) AS met
  FROM rows_ r JOIN even e ON e.name = r.name AND e.process_group = r.process_group
  WHERE r.rank IS NOT NULL
  GROUP BY r.name, r.process_group, r.place
),
sound AS (SELECT name, process_group FROM joint GROUP BY name, process_group HAVING avg(met::INT) >= 0.9)
SELECT r.op_id, r.rank, r.device, r.step, r.name, r.process_group, r.bytes, r.launch_id, r.start_ns, r.end_ns, r.dur_ns,
  coalesce(j.met, false) AS met, j.last_ns, j.least_ns, j.late_rank, coalesce(j.ranks, 1)::BIGINT AS ranks, j.spread_ns
FROM rows_ r
LEFT JOIN (
  SELECT j.* FROM joint j JOIN sound s ON s.name = j.name AND s.process_group = j.process_group WHERE j.met
) j ON j.name = r.name AND j.process_group = r.process_group AND j.place = r.place AND r.rank IS NOT NULL;

-- exposed: the pieces of collectives (op_id, from_ns to to_ns) in which their device does nothing else.
CREATE VIEW exposed AS
WITH devices_ AS (SELECT DISTINCT coalesce(rank, -1) AS rank_, device FROM collectives),
edges AS (
  SELECT coalesce(o.rank, -1) AS rank_, o.device, o.start_ns AS t, (o.kind = 'collective')::INT AS talk,
    (o.kind IS DISTINCT FROM 'collective')::INT AS work
  FROM ops o JOIN devices_ d ON d.rank_ = coalesce(o.rank, -1) AND d.device IS NOT DISTINCT FROM o.device
  WHERE o.place = 'device' AND o.dur_ns > 0
  UNION ALL
  SELECT coalesce(o.rank, -1), o.device, o.start_ns + o.dur_ns, -(o.kind = 'collective')::INT, -(o.kind IS DISTINCT FROM 'collective')::INT
  FROM ops o JOIN devices_ d ON d.rank_ = coalesce(o.rank, -1) AND d.device IS NOT DISTINCT FROM o.device
  WHERE o.place = 'device' AND o.dur_ns > 0
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
