-- The columns of the checkpoint tables, in order, with their types.
SELECT c.relname::text AS name, a.attname::text AS column, format_type(a.atttypid, NULL) AS type
FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = ANY(%(tables)s::text[]) AND c.relkind IN ('r', 'p')
    AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum
