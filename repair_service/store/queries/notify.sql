-- Tells who listens, once the open transaction is committed.
SELECT pg_notify(%(channel)s, %(payload)s)
