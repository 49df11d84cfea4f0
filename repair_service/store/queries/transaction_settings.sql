-- Bounds for this transaction only: a session's settings do not survive a transaction pooler.
SELECT set_config('statement_timeout', %(statement_timeout)s::text, true) AS statement_timeout,
    set_config('lock_timeout', %(lock_timeout)s::text, true) AS lock_timeout
