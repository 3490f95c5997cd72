"""What people type about the books: a total read off an invoice."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from formulae.periods import InstantError, PeriodError, month_from_label


class InvoiceTotalForm(forms.Form):
    """What an invoice, or a whole billing month, comes to."""

    source = forms.ChoiceField(label=_("Source"))
    month = forms.CharField(
        label=_("Billing month"),
        max_length=7,
        help_text=_("As 2026-05."),
        widget=forms.TextInput(attrs={"placeholder": "2026-05", "pattern": "[0-9]{4}-[0-9]{2}"}),
    )
    invoice_id = forms.CharField(
        label=_("Invoice"),
        required=False,
        max_length=120,
        help_text=_("Empty: the total is that of the whole month."),
    )
    amount = forms.DecimalField(
        label=_("Total"), max_digits=38, decimal_places=18, help_text=_("With tax and credits.")
    )
    currency = forms.CharField(label=_("Currency"), min_length=3, max_length=3, initial="USD")
    tolerance = forms.DecimalField(
        label=_("Tolerance"),
        max_digits=38,
        decimal_places=18,
        min_value=0,
        initial=0,
        required=False,
        help_text=_("An invoice is rounded to cents, its lines are not: 0.01 is usual."),
    )
    note = forms.CharField(label=_("Note"), required=False, max_length=500)

    def __init__(
        self, *args: Any, source_choices: Sequence[tuple[str, str]], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        field = self.fields["source"]
        if isinstance(field, forms.ChoiceField):
            field.choices = list(source_choices)

    def clean_month(self) -> date:
        """The first day of the billing month."""
        try:
            return month_from_label(self.cleaned_data["month"].strip()).start.date()
        except (InstantError, PeriodError) as error:
            raise forms.ValidationError(str(error)) from error

    def clean_currency(self) -> str:
        """The code in capital letters."""
        return str(self.cleaned_data["currency"]).upper()
