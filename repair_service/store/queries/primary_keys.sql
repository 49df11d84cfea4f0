-- The columns of each checkpoint table's primary key, in the order of the key.
SELECT c.relname::text AS name, a.attname::text AS column
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS k(attnum, position)
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum
WHERE n.nspname = %(schema)s AND c.relname = ANY(%(tables)s::text[]) AND c.relkind IN ('r', 'p')
    AND i.indisprimary
ORDER BY c.relname, k.position
