"""The service's own tables: what was found, what was written, by whom, and the way back."""
