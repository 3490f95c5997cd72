"""The queue of record: jobs, leases, progress, the outbox. Celery only rings."""
