"""What the schedule rings: own hardware gets its charges. No rule lives here."""

from celery import shared_task
from django.db import transaction

from planning.charging import ask_for_all


@shared_task(name="planning.charge_own_hardware")
def charge_own_hardware() -> int:
    """Ask for the charges of every site that has a rate card; return how many."""
    with transaction.atomic():
        return ask_for_all()
