"""Diagnosis and patch: what is wrong with a head, and what is to be done about it."""
