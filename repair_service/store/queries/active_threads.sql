-- Of some threads, those that the operator's own query names. The query is a table in this
-- statement, so it can be nothing but a query; its first column is the thread's id.
SELECT DISTINCT running.thread_id::text AS thread_id
FROM (
{query}
) AS running(thread_id)
WHERE running.thread_id::text = ANY(%(threads)s::text[])
