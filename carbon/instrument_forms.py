"""What people type about instruments, residual mixes, hardware, boundaries and periods."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator
from django.utils.translation import gettext_lazy as _

from carbon.assets import NewAsset
from carbon.instruments import HOURS_BYTES, InstrumentError, NewInstrument, read_hours
from carbon.models import Instrument, SiteBoundary
from carbon.site_factors import ALWAYS

KINDS = [
    (Instrument.Kind.CERTIFICATE, _("Certificate (GO, REC, I-REC)")),
    (Instrument.Kind.PPA, _("Power purchase agreement")),
    (Instrument.Kind.SUPPLIER, _("Supplier's rate")),
]
OWNERSHIPS = [
    (SiteBoundary.Ownership.OWN, _("Own hardware, own power: scope 2")),
    (SiteBoundary.Ownership.COLOCATION, _("Own hardware in a rented hall: scope 2")),
    (SiteBoundary.Ownership.LEASED, _("Leased hardware: scope 3, category 8")),
    (SiteBoundary.Ownership.CLOUD, _("Cloud or rented hours: scope 3, category 1")),
]


LAST_DAY = date(2999, 12, 31)  # what follows it is a date, too
MOST_DEVICES = 10_000_000


def _number(label: Any, *, required: bool = True, help_text: Any = "") -> forms.FloatField:
    return forms.FloatField(
        label=label,
        required=required,
        min_value=0,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
        help_text=help_text,
    )


def _day(label: Any, *, required: bool = True, help_text: Any = "") -> forms.DateField:
    return forms.DateField(
        label=label,
        required=required,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text=help_text,
        validators=[MaxValueValidator(LAST_DAY)],
    )


def midnight(day: date) -> datetime:
    """The beginning of a UTC day."""
    return datetime.combine(day, time(), UTC)


class InstrumentForm(forms.Form):
    """A contract or certificate."""

    kind = forms.ChoiceField(label=_("Kind"), choices=KINDS)
    name = forms.CharField(label=_("Name"), max_length=200)
    market_zone = forms.CharField(
        label=_("Market zone"),
        max_length=80,
        help_text=_(
            "Where it may be used: the country of your sites (DEU, USA), or the market that their "
            "boundary names."
        ),
    )
    start_on = _day(_("First day (UTC)"))
    end_on = _day(_("Last day (UTC)"), help_text=_("A certificate's vintage: a year or less."))
    energy_kwh = _number(
        _("Energy (kWh)"),
        required=False,
        help_text=_("Empty for a supplier's rate on all energy, or when the hours below tell it."),
    )
    g_per_kwh = _number(
        _("Rate (gCO₂e/kWh)"), help_text=_("What the instrument conveys: 0 for wind and sun.")
    )
    hours = forms.FileField(
        label=_("Delivery by the hour"),
        required=False,
        widget=forms.ClearableFileInput(attrs={"accept": ".csv"}),
        help_text=_(
            "CSV hour,energy_kwh with whole hours in UTC. Without it, the energy is spread evenly."
        ),
    )
    registry = forms.CharField(label=_("Registry"), max_length=120, required=False)
    serials = forms.CharField(
        label=_("Serial numbers"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("One a line, or FIRST to LAST. No serial counts twice."),
    )
    retired_on = _day(
        _("Retired on"),
        required=False,
        help_text=_(
            "A day up to today (UTC); a certificate without it is kept and counts for nothing."
        ),
    )
    evidence = forms.FileField(
        label=_("Evidence"),
        required=False,
        help_text=_("Contract, statement of retirement: kept by its SHA-256."),
    )

    def clean_hours(self) -> list[tuple[datetime, float]]:
        """The profile, read."""
        upload = self.cleaned_data["hours"]
        if not upload:
            return []
        if upload.size > HOURS_BYTES:
            raise forms.ValidationError(_("The file is larger than 8 MB."))
        try:
            return read_hours(upload.read().decode())
        except UnicodeDecodeError as error:
            raise forms.ValidationError(_("The file is not UTF-8 text.")) from error
        except InstrumentError as error:
            raise forms.ValidationError(str(error)) from error

    def wish(self) -> NewInstrument:
        """What was typed, for the service; evidence is kept apart."""
        data = self.cleaned_data
        names = ("kind", "name", "market_zone", "g_per_kwh", "registry", "serials", "retired_on")
        return NewInstrument(
            **{name: data[name] for name in names},
            start=midnight(data["start_on"]),
            end=midnight(data["end_on"] + timedelta(days=1)),
            energy_kwh=data["energy_kwh"],
            hours=tuple(data["hours"]),
        )


class ResidualMixForm(forms.Form):
    """The residual mix of a market zone in a year."""

    market_zone = forms.CharField(label=_("Market zone"), max_length=80)
    year = forms.IntegerField(label=_("Year"), min_value=1990, max_value=2100)
    g_per_kwh = _number(_("Residual mix (gCO₂e/kWh)"))
    source = forms.CharField(
        label=_("Source"),
        max_length=200,
        help_text=_("Who publishes it, such as AIB, European Residual Mixes."),
    )


class ReasonForm(forms.Form):
    """Why something is done that whoever checks the books will ask about."""

    reason = forms.CharField(label=_("Reason"), max_length=300)


class PeriodForm(forms.Form):
    """A period to prepare."""

    start_on = _day(_("First day (UTC)"))
    end_on = _day(_("Last day (UTC)"))

    def span(self) -> tuple[datetime, datetime]:
        """Beginning and exclusive end."""
        data = self.cleaned_data
        return midnight(data["start_on"]), midnight(data["end_on"] + timedelta(days=1))


class BoundaryForm(forms.Form):
    """Who owns the hardware of a site from a day on."""

    ownership = forms.ChoiceField(label=_("Hardware and power"), choices=OWNERSHIPS)
    market_zone = forms.CharField(
        label=_("Market zone"),
        max_length=80,
        required=False,
        help_text=_(
            "Whose contracts and residual mix count. Empty: the country of an own or rented hall; "
            "none for a cloud, whose contracts are its own."
        ),
    )
    valid_from = _day(
        _("Holds from"), required=False, help_text=_("A UTC day. Empty: it has always held.")
    )

    def clean_valid_from(self) -> date:
        """No day means since ever."""
        return self.cleaned_data["valid_from"] or ALWAYS


class AssetForm(forms.Form):
    """Hardware of a site and what its making emitted."""

    name = forms.CharField(label=_("Name"), max_length=200)
    devices = forms.IntegerField(
        label=_("Accelerators that it serves"),
        min_value=1,
        max_value=MOST_DEVICES,
        help_text=_("A server of eight: 8 times the number of servers. A network: all of them."),
    )
    kgco2e = _number(_("Footprint of all of it (kgCO₂e)"))
    kgco2e_low = _number(_("At least (kgCO₂e)"), required=False)
    kgco2e_high = _number(
        _("At most (kgCO₂e)"),
        required=False,
        help_text=_("Published footprints of one accelerator differ by a factor of 3.5."),
    )
    purchased_on = _day(_("Purchased on"))
    lifetime_h = forms.FloatField(
        label=_("Expected life (h)"),
        min_value=1,
        initial=35_040,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
        help_text=_("4 years are 35,040 h, 6 years 52,560 h."),
    )
    source = forms.CharField(
        label=_("Source"), max_length=400, help_text=_("The product carbon footprint, a database.")
    )

    def wish(self) -> NewAsset:
        """What was typed, for the service."""
        return NewAsset(**self.cleaned_data)
