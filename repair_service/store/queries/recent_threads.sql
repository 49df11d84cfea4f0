-- Thread ids from blocks spread evenly over the table, the most recently used first. The same table
-- gives the same sample, so that an audit and the sweep behind it learn the same.
SELECT sampled.thread_id
FROM (
    SELECT c.thread_id, c.checkpoint_id
    FROM {schema}.checkpoints AS c TABLESAMPLE SYSTEM (%(percent)s::real) REPEATABLE (0)
) AS sampled
GROUP BY sampled.thread_id
ORDER BY max(sampled.checkpoint_id) DESC, sampled.thread_id
LIMIT %(limit)s
