-- The schemas that hold a table of checkpoints.
SELECT n.nspname::text AS name
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relname = 'checkpoints' AND c.relkind IN ('r', 'p')
ORDER BY n.nspname
