"""A run for its readers: as a table for people, as JSON and JSON lines for programs."""
