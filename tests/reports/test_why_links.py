"""The ways down from a cause hold all of its days: the first one and the last one too."""

from datetime import date
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from formulae.drivers import Cause
from planning.variance_records import CauseDay, CauseDetail, Opens
from reports.why import _days, _ways
from tests.builders import project

pytestmark = pytest.mark.django_db


class _Asked:
    basis = "billed"


def make_cause() -> CauseDetail:
    return CauseDetail(
        cause=Cause.STORAGE,
        cost=Decimal(5),
        facility_energy_kwh=None,
        kgco2e=None,
        driver=None,
        opens=Opens(
            start_on=date(2026, 9, 1),
            end_on=date(2026, 9, 15),  # the first day that is out, as the charges' page has it
            cost_classes=("storage_object",),
            days=(CauseDay(day=date(2026, 9, 14), cost=Decimal(5)),),
        ),
    )


def asked(href: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(href).query)


def test_the_charges_of_a_cause_are_those_of_all_its_days() -> None:
    variance: Any = _Asked()
    (way,) = _ways(project("moe"), make_cause(), variance, {})
    found = asked(way.href)
    assert (found["from"], found["to"]) == (["2026-09-01"], ["2026-09-15"])


def test_a_day_of_a_cause_opens_that_day() -> None:
    variance: Any = _Asked()
    (day,) = _days(project("moe"), make_cause(), variance)
    found = asked(day.href)
    assert (found["from"], found["to"]) == (["2026-09-14"], ["2026-09-15"])
