"""Every number on a page passes here: unit, precision, locale, and "n/a" where nothing is known."""

import datetime as dt
from decimal import Decimal
from typing import Final

from babel.core import Locale
from django import template
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from ui import formatting
from ui.badges import badge_of
from ui.charts import Figure
from ui.formatting import Number, Shown

register = template.Library()

Known = Number | None
_NO_UNIT: Final = ""


def _locale() -> Locale:
    return formatting.babel_locale(get_language())


def _missing() -> SafeString:
    return format_html(
        '<span class="quantity quantity-missing"><span aria-hidden="true">{}</span>'
        '<span class="visually-hidden">{}</span></span>',
        _("n/a"),
        _("not known"),
    )


def _render(shown: Shown) -> SafeString:
    unit = (
        format_html('<span class="quantity-unit">{}{}</span>', formatting.NO_BREAK, shown.unit)
        if shown.unit
        else SafeString("")
    )
    return format_html(
        '<data class="quantity" value="{}" title="{}">{}{}</data>',
        shown.exact.split(" ")[0],
        shown.exact,
        shown.number,
        unit,
    )


def _plain(number: str, value: Number, unit: str = _NO_UNIT) -> SafeString:
    digits = formatting.plain_digits(formatting.exact_decimal(value))
    return _render(Shown(number=number, unit=unit, exact=f"{digits} {unit}".strip()))


@register.simple_tag
def money(
    amount: Decimal | int | str | None,
    currency: str,
    *,
    compact: bool = False,
    digits: int | None = None,
) -> SafeString:
    """`{% money cost "USD" %}`, `{% money cost currency compact=True %}`."""
    if amount is None or amount == "" or not currency:
        return _missing()
    text = formatting.money_text(amount, currency, _locale(), compact=compact, digits=digits)
    exact = f"{formatting.plain_digits(Decimal(amount))} {currency}"
    return _render(Shown(number=text, unit=_NO_UNIT, exact=exact))


@register.simple_tag
def money_exact(amount: Decimal | str | None, currency: str) -> SafeString:
    """`{% money_exact difference "USD" %}`: every digit, for figures that must tie."""
    if amount is None or amount == "" or not currency:
        return _missing()
    digits = formatting.plain_digits(Decimal(amount))
    return _render(
        Shown(
            number=f"{formatting.exact_text(Decimal(amount), _locale())} {currency}",
            unit=_NO_UNIT,
            exact=f"{digits} {currency}",
        )
    )


@register.simple_tag
def energy(kwh: Known, *, unit: str = "", digits: int | None = None) -> SafeString:
    """`{% energy e.facility_energy_kwh %}` climbs Wh, kWh, MWh, GWh; `unit="kWh"` stays."""
    if kwh is None or kwh == "":
        return _missing()
    return _render(
        formatting.scaled(kwh, _locale(), formatting.ENERGY_KWH, unit=unit, digits=digits)
    )


@register.simple_tag
def carbon(kgco2e: Known, *, unit: str = "", digits: int | None = None) -> SafeString:
    """`{% carbon e.scope_2_location_kgco2e %}` climbs g, kg, t; `unit="kg CO₂e"` stays."""
    if kgco2e is None or kgco2e == "":
        return _missing()
    return _render(
        formatting.scaled(kgco2e, _locale(), formatting.CARBON_KG, unit=unit, digits=digits)
    )


@register.simple_tag
def power(power_w: Known, *, unit: str = "", digits: int | None = None) -> SafeString:
    """`{% power reading.power_w %}` climbs W, kW, MW."""
    if power_w is None or power_w == "":
        return _missing()
    return _render(
        formatting.scaled(power_w, _locale(), formatting.POWER_W, unit=unit, digits=digits)
    )


@register.simple_tag(name="bytes")
def data_size(size_bytes: Known, *, unit: str = "", digits: int | None = None) -> SafeString:
    """`{% bytes file.size_bytes %}` climbs kB, MB, GB in steps of 1000."""
    if size_bytes is None or size_bytes == "":
        return _missing()
    shown = formatting.scaled(
        size_bytes, _locale(), formatting.DATA_BYTES, unit=unit, digits=digits
    )
    return _render(shown)


