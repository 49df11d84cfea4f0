-- Sessions of clients at work on this server, in any database: all but this one and those of our
-- other processes. Without pg_read_all_stats only those of our own role can be seen.
SELECT count(*) FILTER (
        WHERE s.state IN ('active', 'fastpath function call')
            AND s.backend_type = 'client backend'
            AND s.pid <> pg_backend_pid()
            AND s.application_name NOT IN (%(name)s::text, %(name)s::text || ' ledger')
    ) AS active,
    pg_has_role('pg_read_all_stats', 'USAGE') AS seen
FROM pg_stat_activity AS s
