-- How much of the table stands before a thread id, by the planner's own histogram of the column: its
-- bounds cut the rows into equal parts. No row where the table was never analysed, or is small.
SELECT count(*) FILTER (WHERE bound.thread_id <= %(thread)s::text)::float8 / count(*) AS share
FROM pg_stats AS s
CROSS JOIN LATERAL unnest(s.histogram_bounds::text::text[]) AS bound(thread_id)
WHERE s.schemaname = %(schema)s AND s.tablename = 'checkpoints' AND s.attname = 'thread_id'
HAVING count(*) > 0
