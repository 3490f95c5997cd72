"""What people type about a site's meters, and the files of them. No rule of who may."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from carbon.meter_texts import MeterRow, parse_period, read_meter_rows
from carbon.models import SiteFactor
from carbon.site_factors import FactorError

MAX_UPLOAD = 8 * 2**20
WHAT = [
    ("facility_kwh", _("Facility meter (kWh)")),
    ("it_kwh", _("IT meter (kWh)")),
    ("water_l", _("Water meter (L)")),
    ("pue", _("PUE (facility energy / IT energy)")),
    ("wue_l_per_kwh", _("WUE (L per kWh of IT energy)")),
]
TIERS = [
    (SiteFactor.Tier.ESTIMATED, _("estimated")),
    (SiteFactor.Tier.PUBLISHED, _("published")),
    (SiteFactor.Tier.MEASURED, _("measured")),
]


class MeterForm(forms.Form):
    """What a meter counted over a period, or a PUE or WUE that holds over it."""

    what = forms.ChoiceField(label=_("Meter or factor"), choices=WHAT)
    period = forms.CharField(
        label=_("Period (UTC)"),
        max_length=40,
        help_text=_(
            "A year 2026, a month 2026-10, a day 2026-10-05 (meters only) or an hour 2026-10-05T13."
        ),
    )
    value = forms.FloatField(
        label=_("Value"),
        min_value=0,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
        help_text=_("What was used in the period, not what the meter's dial shows."),
    )
    tier = forms.ChoiceField(
        label=_("How it is known"),
        choices=TIERS,
        help_text=_("For PUE and WUE. What two meters give is measured."),
    )
    source = forms.CharField(
        label=_("Source"),
        max_length=200,
        required=False,
        help_text=_("Which meter, bill or publication says so."),
    )

    def clean_period(self) -> Any:
        """A period, in whole hours, days, months or years."""
        try:
            return parse_period(self.cleaned_data["period"])
        except FactorError as error:
            raise forms.ValidationError(str(error)) from error

    def row(self) -> MeterRow:
        """What was typed, as a row of a file would say it."""
        return MeterRow(**self.cleaned_data)


class MeterFileForm(forms.Form):
    """A CSV of meters and factors."""

    file = forms.FileField(
        label=_("CSV file"),
        widget=forms.ClearableFileInput(attrs={"accept": ".csv"}),
        help_text=_(
            "Header what,period,value and, if wanted, tier,source. What: facility_kwh, it_kwh, "
            "water_l, pue or wue_l_per_kwh; a period as above; one wrong row refuses the file."
        ),
    )

    def clean_file(self) -> Any:
        """The rows of the file."""
        file: Any = self.cleaned_data["file"]
        if file.size > MAX_UPLOAD:
            raise forms.ValidationError(
                gettext("The file is larger than {size} MiB: split it.").format(
                    size=MAX_UPLOAD // 2**20
                )
            )
        try:
            return read_meter_rows(file.read())
        except FactorError as error:
            raise forms.ValidationError(str(error)) from error
