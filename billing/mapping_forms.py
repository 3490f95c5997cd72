"""What people type to have their own CSV read: a sample, then a column or value for each field."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from billing.adapters.layout import InstantStyle
from billing.adapters.mapped import (
    DEFAULTS,
    MAPPABLE,
    REQUIRED,
    STYLES,
    ColumnMapping,
    Fault,
    guessed,
    guessed_constants,
)
from billing.columns import BY_NAME
from billing.records import Kind

LABELS: Final = {
    "charge_period_start": _("Day or start of the charge"),
    "charge_period_end": _("End of the charge"),
    "billing_period_start": _("Billing month"),
    "billed_cost": _("Billed cost"),
    "effective_cost": _("Effective cost"),
    "list_cost": _("List cost"),
    "contracted_cost": _("Contracted cost"),
    "billing_currency": _("Currency"),
    "provider_name": _("Provider"),
    "service_name": _("Service"),
    "service_category": _("Service category"),
    "charge_category": _("Kind of charge"),
    "charge_description": _("Description"),
    "billing_account_id": _("Billing account"),
    "sub_account_id": _("Account or project"),
    "sub_account_name": _("Name of the account"),
    "region_id": _("Region"),
    "resource_id": _("Resource"),
    "resource_name": _("Name of the resource"),
    "resource_type": _("Type of the resource"),
    "sku_id": _("SKU"),
    "sku_meter": _("Meter"),
    "consumed_quantity": _("Quantity"),
    "consumed_unit": _("Unit"),
    "invoice_id": _("Invoice"),
    "x_usage_type": _("Usage type"),
    "x_instance_type": _("Instance type"),
}
NEEDED: Final = ("charge_period_start", "billed_cost", *REQUIRED[1:])
FAULTS: Final = {
    Fault.UNKNOWN: _("This cannot be mapped."),
    Fault.UNTOLD: _("Needed: choose a column, or give one value for all rows."),
    Fault.VARIES: _("It differs from row to row: choose a column."),
    Fault.NO_COST: _("Needed: choose a column, or map the quantity and have it priced."),
}
STYLE_NAMES: Final = {
    InstantStyle.ISO_DAY: _("2026-05-31, with or without a time in UTC"),
    InstantStyle.SLASHED: _("2026/05/31"),
    InstantStyle.US_DATE: _("05/31/2026, the month first"),
    InstantStyle.DAY_FIRST: _("31/05/2026 or 31.05.2026, the day first"),
}


class SampleForm(forms.Form):
    """The file to look at, and the source that such files will come from."""

    file = forms.FileField(
        label=_("A file, or its first thousand rows"),
        help_text=_("CSV with the column names in its first row, plain or packed, up to 64 MiB."),
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,.gz,.zst,text/csv"}),
    )
    source = forms.CharField(
        label=_("Source"),
        max_length=120,
        help_text=_("The account or vendor that these files come from. A new name makes a source."),
    )


class MappingForm(forms.Form):
    """One row for each field of a charge: a column of the file, or one value for all rows."""

    days = forms.ChoiceField(
        label=_("How days are written"), choices=[(one.value, STYLE_NAMES[one]) for one in STYLES]
    )
    tags = forms.MultipleChoiceField(
        label=_("Columns that become tags"),
        required=False,
        help_text=_("Tags can be used in allocation rules and to group costs."),
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(
        self, *args: Any, columns: Sequence[str], mapping: Mapping[str, Any], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        told = dict(mapping.get("columns") or guessed(columns))
        constants = dict(mapping.get("constants") or {})
        if not mapping.get("columns"):
            constants = guessed_constants(columns)
        choices = [("", "—"), *((name, name) for name in columns)]
        for name in MAPPABLE:
            self.fields[f"column_{name}"] = forms.ChoiceField(
                label=LABELS[name],
                choices=choices,
                required=False,
                initial=told.get(name, "") if told.get(name) in columns else "",
            )
            if BY_NAME[name].kind in (Kind.TEXT, Kind.ENUM, Kind.CURRENCY):
                self.fields[f"value_{name}"] = forms.CharField(
                    label=LABELS[name],
                    required=False,
                    max_length=200,
                    initial=constants.get(name, ""),
                    widget=forms.TextInput(attrs={"placeholder": DEFAULTS.get(name, "")}),
                )
        tags = self.fields["tags"]
        if isinstance(tags, forms.MultipleChoiceField):
            tags.choices = [(name, name) for name in columns]
            tags.initial = [name for name in mapping.get("tags", ()) if name in columns]
        self.fields["days"].initial = mapping.get("days", InstantStyle.ISO_DAY.value)

    def needed_rows(self) -> Iterator[dict[str, Any]]:
        """The fields without which nothing is a charge."""
        return self._rows(NEEDED)

    def other_rows(self) -> Iterator[dict[str, Any]]:
        """The fields that may stay open."""
        return self._rows([name for name in MAPPABLE if name not in NEEDED])

    def wrong_rows(self) -> list[dict[str, Any]]:
        """The fields that are wrong, as they stand on the page."""
        return [row for row in (*self.needed_rows(), *self.other_rows()) if row["errors"]]

    @property
    def has_other_errors(self) -> bool:
        """Whether a field that may stay open is wrong."""
        return any(row["errors"] for row in self.other_rows())

    def _rows(self, names: Iterable[str]) -> Iterator[dict[str, Any]]:
        """Fields of a charge with their two ways of being told."""
        for name in names:
            value = f"value_{name}"
            yield {
                "name": name,
                "label": LABELS[name],
                "column": self[f"column_{name}"],
                "value": self[value] if value in self.fields else None,
                "errors": [
                    text
                    for one in (f"column_{name}", value)
                    if one in self.fields
                    for text in self.errors.get(one, ())
                ],
            }

    def clean(self) -> dict[str, Any]:
        """Mark every field that keeps the mapping from giving charges; go to the first."""
        if not self.errors:
            for name, fault in self.mapping().wrong().items():
                if f"column_{name}" in self.fields:
                    self.add_error(f"column_{name}", FAULTS[fault])
        wrong = [name for name in self.fields if name in self.errors]
        if wrong:
            first = min(wrong, key=_place)
            self.fields[first].widget.attrs["autofocus"] = True
        return self.cleaned_data

    def mapping(self) -> ColumnMapping:
        """What was typed, as a mapping; a column beats one value for all rows."""
        typed = self.cleaned_data
        columns = {name: typed[f"column_{name}"] for name in MAPPABLE if typed[f"column_{name}"]}
        constants = {
            name: text.strip()
            for name in MAPPABLE
            if name not in columns and (text := typed.get(f"value_{name}", ""))
        }
        return ColumnMapping(
            columns=columns,
            constants=constants,
            tags=tuple(typed["tags"]),
            days=InstantStyle(typed["days"]),
        )


def _place(field: str) -> int:
    """Where a field stands on the page: those that are needed come first."""
    name = field.removeprefix("column_").removeprefix("value_")
    order = [*NEEDED, *MAPPABLE]
    return order.index(name) if name in order else -1
