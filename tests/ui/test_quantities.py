"""What people read: units, precision, language, and n/a for what is not known."""

import datetime as dt
import re
from decimal import Decimal

import pytest
from django.template import Context, Template, TemplateSyntaxError
from django.utils import translation


def shown(tag: str, *, language: str = "en", **values: object) -> str:
    with translation.override(language):
        return Template("{% load quantities %}" + tag).render(Context(values)).strip()


def words(markup: str) -> str:
    """The text of the markup, no-break spaces as plain ones."""
    return re.sub(r"<[^>]+>", "", markup).replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("tag", "value", "english", "chinese"),
    [
        ('{% money v "USD" %}', Decimal("1284310.55"), "$1,284,310.55", "US$1,284,310.55"),
        ('{% money v "USD" compact=True %}', Decimal("1284310.55"), "$1.28M", "US$128.43万"),
        ('{% money v "CNY" %}', Decimal("-12.5"), "-CN¥12.50", "-¥12.50"),
        ('{% money v "JPY" %}', Decimal("1234.5"), "¥1,234", "JP¥1,234"),
        ('{% money v "USD" digits=0 %}', Decimal("99.5"), "$100", "US$100"),
        ('{% money_exact v "USD" %}', Decimal("-2812465.43850"), "-2,812,465.4385 USD", None),
        (
            '{% money_exact v "USD" %}',
            Decimal("-0.000000000000000001"),
            "-0.000000000000000001 USD",
            None,
        ),
        ("{% energy v %}", 385133.25, "385.1 MWh", "385.1 MWh"),
        ("{% energy v %}", 166.4, "166.4 kWh", "166.4 kWh"),
        ("{% energy v %}", 0.0021, "2.10 Wh", "2.10 Wh"),
        ('{% energy v unit="kWh" digits=0 %}', 385133.25, "385,133 kWh", "385,133 kWh"),
        ("{% carbon v %}", 79.872, "79.87 kg CO₂e", "79.87 kg CO₂e"),
        ("{% carbon v %}", 11_390_000.0, "11.39 kt CO₂e", "11.39 kt CO₂e"),
        ("{% power v %}", 166400, "166.4 kW", "166.4 kW"),
        ("{% bytes v %}", 12_345_678_901, "12.35 GB", "12.35 GB"),
        ("{% count v %}", 306277, "306,277", "306,277"),
        ("{% count v compact=True %}", 10**13, "10T", "10万亿"),
        ("{% multiple v %}", 1.32, "1.32×", "1.32×"),
        ("{% fraction v %}", 0.987, "98.7%", "98.7%"),
        ("{% fraction v signed=True %}", 0.031, "+3.1%", "+3.1%"),
        ("{% flop v %}", 6e23, "6.00 × 10²³ FLOP", "6.00 × 10²³ FLOP"),
        ('{% quantity v "g/kWh" %}', 380, "380.0 g/kWh", "380.0 g/kWh"),
        ("{% date v %}", dt.date(2026, 11, 16), "16 Nov 2026", "2026年11月16日"),
        (
            "{% date v %}",
            dt.datetime(2026, 11, 16, 8, tzinfo=dt.UTC),
            "16 Nov 2026, 08:00 UTC",
            "2026年11月16日 08:00 UTC",
        ),
    ],
)
def test_a_quantity_reads_as_its_language_writes_it(
    tag: str, value: object, english: str, chinese: str | None
) -> None:
    assert words(shown(tag, v=value)) == english
    assert words(shown(tag, language="zh-hans", v=value)) == (chinese or english)


UNIT_TAGS = (
    "energy carbon power bytes count multiple fraction accelerator_hours tokens flop days date"
)


@pytest.mark.parametrize(
    "tag",
    [
        '{% money v "USD" %}',
        '{% quantity v "L" %}',
        *(f"{{% {name} v %}}" for name in UNIT_TAGS.split()),
    ],
)
def test_an_unknown_quantity_is_never_zero(tag: str) -> None:
    markup = shown(tag, v=None)
    assert words(markup) == "n/anot known"
    assert 'class="visually-hidden">not known' in markup


def test_zero_is_a_number_and_not_unknown() -> None:
    assert words(shown('{% money v "USD" %}', v=Decimal(0))) == "$0.00"
    assert words(shown("{% energy v %}", v=0)) == "0 kWh"
    assert words(shown("{% fraction v %}", v=0.0)) == "0.0%"


def test_the_exact_value_travels_with_the_rounded_one() -> None:
    markup = shown('{% money v "USD" compact=True %}', v=Decimal("20.520226728990000000"))
    assert 'value="20.52022672899"' in markup
    assert 'title="20.52022672899 USD"' in markup
    assert 'value="385133.25"' in shown("{% energy v %}", v=385133.25)


def test_money_too_small_for_cents_does_not_read_as_zero() -> None:
    assert words(shown('{% money v "USD" %}', v=Decimal("0.000123"))) == "$0.00012"


def test_money_is_rounded_half_to_even_and_only_when_shown() -> None:
    assert words(shown('{% money v "USD" %}', v=Decimal("2.675"))) == "$2.68"
    assert words(shown('{% money v "USD" %}', v=Decimal("2.665"))) == "$2.66"


def test_money_as_a_float_is_refused() -> None:
    with pytest.raises(TypeError, match="float lost its cents"):
        shown('{% money v "USD" %}', v=1.1)


def test_money_without_a_currency_is_unknown() -> None:
    assert "not known" in shown("{% money v currency %}", v=Decimal(1), currency=None)


def test_hostile_text_in_tags_is_escaped() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    assert "<img" not in shown('{% badge "warn" v %}', v=hostile)
    assert "<img" not in shown("{% badge v %}", v=hostile)
    assert "<img" not in shown("{% quantity 1 v %}", v=hostile)
    assert "<img" not in shown("{% tile v note=v %}{% count 1 %}{% endtile %}", v=hostile)


def test_a_badge_always_has_a_word() -> None:
    assert words(shown('{% badge "not_set" %}')) == "not set"
    assert words(shown('{% badge "estimated" %}')) == "estimated"
    assert words(shown('{% badge "something new" %}')) == "something new"


def test_a_tile_keeps_the_markup_of_its_number() -> None:
    markup = shown('{% tile "Cost" badge="invoiced" %}{% money v "USD" %}{% endtile %}', v=1)
    assert '<data class="quantity" value="1"' in markup
    assert "invoiced" in markup


def test_a_misspelt_tag_fails_at_once() -> None:
    with pytest.raises(TemplateSyntaxError):
        shown("{% moneys v %}")
