-- Seconds that replicas are behind in applying what was written: those that this server feeds, and
-- this one itself where it is a replica. One that has applied all that it received is not behind,
-- as long as it is being fed; so a quiet primary makes no lag.
SELECT max(extract(epoch FROM r.replay_lag))::float8 AS of_replicas,
    count(*) AS replicas,
    pg_is_in_recovery() AS in_recovery,
    CASE
        WHEN NOT pg_is_in_recovery() THEN NULL
        WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()
            AND EXISTS (SELECT FROM pg_stat_wal_receiver AS w WHERE w.pid IS NOT NULL)
            THEN 0
        ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())
    END::float8 AS own,
    pg_has_role('pg_read_all_stats', 'USAGE') AS seen
FROM pg_stat_replication AS r
