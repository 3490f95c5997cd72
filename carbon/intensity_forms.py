"""What people type about sources of grid intensity and their files. No rule of who may."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from carbon.intensity_sources import (
    BASES,
    BOTH,
    CREDENTIAL,
    CSV,
    ELECTRICITY_MAPS,
    UK,
    WATTTIME,
    SourceWish,
)
from carbon.intensity_zones import suggested_zone
from runs.records import SiteRecord

PROVIDERS: Mapping[str, Any] = {
    ELECTRICITY_MAPS: "Electricity Maps",
    WATTTIME: "WattTime",
    UK: _("Great Britain's Carbon Intensity API"),
    CSV: _("Files of hours (CSV)"),
}
BASIS_WORDS = {
    "direct": _("direct: what the plants emit (scope 2)"),
    "lifecycle": _("lifecycle: with fuel supply and building"),
    BOTH: _("both: direct for scope 2, the difference upstream (scope 3)"),
}
FIELD_WORDS = {"token": _("Token"), "username": _("User name"), "password": _("Password")}
MAX_UPLOAD = 8 * 2**20


class SourceForm(forms.Form):
    """A source: its name, basis, place in the chain, credential, and the zone of each site."""

    name = forms.CharField(label=_("Name"), max_length=120)
    basis = forms.ChoiceField()
    position = forms.IntegerField(
        label=_("Place in the chain"),
        min_value=1,
        max_value=99,
        initial=1,
        help_text=_("The first source that knows an hour tells it; the yearly factor comes last."),
    )

    def __init__(
        self,
        data: Any = None,
        *,
        provider: str,
        site_zones: list[tuple[SiteRecord, str]],
        is_new: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(data, **more)
        self.provider, self.site_zones = provider, site_zones
        self.fields["basis"] = forms.ChoiceField(
            label=_("Emission factors"),
            choices=[(one, BASIS_WORDS[one]) for one in BASES[provider]],
            help_text=_("The GHG Protocol books direct factors under scope 2."),
        )
        for name in CREDENTIAL.get(provider, ()):
            self.fields[name] = forms.CharField(
                label=FIELD_WORDS[name],
                required=is_new,
                max_length=500,
                strip=True,
                widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
                help_text="" if is_new else _("Stored, never shown. Empty keeps it."),
            )
        if settings.PRIVATE_HOSTS and provider != CSV:
            self.fields["base_url"] = forms.URLField(
                label=_("Another address"),
                required=False,
                assume_scheme="https",
                max_length=400,
                help_text=_("Of a proxy that the operator lists; empty: the service's own."),
            )
        for site, zone in site_zones:
            self.fields[f"zone_{site.slug}"] = forms.CharField(
                label=gettext("Zone of {site}").format(site=site.name),
                required=False,
                max_length=80,
                initial=zone or (suggested_zone(site, provider) if is_new else ""),
                help_text=self._hint(site),
            )

    def _hint(self, site: SiteRecord) -> str:
        found = suggested_zone(site, self.provider)
        if not found:
            return gettext("The service's own key of the zone; empty: this site does not use it.")
        return gettext("Likely {zone}. Empty: this site does not use it.").format(zone=found)

    @property
    def credential_fields(self) -> list[Any]:
        """The fields of the credential."""
        return [self[name] for name in CREDENTIAL.get(self.provider, ())]

    @property
    def zone_fields(self) -> list[Any]:
        """The fields of the sites' zones."""
        return [self[f"zone_{site.slug}"] for site, _zone in self.site_zones]

    def wish(self) -> SourceWish:
        """What was asked for."""
        data = self.cleaned_data
        zones: dict[UUID, str] = {
            site.site_id: data[f"zone_{site.slug}"] for site, _zone in self.site_zones
        }
        return SourceWish(
            provider=self.provider,
            name=data["name"],
            basis=data["basis"],
            position=data["position"],
            base_url=data.get("base_url", ""),
            credential={name: data[name] for name in CREDENTIAL.get(self.provider, ())},
            zones=zones,
        )


class IntensityFileForm(forms.Form):
    """A file of hours."""

    file = forms.FileField(
        label=_("File"),
        help_text=_("CSV with zone, hour, g_per_kwh and, if you like, basis. Hours in UTC."),
    )
    accept_low = forms.BooleanField(
        label=_("The values really are that low: none reaches 2 g/kWh"), required=False
    )

    def clean_file(self) -> "UploadedFile[bytes]":
        """The file, not larger than a page takes."""
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if (file.size or 0) > MAX_UPLOAD:
            raise forms.ValidationError(
                gettext(
                    "The file is larger than {most} MB: import it with manage.py import_intensity."
                ).format(most=MAX_UPLOAD // 2**20)
            )
        return file
