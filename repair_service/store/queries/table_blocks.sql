-- How many blocks a table has: read from the file's size, so it is right without statistics.
SELECT pg_relation_size(c.oid) / current_setting('block_size')::bigint AS blocks
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = %(table)s
