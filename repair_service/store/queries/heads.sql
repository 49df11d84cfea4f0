-- The newest checkpoint of each namespace of some threads, the last namespace of a thread first:
-- from one head the index is entered once more, before the namespace that it stands in. Under every
-- collation the empty text is the first.
WITH RECURSIVE wanted AS (
    SELECT DISTINCT asked.thread_id FROM unnest(%(threads)s::text[]) AS asked(thread_id)
),
head AS (
    SELECT newest.thread_id, newest.checkpoint_ns, newest.checkpoint_id
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id
        FROM {schema}.checkpoints AS c
        WHERE c.thread_id = wanted.thread_id
        ORDER BY c.thread_id DESC, c.checkpoint_ns DESC, c.checkpoint_id DESC
        LIMIT 1
    ) AS newest
    UNION ALL
    SELECT newest.thread_id, newest.checkpoint_ns, newest.checkpoint_id
    FROM head
    CROSS JOIN LATERAL (
        SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id
        FROM {schema}.checkpoints AS c
        WHERE c.thread_id = head.thread_id AND c.checkpoint_ns < head.checkpoint_ns
        ORDER BY c.thread_id DESC, c.checkpoint_ns DESC, c.checkpoint_id DESC
        LIMIT 1
    ) AS newest
    WHERE head.checkpoint_ns <> ''
)
SELECT head.thread_id, head.checkpoint_ns, head.checkpoint_id FROM head