@register.simple_tag
def count(value: Known, *, compact: bool = False) -> SafeString:
    """`{% count rows %}`; `compact=True` says 10T or 10万亿."""
    if value is None or value == "":
        return _missing()
    return _plain(formatting.count_text(value, _locale(), compact=compact), value)


@register.simple_tag
def multiple(value: Known, *, digits: int = 2) -> SafeString:
    """`{% multiple programme_multiple %}` says 1.32×."""
    if value is None or value == "":
        return _missing()
    return _plain(formatting.decimal_text(value, _locale(), digits=digits) + "×", value)


@register.simple_tag
def fraction(value: Known, *, digits: int = 1, signed: bool = False) -> SafeString:
    """`{% fraction coverage_fraction %}`: a share of 0..1 as percent."""
    if value is None or value == "":
        return _missing()
    return _plain(formatting.percent_text(value, _locale(), digits=digits, signed=signed), value)


@register.simple_tag
def accelerator_hours(hours: Known, *, compact: bool = False) -> SafeString:
    """`{% accelerator_hours 306277 %}`."""
    if hours is None or hours == "":
        return _missing()
    text = formatting.count_text(hours, _locale(), compact=compact)
    return _plain(text, hours, _("accelerator-h"))


@register.simple_tag
def tokens(value: Known) -> SafeString:
    """`{% tokens plan.tokens %}`: compact, with its unit."""
    if value is None or value == "":
        return _missing()
    return _plain(formatting.count_text(value, _locale(), compact=True), value, _("tokens"))


@register.simple_tag
def flop(value: Known) -> SafeString:
    """`{% flop 6e23 %}`: a count of floating-point operations in powers of ten."""
    if value is None or value == "":
        return _missing()
    return _plain(formatting.power_of_ten_text(value), value, "FLOP")


@register.simple_tag
def days(value: Known, *, digits: int = 1) -> SafeString:
    """`{% days 49.85 %}`."""
    if value is None or value == "":
        return _missing()
    text = formatting.decimal_text(value, _locale(), digits=digits)
    return _plain(text, value, ngettext("day", "days", 1 if value == 1 else 2))


@register.simple_tag
def quantity(value: Known, unit: str, *, digits: int | None = None) -> SafeString:
    """`{% quantity g_per_kwh "g/kWh" %}`: any other unit, about four significant digits.

    Documents write CO2e, pages CO₂e.
    """
    if value is None or value == "":
        return _missing()
    unit = unit.replace("CO2e", "CO₂e")
    return _plain(formatting.decimal_text(value, _locale(), digits=digits), value, unit)


@register.simple_tag(name="date")
def day_or_instant(value: dt.date | dt.datetime | None) -> SafeString:
    """`{% date billed_through %}`: a day, or an instant in UTC."""
    if not isinstance(value, dt.date):
        return _missing()
    return format_html(
        '<time datetime="{}">{}</time>',
        value.isoformat(),
        formatting.date_text(value, _locale()),
    )


@register.simple_tag
def badge(key: str, text: str = "") -> SafeString:
    """`{% badge "estimated" %}`: a word with a mark, never a colour alone."""
    known = badge_of(key)
    return format_html(
        '<span class="badge badge-{} badge-{}">{}</span>',
        known.tone,
        known.key,
        text or known.word,
    )


@register.simple_block_tag
def tile(
    content: str, label: str, *, badge: str = "", note: str = "", href: str = ""
) -> SafeString:
    """`{% tile label badge="invoiced" note=note %}{% money cost "USD" %}{% endtile %}`."""
    context = {"label": label, "value": content, "badge": badge, "note": note, "href": href}
    return render_to_string("ui/_tile.html", context)


@register.inclusion_tag("ui/_chart.html")
def chart(
    figure_id: str, figure: Figure, label: str, *, size: str = "", linked: bool = False
) -> dict[str, object]:
    """`{% chart "burn-down" figure label %}`: the figure's JSON and the place it is drawn in.

    `linked=True` for charts over the same days: they share zoom and pointer.
    """
    return {
        "figure_id": figure_id,
        "figure_json_id": f"{figure_id}-figure",
        "figure": figure,
        "label": label,
        "size": size,
        "linked": linked,
    }
