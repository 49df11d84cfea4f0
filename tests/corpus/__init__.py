"""Threads that real programs left behind, as rows: see loader.py."""
