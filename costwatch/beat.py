"""The Celery app of the scheduler alone. It only rings, so it loads no room and stays small."""

from celery import Celery

from costwatch import settings
from costwatch.schedule import SCHEDULE

app = Celery("costwatch-beat", broker=settings.REDIS_URL, fixups=[], set_as_current=False)
app.conf.update(
    timezone="UTC",
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    broker_transport_options=settings.CELERY_BROKER_TRANSPORT_OPTIONS,
    worker_hijack_root_logger=False,
    beat_schedule={
        entry.name: {"task": entry.task, "schedule": entry.every_s} for entry in SCHEDULE
    },
)
