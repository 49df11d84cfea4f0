-- For a session of its own: an index that is built concurrently stands in no transaction, and may
-- take hours.
SELECT set_config('search_path', quote_ident(%(schema)s::text), false) AS search_path,
    set_config('statement_timeout', '0', false) AS statement_timeout
