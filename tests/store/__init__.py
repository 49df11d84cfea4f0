"""The store's room against a real Postgres."""
