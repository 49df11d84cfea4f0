-- The number that initdb gave a server, and that its physical copies keep.
SELECT system_identifier::text AS system_identifier FROM pg_control_system()
