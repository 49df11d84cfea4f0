-- Never waited for on the server: whoever builds an index concurrently waits for every open
-- transaction, that of a waiting colleague too.
SELECT pg_try_advisory_lock(
    hashtextextended('repair-service store upgrade ' || %(schema)s::text, 0)
) AS held
