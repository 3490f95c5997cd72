"""What beat rings, workers answer."""

import pytest

from costwatch.celery import app
from costwatch.schedule import SCHEDULE


@pytest.mark.parametrize("task", sorted({entry.task for entry in SCHEDULE}))
def test_workers_know_every_task_of_the_schedule(task: str) -> None:
    app.loader.import_default_modules()

    assert task in app.tasks
