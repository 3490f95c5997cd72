"""What the schedule rings: ask for the closing of hours that are over. No rule lives here."""

from celery import shared_task

from carbon.selectors import sites_with_open_hours
from carbon.services import enqueue_all_open


@shared_task(name="carbon.close_open_hours")
def close_open_hours() -> int:
    """Enqueue a closing job for every site with hours that are over and not closed."""
    return enqueue_all_open(sites_with_open_hours())
