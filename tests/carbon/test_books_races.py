"""Two people at once: the later one sees what the earlier one did, on connections of their own."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction

from carbon.instruments import InstrumentError
from carbon.models import Instrument, PeriodLock
from carbon.sign_off import LockError, approve_period, prepare_period
from projects.access import system_actor
from tests.builders import organisation
from tests.carbon.book_builders import certificate, hall, used
from tests.carbon.builders import NOW, START

pytestmark = pytest.mark.django_db(transaction=True)
DAY = timedelta(days=1)


def signer(name):
    return system_actor(organisation().pk, name)


def beside(first, second):
    """What `second` comes to when it starts while the transaction of `first` is open."""
    came_to = []

    def run():
        try:
            came_to.append(second())
        except ValueError as error:
            came_to.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=run)
    with transaction.atomic():
        first()
        other.start()
        until = time.monotonic() + 20
        while other.is_alive() and not _somebody_waits() and time.monotonic() < until:
            time.sleep(0.01)
    other.join(20)
    assert not other.is_alive()
    return came_to[0]


def _somebody_waits():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database()))"
        )
        return cursor.fetchone()[0]


@pytest.fixture
def place(tmp_path):
    found = hall(grid_g_per_kwh=400)
    used(tmp_path, *[10.0] * 72)
    return found


def test_of_two_overlapping_periods_approved_at_once_one_is_locked(place):
    early = prepare_period(signer("ada"), START, START + 2 * DAY, now=NOW)
    late = prepare_period(signer("ada"), START + DAY, START + 3 * DAY, now=NOW)
    came_to = beside(
        lambda: approve_period(signer("rita"), early, now=NOW),
        lambda: approve_period(signer("eve"), late, now=NOW),
    )
    assert isinstance(came_to, LockError)
    assert "locked already" in str(came_to)
    assert [row.pk for row in PeriodLock.objects.filter(approved_at__isnull=False)] == [early]


def test_one_of_two_certificates_with_the_same_serials_counts(place):
    came_to = beside(
        lambda: certificate(registry="AIB", serials="GO-1 to GO-9"),
        lambda: certificate(registry="aib", serials="GO-9", name="again"),
    )
    assert isinstance(came_to, InstrumentError)
    assert "count already" in str(came_to)
    assert Instrument.objects.count() == 1


def test_a_contract_that_comes_beside_an_approval_is_refused(place):
    lock_id = prepare_period(signer("ada"), START, START + DAY, now=NOW)
    came_to = beside(lambda: approve_period(signer("rita"), lock_id, now=NOW), certificate)
    assert isinstance(came_to, InstrumentError)
    assert "is locked" in str(came_to)


def test_a_contract_since_the_preparation_asks_for_another_one(place):
    lock_id = prepare_period(signer("ada"), START, START + DAY, now=NOW)
    certificate()
    with pytest.raises(LockError, match="changed since"):
        approve_period(signer("rita"), lock_id, now=NOW)
