"""The worker: runs audits and sweeps on a schedule, one replica at a time, and shows them over HTTP."""
