"""Threads from one store to another: rows as COPY sends them, and a digest of either side."""
