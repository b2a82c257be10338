-- work: what each operator did by itself, the same for host and device. operator_id: the operator; op_id: its own device work where a device
-- took part (what it launched directly, not the idle time around it), else the operator itself.
CREATE VIEW work AS
WITH device AS (SELECT count(*) > 0 AS present FROM ops WHERE place = 'device')
SELECT k.op_id, o.op_id AS operator_id, k.dur_ns
FROM ops k JOIN ops l ON l.op_id = k.launch_id JOIN ops o ON o.op_id = l.parent_id
WHERE k.place = 'device' AND o.role = 'op'
UNION ALL
SELECT o.op_id, o.op_id, o.dur_ns
FROM ops o, device d
WHERE NOT d.present AND o.place = 'host' AND o.role = 'op';
