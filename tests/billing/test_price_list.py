"""The shipped list says of each price what it is, since when, and who published it."""

import re
from collections import Counter
from datetime import date
from decimal import Decimal

import pytest

from billing.price_list import shipped_prices
from billing.price_records import UNITS_OF
from billing.price_selectors import price_in_force
from formulae.money import Money
from runs.selectors import accelerators, instance_type
from tests.builders import organisation

OF_MACHINE = re.compile(r"^(.+) at ([0-9.]+) USD an hour over ([0-9]+) accelerators")


def test_every_price_has_a_source_and_its_date():
    assert all(one.source and one.source_date for one in shipped_prices())


def test_every_key_has_one_price_a_day():
    days = Counter((*one.key, one.valid_from) for one in shipped_prices())
    assert [key for key, count in days.items() if count > 1] == []


def test_every_unit_fits_its_class():
    assert all(one.unit in UNITS_OF[one.cost_class] for one in shipped_prices())


def test_every_accelerator_is_in_the_catalogue():
    known = {spec.key for spec in accelerators()} | {""}
    assert {one.accelerator_key for one in shipped_prices()} <= known


def test_the_price_of_an_accelerator_is_its_machines_share():
    checked = 0
    for one in shipped_prices():
        if found := OF_MACHINE.match(one.note):
            name, price, count = found.groups()
            assert one.price.amount * int(count) == Decimal(price), one
            catalogued = instance_type(one.provider, name)
            if catalogued is not None:
                assert catalogued.accelerator_count == int(count)
                assert catalogued.accelerator_key == one.accelerator_key
            checked += 1
    assert checked > 30


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("on", "question", "amount"),
    [
        ("2024-01-01", {"provider": "aws", "region": "us-east-1"}, "12.29"),
        ("2025-12-01", {"provider": "aws", "region": "us-east-1"}, "6.88"),
        ("2024-06-01", {"accelerator_key": "h800-sxm-80gb"}, "2"),
        ("2023-06-01", {"accelerator_key": "a100-sxm-40gb"}, "2"),
        ("2026-01-01", {"cost_class": "storage_object", "accelerator_key": ""}, "23"),
        ("2026-01-01", {"cost_class": "storage_archive", "accelerator_key": ""}, "1"),
        ("2026-01-01", {"cost_class": "request_get", "accelerator_key": ""}, "0.0004"),
        (
            "2026-01-01",
            {"cost_class": "request_put", "accelerator_key": "", "provider": "aws"},
            "0.005",
        ),
    ],
)
def test_published_prices_are_found(on, question, amount):
    asked = {"cost_class": "accelerator", "accelerator_key": "h100-sxm-80gb", **question}
    found = price_in_force(organisation().pk, on=date.fromisoformat(on), **asked)
    assert found is not None
    assert found.price == Money.of(amount, "USD")
