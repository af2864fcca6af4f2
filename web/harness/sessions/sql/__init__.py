"""Sessions, events, records and blobs in SQLite and PostgreSQL; `web.harness.sessions.opening`."""
