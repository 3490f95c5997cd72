"""Units convert exactly and number texts are read strictly."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae import units


@pytest.mark.parametrize(
    "text",
    [
        "", " 1", "1 ", "1\n", "+1", ".5", "5.", "1,000", "1_000", "0x10", "NaN", "nan", "inf",
        "Infinity", "1e", "1e100", "--1", "\u0661", "\uff11", "1.\u0660", "1e+-1", "NULL", "-",
        "1" * 21, "0." + "1" * 41,
    ],
)  # fmt: skip
def test_money_text_that_is_not_one_plain_number_is_refused(text: str) -> None:
    with pytest.raises(units.NumberTextError):
        units.strict_decimal(text)


@pytest.mark.parametrize(
    "text", ["1e20", "-1e20", "1e99", "99999999999999999999.9999999999999999999"]
)
def test_money_text_of_1e20_or_more_is_refused(text: str) -> None:
    with pytest.raises(units.NumberTextError, match="too large"):
        units.strict_decimal(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20.52022672899", "20.52022672899"),
        ("-0", "0"),
        ("-0.00", "0.00"),
        ("1E5", "100000"),
        ("99999999999999999999", "99999999999999999999"),
        ("0e99", "0"),
        ("1.000000000000000000000", "1"),
        ("99999999999999999999.999999999999999999", "99999999999999999999.999999999999999999"),
    ],
)
def test_money_text_is_read_exactly(text: str, value: str) -> None:
    parsed = units.strict_decimal(text)
    assert parsed.value == Decimal(value)
    assert not parsed.digits_lost
    assert not parsed.value.is_signed()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.0000000000000000005", "0"),
        ("0.0000000000000000015", "2E-18"),
        ("-0.00000000000000000051", "-1E-18"),
        ("1e-99", "0"),
    ],
)
def test_money_text_past_18_decimals_is_rounded_half_even_and_says_so(
    text: str, value: str
) -> None:
    parsed = units.strict_decimal(text)
    assert parsed == units.ParsedDecimal(value=Decimal(value), digits_lost=True)


@given(
    st.decimals(
        min_value=Decimal("-99999999999999999999"),
        max_value=Decimal("99999999999999999999"),
        places=18,
        allow_nan=False,
        allow_infinity=False,
    )
)
def test_money_text_of_18_decimals_round_trips(value: Decimal) -> None:
    parsed = units.strict_decimal(f"{value:f}")
    assert parsed.value == value
    assert not parsed.digits_lost


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_with_the_one_error(text: str) -> None:
    for read in (units.strict_decimal, units.strict_float):
        try:
            read(text)
        except units.NumberTextError:
            continue
        assert text.isascii()


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "+1", "1,5", "", "\u0665", "1 "])
def test_quantity_text_that_is_not_one_finite_number_is_refused(text: str) -> None:
    with pytest.raises(units.NumberTextError):
        units.strict_float(text)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30))
def test_quantity_text_round_trips(value: float) -> None:
    text = f"{value:.20e}"
    assert units.strict_float(text) == value


def test_a_kwh_is_3_600_000_joule_and_3_600_000_000_millijoule() -> None:
    assert units.J_PER_KWH * units.MILLIJOULE_PER_J == units.MILLIJOULE_PER_KWH == 3_600_000_000
    assert units.kwh_from_millijoule(units.MILLIJOULE_PER_KWH) == 1.0


@given(st.integers(min_value=0, max_value=2**50))
def test_millijoule_round_trip_through_kwh(energy_millijoule: int) -> None:
    kwh = units.kwh_from_millijoule(energy_millijoule)
    assert units.millijoule_from_kwh(kwh) == energy_millijoule


def test_watttime_example_converts_to_394_6_g_per_kwh() -> None:
    assert units.g_per_kwh_from_lb_per_megawatt_h(870) == pytest.approx(394.6, abs=0.05)


def test_decimal_and_binary_sizes_differ_as_the_standard_says() -> None:
    assert pytest.approx(1.099511627776) == units.BYTES_PER_TIB / units.BYTES_PER_TB
    assert pytest.approx(1.125899906842624) == units.BYTES_PER_PIB / units.BYTES_PER_PB
    assert units.gb_from_bytes(units.BYTES_PER_GB) == units.gib_from_bytes(units.BYTES_PER_GIB) == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, 1.1])
def test_a_value_out_of_range_is_refused_by_name(value: float) -> None:
    with pytest.raises(units.QuantityError, match="share"):
        units.require_range("share", value, low=0, high=1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, 0.0])
def test_a_value_that_is_not_positive_is_refused_by_name(value: float) -> None:
    with pytest.raises(units.QuantityError, match="params"):
        units.require_positive("params", value)


def test_a_fraction_above_one_is_refused_with_its_bound() -> None:
    with pytest.raises(units.QuantityError, match="at most 1"):
        units.require_positive("mfu", 55, high=1)
    with pytest.raises(units.QuantityError, match="at least 1"):
        units.require_range("pue", 0.9, low=1)
