"""Accruals: no hour counts twice, a settled day is the bill's, an unknown rate stays unknown."""

from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from formulae.time_ledger import HOUR_MICROSECOND
from planning.accrual_records import DeviceDay, Rate, RateBasis
from planning.accrual_rules import (
    QUIET_DAYS,
    accrual_error,
    accrued_accelerators,
    accrued_running_costs,
    hours_of,
    settled_through,
)

DAY = date(2026, 11, 14)
SITES = (UUID(int=1), UUID(int=2))
RATE = Rate(amount=Decimal("2.5"), currency="USD", basis=RateBasis.OWN_PRICE)


def make_day(
    day: date = DAY, *, hours: int = 24, site: UUID = SITES[0], key: str = "h100-sxm-80gb"
) -> DeviceDay:
    return DeviceDay(
        day=day,
        site_id=site,
        provider="aws",
        region="us-west-2",
        accelerator_key=key,
        allocated_microsecond=hours * HOUR_MICROSECOND,
    )


def test_the_last_day_of_a_bill_is_not_settled_yet() -> None:
    assert settled_through({"AWS": DAY}) == DAY - timedelta(days=1)


def test_the_latest_of_several_providers_is_waited_for_unless_it_is_used_no_more() -> None:
    late = DAY - timedelta(days=5)
    gone = DAY - timedelta(days=QUIET_DAYS + 1)
    assert settled_through({"AWS": DAY, "CoreWeave": late}) == late - timedelta(days=1)
    assert settled_through({"AWS": DAY, "Lambda": gone}) == DAY - timedelta(days=1)
    assert settled_through({}) is None


def test_hours_on_no_bill_are_accrued_at_their_rate() -> None:
    (one,) = accrued_accelerators(
        [make_day(hours=6144)], billed_h={}, settled=None, rate_of=lambda _: RATE, currency="USD"
    )
    assert (one.quantity, one.cost) == (Decimal(6144), Decimal("15360"))
    assert one.rate == RATE


def test_a_settled_day_accrues_nothing_even_where_the_bill_tells_of_fewer_hours() -> None:
    assert not accrued_accelerators(
        [make_day()],
        billed_h={DAY: Decimal(1)},
        settled=DAY,
        rate_of=lambda _: RATE,
        currency="USD",
    )


def test_hours_without_a_rate_have_no_cost_rather_than_none_to_pay() -> None:
    (one,) = accrued_accelerators(
        [make_day()], billed_h={}, settled=None, rate_of=lambda _: None, currency="EUR"
    )
    assert (one.cost, one.rate, one.currency) == (None, None, "EUR")


@given(
    ran=st.lists(
        st.builds(
            make_day,
            st.integers(0, 6).map(lambda offset: DAY + timedelta(days=offset)),
            hours=st.integers(1, 10_000),
            site=st.sampled_from(SITES),
            key=st.sampled_from(["a", "b", ""]),
        ),
        max_size=20,
    ),
    billed=st.dictionaries(
        st.integers(0, 6).map(lambda offset: DAY + timedelta(days=offset)),
        st.decimals(0, 30_000, places=9),
    ),
    settled=st.none() | st.integers(-1, 6).map(lambda offset: DAY + timedelta(days=offset)),
)
def test_billed_and_accrued_hours_of_a_day_are_those_that_ran_or_what_was_billed(
    ran: list[DeviceDay], billed: dict[date, Decimal], settled: date | None
) -> None:
    found = accrued_accelerators(
        ran, billed_h=billed, settled=settled, rate_of=lambda _: RATE, currency="USD"
    )
    turned = accrued_accelerators(
        ran[::-1], billed_h=billed, settled=settled, rate_of=lambda _: RATE, currency="USD"
    )
    assert sum(one.quantity for one in found) == sum(one.quantity for one in turned)
    for day in {one.day for one in ran}:
        of_day = hours_of(sum(one.allocated_microsecond for one in ran if one.day == day))
        accrued = sum((one.quantity for one in found if one.day == day), Decimal(0))
        if settled is not None and day <= settled:
            assert accrued == 0
        else:
            expected = max(of_day - billed.get(day, Decimal(0)), Decimal(0))
            assert abs(accrued - expected) < Decimal("1e-8")


Running = dict[tuple[date, str, str], Decimal]


def make_week(
    amount: int = 70, *, provider: str = "AWS", last: date = DAY, name: str = "storage_object"
) -> Running:
    return {(last - timedelta(days=one), name, provider): Decimal(amount) for one in range(8)}


def test_storage_is_accrued_at_the_mean_of_the_last_settled_week_where_no_bill_has_it() -> None:
    billed = make_week()
    billed[DAY, "tax", "AWS"] = Decimal(1000)
    found = accrued_running_costs(billed, last_day=DAY + timedelta(days=2), currency="USD")
    assert [(one.day, one.cost) for one in found] == [
        (DAY + timedelta(days=1), Decimal(70)),
        (DAY + timedelta(days=2), Decimal(70)),
    ]


def test_storage_is_not_accrued_for_ever_once_bills_stop() -> None:
    found = accrued_running_costs(make_week(), last_day=DAY + timedelta(days=400), currency="USD")
    assert len(found) == QUIET_DAYS - 1  # counted from the day before the last one


def test_what_is_charged_once_a_month_is_not_accrued_by_the_day() -> None:
    billed = {
        (date(2026, month, 1), "storage_object", "AWS"): Decimal(30_000) for month in (10, 11)
    }
    billed |= make_week(5, name="logging", last=date(2026, 11, 6))
    found = accrued_running_costs(billed, last_day=date(2026, 11, 20), currency="USD")
    assert {one.x_cost_class for one in found} == {"logging"}


def test_storage_of_a_provider_that_bills_no_more_is_over() -> None:
    billed = make_week(1000, provider="A", name="storage_file", last=DAY - timedelta(days=40))
    billed |= make_week(7, provider="B", name="egress")
    found = accrued_running_costs(billed, last_day=DAY + timedelta(days=2), currency="USD")
    assert {(one.x_cost_class, one.cost) for one in found} == {("egress", Decimal(7))}


def test_a_provider_that_bills_some_days_later_than_another_is_accrued_since_its_own_bill() -> None:
    billed = make_week(10, provider="A", last=DAY - timedelta(days=3)) | make_week(7, provider="B")
    found = accrued_running_costs(billed, last_day=DAY + timedelta(days=1), currency="USD")
    costs = [one.cost for one in found]
    assert (costs.count(Decimal(10)), costs.count(Decimal(7))) == (4, 1)


def test_the_error_of_accruals_is_told_by_the_day_and_in_sum() -> None:
    next_day = DAY + timedelta(days=1)
    error = accrual_error(
        {DAY: Decimal(110), next_day: Decimal(90)},
        {DAY: Decimal(100), next_day: Decimal(100), date(2026, 1, 1): Decimal(5)},
        currency="USD",
    )
    assert (error.days, error.total_fraction) == (2, Decimal(0))
    assert error.mean_absolute_fraction == Decimal("0.1")
    assert error.worst_day == DAY
