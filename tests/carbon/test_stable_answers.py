"""What the books said as of an instant they say for good, also while somebody posts."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction

from carbon.checks import verify
from carbon.instants import announce, settled
from carbon.models import EmissionEntry
from carbon.selectors import emissions_summary
from carbon.services import repost_site
from projects.records import OrganisationRole
from tests.builders import organisation, person, signed_in
from tests.carbon.book_builders import hall, used
from tests.carbon.builders import NOW, factor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def place(tmp_path):
    found = hall(grid_g_per_kwh=400)
    used(tmp_path, *[10.0] * 30)
    return found


class Posting(threading.Thread):
    """A repost of a site on a connection of its own, which stays open until it is told to end."""

    def __init__(self, place):
        super().__init__()
        self.place, self.posted, self.may_end = place, threading.Event(), threading.Event()

    def run(self):
        try:
            with transaction.atomic():
                repost_site(self.place, now=None)
                self.posted.set()
                self.may_end.wait(20)
        finally:
            connection.close()

    def __enter__(self):
        self.start()
        assert self.posted.wait(20)
        return self

    def __exit__(self, *_):
        self.may_end.set()
        self.join(20)
        assert not self.is_alive()


def location_kg(as_of):
    found = emissions_summary(organisation().pk, None, as_of=as_of)
    return found.scope_2_location_kgco2e


def test_an_answer_given_during_a_posting_is_given_again_after_it(place):
    factor(place, "grid_g_per_kwh", 500)
    with Posting(place):
        asked = datetime.now(UTC) + timedelta(minutes=5)  # far in its future
        as_of = settled(asked)
        assert as_of < asked
        before = location_kg(as_of)
    assert location_kg(as_of) == before == pytest.approx(120)
    assert location_kg(settled(asked)) == pytest.approx(150)
    assert verify(organisation().pk) == ()


def test_a_posting_that_begins_after_the_question_is_known_after_it(place):
    factor(place, "grid_g_per_kwh", 500)
    as_of = settled(datetime.now(UTC))
    before = location_kg(as_of)
    repost_site(place, now=None)
    assert location_kg(as_of) == before
    newest = EmissionEntry.objects.order_by("-posted_at").first()
    assert newest.posted_at > as_of


def test_every_window_of_a_long_posting_is_known_from_its_own_commit_on(place, monkeypatch):
    monkeypatch.setattr("carbon.closing.DEVICE_HOURS_AT_ONCE", 10)
    factor(place, "grid_g_per_kwh", 500)
    repost_site(place, now=None)
    instants = EmissionEntry.objects.filter(reverses__isnull=False).values_list("posted_at")
    assert len(set(instants)) == 3


def test_instants_that_are_past_and_over_stay_as_they_were_asked():
    assert settled(NOW) == NOW
    with transaction.atomic():
        told = announce(NOW)
        assert told == NOW
        asked = datetime.now(UTC)
        assert settled(asked) == asked  # one's own writing is seen anyway


def test_the_answer_says_as_of_when_it_is(place):
    client = signed_in(person("ada", role=OrganisationRole.ADMIN))
    asked = (datetime.now(UTC) + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    factor(place, "grid_g_per_kwh", 500)
    with Posting(place):
        during = client.get("/api/v1/sites/hall-1/energy", {"as_of": asked}).json()
    assert during["as_of"] < asked
    assert during["total"]["scope_2_location_kgco2e"] == pytest.approx(120)
    again = client.get("/api/v1/sites/hall-1/energy", {"as_of": during["as_of"]}).json()
    assert again == during
