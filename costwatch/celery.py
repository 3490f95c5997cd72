"""The workers' Celery app: its few tasks are doorbells, all state is in the jobs table."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "costwatch.settings")

app = Celery("costwatch")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["jobs", "carbon", "billing", "planning"])
