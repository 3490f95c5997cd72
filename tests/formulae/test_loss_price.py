"""What lost time costs, against cases worked by hand."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae.loss_price import LossPrice, lost_accelerator_h, price_of_loss
from formulae.units import QuantityError

# 256 GPUs at $2.50 an hour, 0.65 kW each, PUE 1.2, 400 g/kWh.
BASIS = {
    "price_per_accelerator_h": Decimal("2.50"),
    "accelerator_kw": Decimal("0.65"),
    "host_factor": Decimal(1),
    "pue": Decimal("1.2"),
    "intensity_g_per_kwh": Decimal(400),
}
some = st.decimals(min_value=0, max_value=10**6, places=6)


def shown(price: LossPrice) -> tuple[str, str, str]:
    return f"{price.cost:.2f}", f"{price.facility_kwh:.2f}", f"{price.kgco2e:.2f}"


def test_a_cluster_hour_that_is_lost_costs_640_dollars_200_kwh_and_80_kg() -> None:
    lost = lost_accelerator_h(accelerators=256, hours=Decimal(1))
    price = price_of_loss(lost_accelerator_h=lost, **BASIS)
    assert price.cost == Decimal("640.00")
    assert price.facility_kwh == Decimal("199.68")
    assert price.kgco2e == Decimal("79.872")


def test_six_hours_at_35_instead_of_55_percent_cost_what_was_worked_by_hand() -> None:
    lost = lost_accelerator_h(
        accelerators=256, hours=Decimal(6), rate=Decimal("0.35"), baseline=Decimal("0.55")
    )
    price = price_of_loss(lost_accelerator_h=lost, **BASIS)
    assert f"{lost:.1f}" == "558.5"
    assert f"{price.cost:.2f} {price.facility_kwh:.1f} {price.kgco2e:.1f}" == "1396.36 435.7 174.3"


def test_a_loader_at_twice_its_limit_costs_a_tenth_of_the_cluster() -> None:
    lost = lost_accelerator_h(accelerators=256, hours=Decimal(1), rate=Decimal("0.9"))
    assert lost == Decimal("25.6")
    assert price_of_loss(lost_accelerator_h=lost, **BASIS).cost == Decimal("64.00")


@pytest.mark.parametrize(
    ("missing", "unknown"),
    [
        ("price_per_accelerator_h", {"cost"}),
        ("accelerator_kw", {"facility_kwh", "kgco2e"}),
        ("host_factor", {"facility_kwh", "kgco2e"}),
        ("pue", {"facility_kwh", "kgco2e"}),
        ("intensity_g_per_kwh", {"kgco2e"}),
    ],
)
def test_what_lacks_an_input_is_not_priced_and_not_free(missing: str, unknown: set[str]) -> None:
    price = price_of_loss(lost_accelerator_h=Decimal(1), **(BASIS | {missing: None}))
    assert {name for name in LossPrice.__slots__ if getattr(price, name) is None} == unknown


@given(st.integers(0, 10**5), some, some, some.filter(lambda value: value > 0))
def test_what_is_lost_and_what_is_left_are_the_whole(
    accelerators: int, hours: Decimal, rate: Decimal, baseline: Decimal
) -> None:
    lost = lost_accelerator_h(accelerators=accelerators, hours=hours, rate=rate, baseline=baseline)
    assert 0 <= lost <= accelerators * hours
    assert (lost == 0) or rate < baseline


@given(some, some)
def test_losses_that_are_priced_apart_cost_what_they_cost_together(
    one: Decimal, other: Decimal
) -> None:
    def cost(hours: Decimal) -> Decimal:
        return price_of_loss(lost_accelerator_h=hours, **BASIS).cost or Decimal(0)

    assert cost(one) + cost(other) == cost(one + other)


@pytest.mark.parametrize(
    ("accelerators", "hours", "rate", "baseline"),
    [(-1, 1, 0, 1), (1, -1, 0, 1), (1, 1, -1, 1), (1, 1, 0, 0)],
)
def test_a_quantity_that_cannot_be_is_refused(
    accelerators: int, hours: int, rate: int, baseline: int
) -> None:
    with pytest.raises(QuantityError, match="at least 0"):
        lost_accelerator_h(
            accelerators=accelerators,
            hours=Decimal(hours),
            rate=Decimal(rate),
            baseline=Decimal(baseline),
        )


def test_lost_hours_below_zero_are_refused() -> None:
    with pytest.raises(QuantityError, match="at least 0"):
        price_of_loss(lost_accelerator_h=Decimal(-1), **BASIS)
