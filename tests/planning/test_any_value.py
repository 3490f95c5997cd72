"""Whatever stands under whichever key, a question is answered or refused by the name of a key."""

import copy
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.spec import SpecError
from tests.planning.builders import EXAMPLE, answer

pytestmark = pytest.mark.django_db

USD = {"amount": "2.50", "currency": "USD"}
COUNTS = {"params": 64e9, "active_params": 10e9, "layers": 32, "hidden": 4096, "window": 1024}
FULL: dict[str, Any] = EXAMPLE | {
    "draws": 200,
    "training_flop": 7.7e23,
    "batch_sequences": 2048,
    "peak_flop_per_s": 989.4e12,
    "power_w": 650,
    "price_ratio": {"low": 0.9, "mode": 1, "high": 1.2},
    "reliability": {"restart_s": 600, "checkpoint_interval_s": 3600},
    "lines": [
        {"key": "experiments", "fraction": "0.2"},
        {"key": "contingency", "fraction": "0.2", "base": "subtotal"},
        {"key": "data", "amount": USD},
    ],
    "storage": [{"tier": "hot", "terabytes": "10"}],
    "requests": [{"verb": "get", "count": 1_000_000}],
    "transfer": [{"kind": "nat", "terabytes": "3"}],
    "services": [{"kind": "support", "fraction_of_compute": "0.03"}],
}
OWN: dict[str, Any] = EXAMPLE | {
    "draws": 200,
    "model": COUNTS | {"recompute": "full", "teacher_params": 1e9, "frozen_params": 1e8},
    "price_per_accelerator_hour": None,
    "on_premises": {
        "capital_per_accelerator": USD | {"amount": "30000"},
        "life_years": 4,
        "utilisation_fraction": "0.8",
        "electricity_per_kwh": USD | {"amount": "0.1"},
    },
}
VALUES: list[Any] = [
    0, -1, 1, 0.5, 1e-12, 1e3, 1e6, 1e12, 1e18, 1e300, math.nan, math.inf, "", None, "x", "0",
    "0.4", "1e6", "1e-30", True, [], {}, {"low": 0, "mode": 0, "high": 0}, "9999-12-31",
    {"low": 0.1, "mode": 0.2, "high": 0.3}, {"low": 3, "mode": 2, "high": 1}, "0001-01-01",
    "aws:us-east-1", "NOR", "0." + "3" * 33, 10**40, 2**70,
]  # fmt: skip


def paths(document: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every key, however deep."""
    keys = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in keys:
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*above, key))


PLACES = [(base, path) for base in (FULL, OWN) for path in paths(base)]


def outcome(document: dict[str, Any]) -> str | set[str]:
    """The answer as plain JSON, or the keys that are refused."""
    try:
        return json.dumps(answer(document).document, allow_nan=False)
    except SpecError as refused:
        return set(refused.problems)


@settings(max_examples=300, deadline=None)
@given(place=st.sampled_from(PLACES), value=st.sampled_from(VALUES))
def test_any_value_under_any_key_is_answered_or_refused_by_name(
    place: tuple[dict[str, Any], tuple[str | int, ...]], value: Any
) -> None:
    base, path = place
    document = copy.deepcopy(base)
    inside: Any = document
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    said = outcome(document)
    assert said
    assert isinstance(said, str) or "spec" not in said
