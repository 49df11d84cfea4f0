-- The checkpoint tables of a schema, and what we may do with them. Without the right to use the
-- schema no right on its tables counts.
SELECT c.relname::text AS name,
    u.usage AND has_table_privilege(c.oid, 'SELECT') AS may_select,
    u.usage AND has_table_privilege(c.oid, 'INSERT') AS may_insert,
    row_security_active(c.oid) AS row_security,
    CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint END AS row_estimate
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (SELECT has_schema_privilege(n.oid, 'USAGE') AS usage) AS u
WHERE n.nspname = %(schema)s AND c.relname = ANY(%(tables)s::text[]) AND c.relkind IN ('r', 'p')
