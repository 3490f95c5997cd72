"""The demo's files are the same bytes for a seed, and the ledger states exactly what they say."""

import csv
import gzip
import io
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pytest

from costwatch.demo import story
from costwatch.demo.charges import build_bills
from costwatch.demo.focus import COLUMNS, BillFile
from costwatch.demo.ledger import ChargeLedger, EnergyLedger
from costwatch.demo.noise import bell, uniform
from costwatch.demo.power import PowerFile, build_power
from formulae.compute import accelerator_hours, training_flop

COSTS = {
    "BilledCost": "billed_cost",
    "EffectiveCost": "effective_cost",
    "ListCost": "list_cost",
    "ContractedCost": "contracted_cost",
}


@pytest.fixture(scope="module")
def bills() -> tuple[tuple[BillFile, ...], ChargeLedger]:
    return build_bills(7)


@pytest.fixture(scope="module")
def power() -> tuple[tuple[PowerFile, ...], EnergyLedger]:
    return build_power(7)


@pytest.fixture(scope="module")
def charges(bills) -> list[dict[str, str]]:
    """Every row of every bill."""
    texts = [gzip.decompress(file.content).decode() for file in bills[0]]
    return [row for text in texts for row in csv.DictReader(io.StringIO(text))]


@pytest.fixture(scope="module")
def samples(power) -> pa.Table:
    """Every row of every power file, as text but for the energy."""
    return pa.concat_tables(
        pa_csv.read_csv(
            io.BytesIO(gzip.decompress(file.content)),
            convert_options=pa_csv.ConvertOptions(column_types={"start": pa.string()}),
        )
        for file in power[0]
    )


def test_a_seed_gives_the_same_bytes_again(bills, power):
    assert build_bills(7)[0] == bills[0]
    assert build_power(7)[0] == power[0]


def test_another_seed_gives_other_bytes(bills, power):
    assert build_bills(8)[0] != bills[0]
    assert build_power(8)[0] != power[0]


def test_noise_stays_what_it_was():
    # Copied once: a change of these would change every demo that exists.
    expected = [0.11980685470544761, 0.9828498623451173]
    assert uniform(seed=2026, stream=1, count=2).tolist() == expected
    dice = bell(seed=2026, stream=1, count=20_000)
    assert abs(dice.mean()) < 0.02
    assert dice.std() == pytest.approx(1.0, abs=0.02)


def test_the_ledger_states_the_sum_of_the_files_own_decimal_text(bills, charges):
    files, ledger = bills
    total = ledger.total()
    for column, attribute in COSTS.items():
        written = sum((Decimal(row[column]) for row in charges), Decimal(0))
        assert written == getattr(total, attribute), column
    assert total.rows == len(charges) == sum(file.rows for file in files)


def test_the_ledger_knows_each_project_and_day(bills, charges):
    ledger = bills[1]
    by_day: dict[tuple[date, bool], Decimal] = defaultdict(Decimal)
    for row in charges:
        is_ours = (
            row["SubAccountId"] in (story.TRAIN_ACCOUNT, story.GCP_ACCOUNT)
            or story.PROJECT_SLUG in row["Tags"]
        )
        day = date.fromisoformat(row["ChargePeriodStart"][:10])
        by_day[day, is_ours] += Decimal(row["BilledCost"])
    stated: dict[tuple[date, bool], Decimal] = defaultdict(Decimal)
    for key, cost in ledger.costs.items():
        stated[key.day, key.project == story.PROJECT_SLUG] += cost.billed_cost
    assert stated == by_day


def test_every_charge_lies_in_its_billing_month_and_before_the_bill_ends(charges):
    for row in charges:
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"]
        assert row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
        assert row["ChargePeriodEnd"] <= story.BILLED_UNTIL.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_prices_times_quantities_are_the_costs(charges):
    for row in charges:
        if not row["ListUnitPrice"]:
            continue
        quantity = Decimal(row["PricingQuantity"])
        assert Decimal(row["ListUnitPrice"]) * quantity == Decimal(row["ListCost"])
        assert Decimal(row["ContractedUnitPrice"]) * quantity == Decimal(row["ContractedCost"])


