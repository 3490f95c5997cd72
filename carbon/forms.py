"""What people type about sites, their factors, assignments, and which power files they upload."""

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from carbon.factors import cloud_regions
from carbon.models import SiteFactor
from carbon.records import HOST_FACTOR_OFFER, HOST_FACTOR_OFFER_RANGE
from carbon.site_factors import ALWAYS

KINDS = [
    ("host_factor", _("Host factor (IT energy / accelerator energy)")),
    ("pue", _("PUE (facility energy / IT energy)")),
    ("grid_g_per_kwh", _("Grid intensity (gCO₂e/kWh)")),
    ("wue_l_per_kwh", _("WUE (L per kWh of IT energy)")),
    ("source_l_per_kwh", _("Water of the grid's power plants (L/kWh)")),
    ("max_gap_s", _("Longest gap between samples (s)")),
]
TIERS = [
    (SiteFactor.Tier.ESTIMATED, _("estimated")),
    (SiteFactor.Tier.PUBLISHED, _("published")),
    (SiteFactor.Tier.MEASURED, _("measured")),
]


class SiteForm(forms.Form):
    """A site; its factors have a form of their own."""

    name = forms.CharField(label=_("Name"), max_length=200)
    slug = forms.SlugField(
        label=_("Short name in addresses"),
        max_length=80,
        help_text=_("Lower-case letters, digits and hyphens, such as hall-1. It stays."),
    )
    provider = forms.CharField(
        label=_("Provider"),
        max_length=40,
        required=False,
        help_text=_("aws, gcp, azure or another name. Empty for an own hall."),
    )
    region = forms.CharField(
        label=_("Region"),
        max_length=80,
        required=False,
        help_text=_("The provider's own name, such as us-central1: it tells country and grid."),
    )
    country = forms.RegexField(
        r"^[A-Za-z]{3}$",
        label=_("Country"),
        required=False,
        help_text=_("Three letters (ISO 3166-1), such as DEU. Empty when the region tells it."),
    )
    state = forms.RegexField(
        r"^US-[A-Za-z]{2}$",
        label=_("US state"),
        required=False,
        help_text=_("Such as US-VA; only in the United States."),
    )
    time_zone = forms.CharField(label=_("Time zone"), initial="UTC", max_length=64)

    def clean_time_zone(self) -> str:
        """A zone that exists."""
        zone: str = self.cleaned_data["time_zone"]
        if zone not in available_timezones():
            raise forms.ValidationError(_("No such time zone: write one such as Europe/Berlin."))
        return zone

    def clean(self) -> dict[str, Any]:
        """A cloud's region is one that we know where to find."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        provider, region = cleaned.get("provider", ""), cleaned.get("region", "").lower()
        is_cloud = provider in ("aws", "gcp", "azure")
        unknown = is_cloud and region and (provider, region) not in cloud_regions()
        if unknown and not cleaned.get("country"):
            self.add_error(
                "region", _("This region is not in our table: give the country beside it.")
            )
        return cleaned


class FactorForm(forms.Form):
    """A factor of a site from a day on."""

    kind = forms.ChoiceField(label=_("Factor"), choices=KINDS)
    value = forms.FloatField(
        label=_("Value"),
        min_value=0,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
        help_text=format_lazy(
            _(
                "Host factor: {offer} fits most 8-GPU nodes; measured ones lie between {low} and "
                "{high}."
            ),
            offer=HOST_FACTOR_OFFER,
            low=HOST_FACTOR_OFFER_RANGE[0],
            high=HOST_FACTOR_OFFER_RANGE[1],
        ),
    )
    valid_from = forms.DateField(
        label=_("Holds from"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text=_("A UTC day. Empty: it has always held."),
    )
    tier = forms.ChoiceField(label=_("How it is known"), choices=TIERS)
    source = forms.CharField(
        label=_("Source"),
        max_length=200,
        required=False,
        help_text=_("Who says so: a meter, a contract, a publication."),
    )

    def clean_valid_from(self) -> Any:
        """No day means since ever."""
        return self.cleaned_data["valid_from"] or ALWAYS


class AssignForm(forms.Form):
    """All devices of a site work for a project from an instant on."""

    project = forms.ChoiceField(label=_("Project"))
    start_on = forms.DateField(
        label=_("First day (UTC)"),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    end_on = forms.DateField(
        label=_("Last day (UTC)"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text=_("Empty while they still work for it."),
    )
    node = forms.ChoiceField(label=_("Devices"), required=False)

    def __init__(
        self, *args: Any, projects: list[tuple[str, str]], nodes: list[str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._choose("project", projects)
        self._choose("node", [("", _("All devices of the site")), *((one, one) for one in nodes)])

    def _choose(self, name: str, choices: list[tuple[str, Any]]) -> None:
        field = self.fields[name]
        if isinstance(field, forms.ChoiceField):
            field.choices = choices

    def clean(self) -> dict[str, Any]:
        """Both days in order."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        start, end = cleaned.get("start_on"), cleaned.get("end_on")
        if start and end and end < start:
            self.add_error("end_on", _("The last day comes before the first."))
        return cleaned


class UploadForm(forms.Form):
    """A power file for a site."""

    site = forms.ChoiceField(label=_("Site"))
    file = forms.FileField(
        label=_("Power file"),
        help_text=_(
            "CSV, plain or gzipped: at,device_uuid,power_w or "
            "start,end,device_uuid,energy_millijoule."
        ),
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,.gz"}),
    )

    def __init__(self, *args: Any, sites: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["site"]
        if isinstance(field, forms.ChoiceField):
            field.choices = sites
