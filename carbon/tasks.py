"""What the schedule rings: close hours that are over, sweep old files. No rule lives here."""

from celery import shared_task
from django.utils import timezone

from carbon.batches import sweep_batches
from carbon.booking import enqueue_all_waiting
from carbon.deliveries import sweep_files
from carbon.intensity_feeds import ask_for_due_pulls
from carbon.promql_pulls import enqueue_due
from carbon.selectors import sites_with_open_hours
from carbon.services import enqueue_all_open


@shared_task(name="carbon.close_open_hours")
def close_open_hours() -> int:
    """Enqueue a closing job for every site with hours that are over and not closed."""
    return enqueue_all_open(sites_with_open_hours())


@shared_task(name="carbon.book_waiting")
def book_waiting() -> int:
    """Ask workers to book what waits at sites, whoever forgot to ring."""
    return enqueue_all_waiting()


@shared_task(name="carbon.sweep_files")
def sweep() -> int:
    """Remove power files that were stored long ago, and notes of batches that nobody repeats."""
    return sweep_files() + sweep_batches(now=timezone.now())


@shared_task(name="carbon.pull_due_servers")
def pull_due_servers() -> int:
    """Enqueue a job for every Prometheus-like server that is to be asked."""
    return enqueue_due()


@shared_task(name="carbon.pull_due_intensity")
def pull_due_intensity() -> int:
    """Enqueue a pull of every source of grid intensity that is due."""
    return ask_for_due_pulls(timezone.now())
