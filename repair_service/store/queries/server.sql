-- Who we are and where. Seen from the server: its process and the port we come from.
SELECT current_setting('server_version') AS server_version,
    current_user::text AS role,
    current_database()::text AS database,
    pg_backend_pid() AS backend_pid,
    inet_client_port() AS client_port,
    extract(epoch FROM clock_timestamp())::float8 AS clock,
    pg_is_in_recovery() AS in_recovery,
    current_setting('server_encoding') AS encoding
