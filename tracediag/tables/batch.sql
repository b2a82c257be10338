-- batch_rows: samples of a step in one row. n: the first axis of what the step was fed, else the one batch size of the loaders, else NULL.
-- filled: for `replace(shape, 'null', filled)`: an axis that a graph leaves open is that of the batch; 'null' where n is not known.
CREATE VIEW batch_rows AS
WITH told AS (
  SELECT coalesce(
    (SELECT max(TRY_CAST(batch::JSON->0->>0 AS BIGINT)) FROM step_series),
    (SELECT CASE WHEN count(DISTINCT batch_size) = 1 THEN max(batch_size) END FROM loaders)
  ) AS n
)
SELECT n, coalesce(n::VARCHAR, 'null') AS filled FROM told;
