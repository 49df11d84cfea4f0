"""The tests, which read as the specification."""
