-- The serialization types in use, from blocks spread evenly over both tables of bytes.
SELECT DISTINCT sampled.type
FROM (
    SELECT b.type FROM {schema}.checkpoint_blobs AS b TABLESAMPLE SYSTEM (%(blobs_percent)s::real)
    UNION ALL
    SELECT w.type FROM {schema}.checkpoint_writes AS w TABLESAMPLE SYSTEM (%(writes_percent)s::real)
) AS sampled
WHERE sampled.type IS NOT NULL
ORDER BY sampled.type
