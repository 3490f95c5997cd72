"""What the schedule rings: clear the lake of what killed jobs left. No rule lives here."""

from celery import shared_task
from django.utils import timezone

from billing.services import ask_for_all_refreshes, ask_for_due_pulls, sweep_lake


@shared_task(name="billing.sweep_lake")
def sweep() -> dict[str, int]:
    """Remove files of the lake that nothing refers to; return how many of each kind."""
    return sweep_lake()


@shared_task(name="billing.refresh_price_books")
def refresh_price_books() -> int:
    """Ask for a refresh of every book that a price feed fills; return how many."""
    return ask_for_all_refreshes()


@shared_task(name="billing.pull_due_sources")
def pull_due_sources() -> int:
    """Ask for a pull of every source whose time has come; return how many."""
    return ask_for_due_pulls(timezone.now())
