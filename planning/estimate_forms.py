"""The form of a kickoff question."""

import re
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.records import AcceleratorSpec

SUFFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
COUNT = re.compile(r"^(\d+(?:\.\d+)?(?:[eE]\d{1,2})?)\s*([KMBT]?)$")


class CountField(forms.CharField):
    """A large count as people write it: 10B, 10T, 8.03e9."""

    default_error_messages = {
        "count": _("Write a count such as 10B (billion), 10T (trillion) or 8.03e9.")
    }

    def to_python(self, value: object) -> float | None:  # type: ignore[override]
        """The count as a float, or None when the field was left empty."""
        text = super().to_python(value)
        if text in self.empty_values:
            return None
        found = COUNT.match(str(text).replace(",", "").upper())
        if found is None:
            raise forms.ValidationError(self.error_messages["count"], code="count")
        return float(found[1]) * SUFFIXES[found[2]]


def _number(label: Any, *, help_text: Any = "", required: bool = False) -> forms.FloatField:
    return forms.FloatField(
        label=label,
        help_text=help_text,
        required=required,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
    )


class EstimateForm(forms.Form):
    """A kickoff question; the formulae check ranges and units, so the words are the same."""

    name = forms.CharField(label=_("Name of the run"), max_length=200)
    params = CountField(label=_("Parameters"), help_text=_("All of them: 64B, 8.03B."))
    active_params = CountField(
        label=_("Active parameters"),
        required=False,
        help_text=_("Mixture of experts: those that one token passes through. Empty if dense."),
    )
    tokens = CountField(label=_("Training tokens"), help_text=_("10T, 500B."))
    accelerator = forms.ChoiceField(label=_("Accelerator"))
    accelerators = forms.IntegerField(label=_("How many at once"), min_value=1)
    precision = forms.ChoiceField(
        label=_("Precision"),
        choices=[(p, p.upper()) for p in ("bf16", "fp16", "fp8", "fp4", "tf32", "fp32")],
    )
    mfu = _number(_("MFU"), help_text=_("Share of the dense peak: 0.42 is 42 %."), required=True)
    mfu_low = _number(_("MFU, at worst"), help_text=_("With a best value: gives an interval."))
    mfu_high = _number(_("MFU, at best"))
    goodput = _number(
        _("Goodput"), help_text=_("Productive share of billed time: 0.9 is 90 %."), required=True
    )
    goodput_low = _number(_("Goodput, at worst"))
    goodput_high = _number(_("Goodput, at best"))
    price_per_accelerator_h = forms.DecimalField(
        label=_("Price per accelerator-hour"),
        required=False,
        help_text=_("Your contract rate. Without it there is no cost, and no plan."),
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
    )
    currency = forms.CharField(label=_("Currency"), max_length=3, min_length=3, initial="USD")
    power_w = _number(
        _("Mean power of one accelerator (W)"), help_text=_("Empty: its TDP from the catalogue.")
    )
    host_factor = _number(
        _("Host factor"),
        help_text=_("IT energy over accelerator energy; 1.5 is usual (1.3 to 1.8)."),
    )
    pue = _number(_("PUE"), help_text=_("Facility energy over IT energy; a good site is 1.1–1.2."))
    g_per_kwh = _number(
        _("Grid intensity (gCO2e/kWh)"), help_text=_("Empty: taken from the region or country.")
    )
    provider = forms.ChoiceField(
        label=_("Cloud"),
        required=False,
        choices=[("", "—"), ("aws", "AWS"), ("gcp", "Google Cloud"), ("azure", "Azure")],
    )
    region = forms.CharField(
        label=_("Cloud region"), required=False, max_length=60, help_text=_("us-west-2")
    )
    country = forms.CharField(
        label=_("Country"), required=False, max_length=3, help_text=_("Three letters: USA, DEU.")
    )

    def __init__(self, *args: Any, catalogue: tuple[AcceleratorSpec, ...], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(item.key, item.name) for item in catalogue]
        self.fields["accelerator"] = forms.ChoiceField(label=_("Accelerator"), choices=choices)

    def document(self) -> dict[str, Any]:
        """The cleaned fields as a SPEC document."""
        fields = {k: v for k, v in self.cleaned_data.items() if v not in (None, "")}
        for name in ("mfu", "goodput"):
            low, high = fields.pop(f"{name}_low", None), fields.pop(f"{name}_high", None)
            if low is not None or high is not None:
                mode = fields[name]
                fields[name] = {
                    "low": mode if low is None else low,
                    "mode": mode,
                    "high": mode if high is None else high,
                }
        return fields

    @staticmethod
    def initial_from(spec: dict[str, Any]) -> dict[str, Any]:
        """A SPEC document as first values of the fields."""
        initial = dict(spec)
        for name in ("mfu", "goodput"):
            value = initial.get(name)
            if isinstance(value, dict):
                initial |= {
                    name: value["mode"],
                    f"{name}_low": value["low"],
                    f"{name}_high": value["high"],
                }
        for name in ("params", "active_params", "tokens"):
            if name in initial:
                initial[name] = short_count(float(initial[name]))
        return initial


def short_count(count: float) -> str:
    """A count as people write it.

    >>> short_count(1e13), short_count(8.03e9)
    ('10T', '8.03B')
    """
    for suffix in ("T", "B", "M", "K"):
        if count >= SUFFIXES[suffix]:
            return f"{count / SUFFIXES[suffix]:.6g}{suffix}"
    return f"{count:.6g}"
