-- Our own workers exclude each other by thread until the transaction ends. The application's
-- single-key locks live in another space; the first key sets us apart from its two-key ones.
SELECT pg_try_advisory_xact_lock(%(space)s::integer, %(thread)s::integer) AS locked
