"""Own hardware becomes charges: hours by depreciation, kWh by the tariff, staff by the month."""

from datetime import date
from decimal import Decimal

import pytest

from billing.models import DailyCost, Delivery, Source
from billing.own_records import MeteredDay, OwnRateCard
from billing.records import ChargesRefusedError
from billing.services.own_hardware import charge_own_hardware
from jobs.services import run_job
from tests.billing.builders import by, operator, total

pytestmark = pytest.mark.django_db

CARD = OwnRateCard(
    currency="USD",
    capital_per_accelerator=Decimal(43800),  # five years: one dollar an hour
    life_years=Decimal(5),
    electricity_per_kwh=Decimal("0.08"),
    staff_per_month=Decimal("1000.10"),
)


def metered(**changes) -> MeteredDay:
    usual = {
        "day": date(2026, 5, 4),
        "site": "hall-1",
        "device_id": "GPU-1",
        "accelerator": "h100-sxm-80gb",
        "used_h": Decimal(20),
        "idle_h": Decimal(4),
        "facility_energy_kwh": Decimal("15.5"),
        "run_key": "run-7",
    }
    return MeteredDay(**{**usual, **changes})


def charged(*days: MeteredDay, card: OwnRateCard = CARD) -> Delivery:
    receipt = charge_own_hardware(
        operator(), source_name="hall", month="2026-05", days=days, card=card
    )
    run_job(receipt.job_id)
    return Delivery.objects.get(pk=receipt.delivery_id)


def test_a_metered_day_costs_its_hours_its_kwh_and_the_month_its_staff():
    delivery = charged(metered())

    assert delivery.state == Delivery.State.PUBLISHED, delivery.refusal
    assert total() == Decimal("24") + Decimal("1.240") + Decimal("1000.10")
    assert by("x_cost_class")["accelerator"] == Decimal(24)
    assert delivery.source.kind == Source.Kind.OWN_HARDWARE


def test_used_and_idle_hours_are_told_apart():
    charged(metered())

    hours = DailyCost.objects.filter(x_cost_class="accelerator").values_list(
        "x_accelerator", "accelerator_h", "idle_accelerator_h"
    )
    assert {name for name, _, _ in hours} == {"h100-sxm-80gb"}
    assert sum(used for _, used, _ in hours) == 24
    assert sum(idle or 0 for _, _, idle in hours) == 4


def test_missing_energy_is_no_charge_of_zero():
    charged(metered(facility_energy_kwh=None))

    assert "other" in by("x_cost_class")  # staff
    assert total() == Decimal(24) + Decimal("1000.10")


def test_the_same_records_are_nothing_new_and_others_restate_the_month():
    first = charged(metered())
    again = charged(metered())
    restated = charged(metered(used_h=Decimal(10)), metered(device_id="GPU-2", idle_h=Decimal(0)))

    assert again.pk == first.pk
    assert restated.pk != first.pk
    energy = 2 * Decimal("1.240")
    assert total() == Decimal(10 + 4 + 20) + energy + Decimal("1000.10")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"used_h": Decimal(-1)}, "used_h"),
        ({"used_h": Decimal(23), "idle_h": Decimal(2)}, "used_h"),
        ({"day": date(2026, 6, 1)}, "day"),
        ({"facility_energy_kwh": Decimal("NaN")}, "facility_energy_kwh"),
    ],
)
def test_a_record_that_cannot_be_is_refused_by_name(changes, named):
    with pytest.raises(ChargesRefusedError) as refusal:
        charged(metered(**changes))

    assert refusal.value.column == named
    assert refusal.value.row == 1
    assert not Delivery.objects.exists()


def test_a_rate_card_without_a_life_is_refused():
    card = OwnRateCard(
        currency="USD",
        capital_per_accelerator=Decimal(1),
        life_years=Decimal(0),
        electricity_per_kwh=Decimal(0),
    )
    with pytest.raises(ChargesRefusedError, match="life_years"):
        charged(metered(), card=card)


def test_going_back_to_earlier_records_restates_the_month_too():
    first = metered()
    charged(first)
    charged(metered(used_h=Decimal(10), idle_h=Decimal(0)))
    charged(first)

    assert total() == Decimal(24) + Decimal("1.240") + Decimal("1000.10")


def test_a_device_has_no_more_than_a_day_a_day():
    with pytest.raises(ChargesRefusedError, match="exceed 24"):
        charged(metered(), metered(run_key="run-8"))


def test_hardware_that_the_catalogue_does_not_know_counts_its_hours_all_the_same():
    charged(metered(accelerator="in-house-1"), metered(accelerator="accelerator", device_id="2"))

    assert by("x_cost_class")["accelerator"] == Decimal(48)
    rows = DailyCost.objects.filter(x_cost_class="accelerator")
    assert sum(row.accelerator_h for row in rows) == 48
    assert sum(row.idle_accelerator_h or 0 for row in rows) == 8
