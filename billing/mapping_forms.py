"""What people type to have their own CSV read: a sample, then a column or value for each field."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from billing.adapters.layout import InstantStyle
from billing.adapters.mapped import DEFAULTS, MAPPABLE, REQUIRED, STYLES, ColumnMapping, guessed
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

    def rows(self) -> Iterator[dict[str, Any]]:
        """The fields of a charge with their two ways of being told."""
        for name in MAPPABLE:
            value = f"value_{name}"
            yield {
                "name": name,
                "label": LABELS[name],
                "is_required": name in REQUIRED or name == "billed_cost",
                "column": self[f"column_{name}"],
                "value": self[value] if value in self.fields else None,
            }

    def mapping(self) -> ColumnMapping:
        """What was typed, as a mapping; a column beats one value for all rows.

        Raises:
            ChargesRefusedError: it cannot give charges; names the field.
        """
        typed = self.cleaned_data
        columns = {name: typed[f"column_{name}"] for name in MAPPABLE if typed[f"column_{name}"]}
        constants = {
            name: text.strip()
            for name in MAPPABLE
            if name not in columns and (text := typed.get(f"value_{name}", ""))
        }
        mapping = ColumnMapping(
            columns=columns,
            constants=constants,
            tags=tuple(typed["tags"]),
            days=InstantStyle(typed["days"]),
        )
        mapping.check()
        return mapping
