"""What people type about a Prometheus-like server that is to be asked for energy and power."""

from datetime import UTC, datetime, time
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from carbon.adapters.promql import EXPORTERS, MATCHERS

EXPORTER_WORDS = {
    "dcgm": _("NVIDIA DCGM exporter (GPU energy and power)"),
    "nvidia_smi": _("nvidia_gpu_exporter (GPU energy and power)"),
    "node": _("node_exporter (RAPL: processors, without GPUs)"),
    "kepler": _("Kepler (processors, without GPUs)"),
    "ipmi": _("ipmi_exporter (whole node, GPUs included)"),
    "ceems": _("CEEMS exporter (whole node by IPMI, GPUs included)"),
}


class PullForm(forms.Form):
    """A server, the exporter whose metrics it holds, and which of them are this site's."""

    name = forms.CharField(
        label=_("Name"), max_length=120, help_text=_("How this server is called here.")
    )
    url = forms.URLField(
        label=_("Address"),
        max_length=400,
        assume_scheme="https",
        help_text=_(
            "Of Prometheus, VictoriaMetrics or Mimir, without /api/v1: "
            "https://mimir.example.com/prometheus"
        ),
    )
    exporter = forms.ChoiceField(
        label=_("Exporter"), choices=[(name, EXPORTER_WORDS[name]) for name in EXPORTERS]
    )
    matchers = forms.RegexField(
        MATCHERS,
        label=_("Only lines with these labels"),
        max_length=400,
        required=False,
        help_text=_('Such as cluster="a",job="dcgm". Empty: all.'),
    )
    token = forms.CharField(
        label=_("Bearer token"),
        max_length=4_000,
        required=False,
        strip=True,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off"}),
        help_text=_("Sealed when it is stored, and never shown again. Empty: none, or as it was."),
    )
    pull_from = forms.DateField(
        label=_("From"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=_("The first day to read, UTC. Empty: since yesterday."),
    )

    def clean_pull_from(self) -> datetime | None:
        """The start of the day."""
        day: Any = self.cleaned_data["pull_from"]
        return datetime.combine(day, time(), UTC) if day else None
