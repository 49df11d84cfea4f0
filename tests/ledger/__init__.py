"""The ledger, against a real Postgres."""
