"""The worker: audits and sweeps on a schedule, on one replica at a time, shown over HTTP."""