def test_every_id_is_visibly_synthetic(charges):
    for row in charges:
        assert "demo" in row["BillingAccountId"]
        assert "demo" in row["SubAccountId"]
        assert not row["ResourceId"] or "demo" in row["ResourceId"]
        assert tuple(row) == COLUMNS


def test_the_story_is_in_the_bills(bills):
    ledger = bills[1]
    classes = {key.x_cost_class for key in ledger.costs}
    assert classes == {
        "accelerator", "other_compute", "storage_file", "storage_block", "storage_object",
        "storage_archive", "request_get", "request_put", "egress", "transfer_inter_region",
        "transfer_intra_region", "logging", "support", "tax", "credit", "refund",
    }  # fmt: skip
    assert ledger.of_project(None).billed_cost > 0
    gets = {
        key.day: cost.billed_cost
        for key, cost in ledger.costs.items()
        if key.x_cost_class == "request_get"
    }
    slow, normal = story.SLOW_WEEK_START.date(), date(2026, 11, 2)
    assert gets[slow] > 10 * gets[normal]


def test_a_full_day_of_the_main_run_costs_the_fleet_at_the_price_of_the_day(bills):
    ledger = bills[1]
    for day, price_per_gpu_h in ((date(2026, 10, 18), "3.10"), (date(2026, 10, 19), "3.35")):
        fleet = [
            cost
            for key, cost in ledger.costs.items()
            if (key.day, key.provider, key.x_cost_class) == (day, "AWS", "accelerator")
        ]
        assert [cost.accelerator_h for cost in fleet] == [256 * 24]
        assert [cost.billed_cost for cost in fleet] == [256 * 24 * Decimal(price_per_gpu_h)]


def test_the_energy_ledger_states_the_sum_of_the_samples(power, samples):
    files, ledger = power
    energy_millijoule = pc.sum(samples["energy_millijoule"]).as_py()
    assert energy_millijoule == ledger.accelerator_energy_millijoule
    assert samples.num_rows == sum(day.covered_device_h for day in ledger.days.values())
    assert samples.num_rows == sum(file.rows for file in files)


def test_coverage_is_below_one_and_says_where(power):
    ledger = power[1]
    assert 0.98 < ledger.coverage_fraction < 1
    outage = ledger.days[story.METER_OUTAGE_START.date()]
    assert outage.assigned_device_h == 256 * 24
    assert outage.covered_device_h <= 256 * 18
    assert sum(day.assigned_device_h for day in ledger.days.values()) == 256 * 24 * 63 + 128 * 504


def test_training_idling_and_the_slow_week_draw_what_they_should(power):
    def mean_w(day: date) -> float:
        energy = power[1].days[day]
        return energy.accelerator_energy_millijoule / 3.6e6 / energy.covered_device_h

    assert mean_w(date(2026, 9, 20)) == pytest.approx(650, abs=3)
    assert mean_w(date(2026, 10, 7)) == pytest.approx(505, abs=3)
    assert mean_w(date(2026, 10, 27)) == pytest.approx((650 * 3 + 90 * 21) / 24, abs=5)


def test_no_device_reports_an_hour_twice_or_more_than_its_limit(samples):
    keys = samples.group_by(["start", "device_uuid"]).aggregate([])
    assert keys.num_rows == samples.num_rows
    assert pc.max(samples["energy_millijoule"]).as_py() <= 700 * 3_600_000


def test_the_plan_takes_about_72_days():
    gpu_h = accelerator_hours(
        flop=training_flop(story.ACTIVE_PARAMETERS, story.TRAINING_TOKENS),
        peak_flop_per_s=story.H100_DENSE_BF16_FLOP_PER_S,
        mfu=story.PLANNED_MFU,
        goodput=story.PLANNED_GOODPUT_FRACTION,
    )
    planned = timedelta(hours=gpu_h / story.ACCELERATOR_COUNT)
    assert planned / timedelta(days=1) == pytest.approx(72.5, abs=0.1)
    assert (story.MAIN_RUN_START + planned).date() == datetime(2026, 11, 25, tzinfo=UTC).date()
