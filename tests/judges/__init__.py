"""Judges outside this project: the providers' own rules, their real clients, and others' checks."""
