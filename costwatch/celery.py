"""The Celery app: its few tasks are doorbells. All state is in the jobs table."""

import os
from typing import Any

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "costwatch.settings")

app = Celery("costwatch")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["jobs", "carbon"])


@app.on_after_finalize.connect
def add_schedule(sender: Celery, **_kwargs: Any) -> None:
    """Give beat the order of the day."""
    from costwatch.schedule import SCHEDULE

    for entry in SCHEDULE:
        sender.add_periodic_task(entry.every_s, sender.signature(entry.task), name=entry.name)
