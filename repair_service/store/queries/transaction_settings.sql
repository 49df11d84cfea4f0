-- Bounds for this transaction only: a session's settings do not survive a transaction pooler. The
-- planner takes an array of some hundred keys for a great deal of work, which compiling would make
-- slower than it is.
SELECT set_config('statement_timeout', %(statement_timeout)s::text, true) AS statement_timeout,
    set_config('lock_timeout', %(lock_timeout)s::text, true) AS lock_timeout,
    set_config('jit', 'off', true) AS jit
