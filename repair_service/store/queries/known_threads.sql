-- Those of some threads that have a row in any of the tables.
SELECT asked.thread_id
FROM unnest(%(threads)s::text[]) AS asked(thread_id)
WHERE EXISTS (SELECT FROM {schema}.checkpoints AS c WHERE c.thread_id = asked.thread_id)
    OR EXISTS (SELECT FROM {schema}.checkpoint_blobs AS b WHERE b.thread_id = asked.thread_id)
    OR EXISTS (SELECT FROM {schema}.checkpoint_writes AS w WHERE w.thread_id = asked.thread_id)
