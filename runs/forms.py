"""What people type about own catalogue rows; figures in the units of datasheets."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from formulae.units import FLOP_PER_TFLOP
from runs.catalogue_pages import tera
from runs.catalogue_rows import LEAST_PEAK_FLOP_PER_S, MOST_PEAK_FLOP_PER_S, RowError
from runs.records import PRECISIONS, AcceleratorSpec, InstanceTypeSpec

MOST_TFLOP_PER_S = Decimal(MOST_PEAK_FLOP_PER_S) / FLOP_PER_TFLOP
LEAST_TFLOP_PER_S = Decimal(LEAST_PEAK_FLOP_PER_S) / FLOP_PER_TFLOP
TEXTS = ("name", "vendor", "form_factor", "memory_type", "interconnect", "unit_note", "note")
FIGURES = ("tdp_w", "max_power_w", "memory_gb", "memory_bandwidth_gb_per_s")
COUNTS = ("launch_year", "accelerators_per_node")
INT8 = "int8"


class PeakField(forms.DecimalField):
    """A peak in TFLOP/s; a figure that must be FLOP/s is refused with both units."""

    def __init__(self, label: str) -> None:
        super().__init__(
            label=label,
            required=False,
            widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal", "min": "0"}),
        )

    def validate(self, value: Any) -> None:
        """Refuse what cannot be TFLOP/s."""
        super().validate(value)
        if value is not None and value > MOST_TFLOP_PER_S:
            raise forms.ValidationError(
                _(
                    "This field is in TFLOP/s. %(given)s TFLOP/s is more than any accelerator "
                    "does; if it is FLOP/s, write %(meant)s."
                )
                % {"given": f"{value:f}", "meant": f"{value / FLOP_PER_TFLOP:.6g}"}
            )
        if value is not None and value < LEAST_TFLOP_PER_S:
            raise forms.ValidationError(
                _(
                    "This field is in TFLOP/s. %(given)s TFLOP/s is too little for an accelerator; "
                    "if it is PFLOP/s, write %(meant)s."
                )
                % {"given": f"{value:f}", "meant": f"{value * 1000:f}"}
            )


class _Figure(forms.FloatField):
    """A figure above zero, with any decimals."""

    def __init__(self, label: Any, *, help_text: Any = "") -> None:
        super().__init__(
            label=label,
            required=False,
            min_value=0,
            help_text=help_text,
            widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
        )


class SourceFields(forms.Form):
    """Who says so, and when: every row has it."""

    source = forms.CharField(
        label=gettext_lazy("Source"),
        max_length=400,
        help_text=gettext_lazy("Who says so: a datasheet, a contract, a measurement of yours."),
    )
    source_date = forms.RegexField(
        r"^\d{4}(-\d{2}(-\d{2})?)?$",
        label=gettext_lazy("Date of the source"),
        help_text=gettext_lazy("A year, month or day: 2026, 2026-01 or 2026-01-31."),
    )
    note = forms.CharField(
        label=gettext_lazy("Note"),
        max_length=2_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class AcceleratorForm(SourceFields):
    """An own accelerator."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=200)
    key = forms.RegexField(
        r"^[a-z0-9][a-z0-9-]*$",
        label=gettext_lazy("Key"),
        max_length=80,
        help_text=gettext_lazy(
            "Small letters, digits and hyphens, such as h100-sxm-80gb. The key of a shipped row "
            "overrides that row."
        ),
    )
    vendor = forms.CharField(label=gettext_lazy("Vendor"), max_length=200, required=False)
    form_factor = forms.CharField(
        label=gettext_lazy("Form"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("SXM5, PCIe, OAM, superchip, pod …"),
    )
    launch_year = forms.IntegerField(
        label=gettext_lazy("Year"), min_value=1990, max_value=2100, required=False
    )
    unit_note = forms.CharField(
        label=gettext_lazy("What one of them is"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("A card, a chip of two cores, one die of a module …"),
    )
    tdp_w = _Figure(gettext_lazy("TDP (W)"))
    max_power_w = _Figure(
        gettext_lazy("Highest plausible power (W)"),
        help_text=gettext_lazy("Samples above it are set aside. Empty: the TDP."),
    )
    memory_gb = _Figure(gettext_lazy("Memory (GB)"))
    memory_type = forms.CharField(
        label=gettext_lazy("Kind of memory"), max_length=200, required=False
    )
    memory_bandwidth_gb_per_s = _Figure(gettext_lazy("Memory bandwidth (GB/s)"))
    accelerators_per_node = forms.IntegerField(
        label=gettext_lazy("Accelerators per node"),
        min_value=1,
        max_value=1024,
        required=False,
        help_text=gettext_lazy("In a usual server: a node that fails takes all of them down."),
    )
    interconnect = forms.CharField(
        label=gettext_lazy("Interconnect within the node"), max_length=200, required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for precision in PRECISIONS:
            self.fields[f"dense_{precision}"] = PeakField(precision.upper())
            self.fields[f"sparse_{precision}"] = PeakField(precision.upper())
        for kind in ("dense", "sparse"):
            self.fields[f"{kind}_{INT8}"] = PeakField("INT8 (TOP/s)")

    def peaks(self, kind: str) -> list[forms.BoundField]:
        """The fields of one kind of peak."""
        return [self[f"{kind}_{precision}"] for precision in (*PRECISIONS, INT8)]

    @property
    def dense(self) -> list[forms.BoundField]:
        """The fields of the dense peaks."""
        return self.peaks("dense")

    @property
    def sparse(self) -> list[forms.BoundField]:
        """The fields of the sparse peaks."""
        return self.peaks("sparse")

    def document(self) -> dict[str, Any]:
        """The row as its document, in FLOP/s."""
        data = self.cleaned_data
        names = ("key", "source", "source_date", *TEXTS, *FIGURES, *COUNTS)
        row = {name: data[name] for name in names if data[name] not in (None, "")}
        for kind in ("dense", "sparse"):
            row[f"peak_{kind}_flop_per_s"] = {
                precision: float(data[f"{kind}_{precision}"] * FLOP_PER_TFLOP)
                for precision in PRECISIONS
                if data[f"{kind}_{precision}"] is not None
            }
            if data[f"{kind}_{INT8}"] is not None:
                row[f"int8_{kind}_op_per_s"] = float(data[f"{kind}_{INT8}"] * FLOP_PER_TFLOP)
        return row

    def refuse(self, error: RowError) -> None:
        """Show a refused row's message at its field."""
        top, _dot, precision = error.field.partition(".")
        kind = top.removeprefix("peak_").removesuffix("_flop_per_s")
        name = f"{kind}_{precision}" if precision else top
        if top.startswith(f"{INT8}_"):
            name = f"{top.split('_')[1]}_{INT8}"
        self.add_error(name if name in self.fields else None, error.message)


def accelerator_initial(spec: AcceleratorSpec) -> dict[str, Any]:
    """What the form of an accelerator starts from."""
    names = ("key", "source", "source_date", *TEXTS, *FIGURES, *COUNTS)
    initial = {name: getattr(spec, name) for name in names}
    initial |= {name: _plain(getattr(spec, name)) for name in FIGURES}
    for kind in ("dense", "sparse"):
        peaks: Mapping[str, float] = getattr(spec, f"peak_{kind}_flop_per_s")
        per_s = {**peaks, INT8: getattr(spec, f"int8_{kind}_op_per_s")}
        for precision, peak in per_s.items():
            initial[f"{kind}_{precision}"] = _plain(tera(peak))
    return initial


def _plain(value: float | Decimal | None) -> str | None:
    """All digits and no more: 700, not 700.0."""
    return None if value is None else f"{Decimal(str(value)).normalize():f}"


class InstanceTypeForm(SourceFields):
    """An own instance type."""

    provider = forms.RegexField(
        r"^[a-z0-9][a-z0-9-]*$",
        label=gettext_lazy("Provider"),
        max_length=40,
        help_text=gettext_lazy("aws, gcp, azure or another name in small letters."),
    )
    name = forms.RegexField(
        r"^[^\s/][^/]*$",
        label=gettext_lazy("Instance type"),
        max_length=120,
        help_text=gettext_lazy("The provider's own name, such as p5.48xlarge."),
    )
    accelerator = forms.ChoiceField(label=gettext_lazy("Accelerator"))
    accelerator_count = forms.DecimalField(
        label=gettext_lazy("Accelerators in it"),
        min_value=Decimal("0.0001"),
        max_value=1024,
        max_digits=9,
        decimal_places=4,
        help_text=gettext_lazy("A slice of a card is its fraction, such as 0.125."),
    )
    network_gbit_per_s = _Figure(gettext_lazy("Network (Gbit/s)"))

    def __init__(self, *args: Any, accelerators: Iterable[AcceleratorSpec], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["accelerator"]
        if isinstance(field, forms.ChoiceField):
            by_name = sorted(accelerators, key=lambda spec: spec.name)
            field.choices = [(spec.key, spec.name) for spec in by_name]

    def document(self) -> dict[str, Any]:
        """The row as its document."""
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}

    def refuse(self, error: RowError) -> None:
        """Show a refused row's message at its field."""
        self.add_error(error.field if error.field in self.fields else None, error.message)


def instance_type_initial(spec: InstanceTypeSpec) -> dict[str, Any]:
    """What the form of an instance type starts from."""
    return {
        "provider": spec.provider,
        "name": spec.name,
        "accelerator": spec.accelerator_key,
        "accelerator_count": _plain(spec.accelerator_count),
        "network_gbit_per_s": _plain(spec.network_gbit_per_s),
        "note": spec.note,
        "source": spec.source,
        "source_date": spec.source_date,
    }
