"""The worker over HTTP: probes, metrics, pages, a JSON API, and what may be asked of it."""
