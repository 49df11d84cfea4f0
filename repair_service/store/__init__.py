"""SQL: scans the heads of a store, loads the rows of a thread, appends one checkpoint."""
