"""What the schedule rings: clear the lake of what killed jobs left. No rule lives here."""

from celery import shared_task

from billing.services import sweep_lake


@shared_task(name="billing.sweep_lake")
def sweep() -> dict[str, int]:
    """Remove files of the lake that nothing refers to; return how many of each kind."""
    return sweep_lake()
