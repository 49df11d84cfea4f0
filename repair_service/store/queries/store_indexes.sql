-- The secondary indexes of the checkpoint tables. One that is not valid was left by a CREATE INDEX
-- CONCURRENTLY that was broken off; unless it is being built now, by a session that holds this lock
-- on its table (who builds may be hidden from us, locks are not) and is no vacuum.
SELECT c.relname::text AS table_name, x.relname::text AS name, i.indisvalid AS valid,
    NOT i.indisvalid AND EXISTS (
        SELECT FROM pg_locks AS l
        WHERE l.relation = i.indrelid
            AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
            AND l.mode = 'ShareUpdateExclusiveLock' AND l.granted AND l.pid <> pg_backend_pid()
            AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum AS v WHERE v.pid = l.pid)
    ) AS building
FROM pg_index AS i
JOIN pg_class AS x ON x.oid = i.indexrelid
JOIN pg_class AS c ON c.oid = i.indrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = ANY(%(tables)s::text[]) AND NOT i.indisprimary
ORDER BY x.relname
