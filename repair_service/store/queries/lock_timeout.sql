SELECT set_config('lock_timeout', %(lock_timeout)s::text, false) AS lock_timeout
