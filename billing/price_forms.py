"""What people type about prices and exchange rates. No rule of who may, none of what a price is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django import forms
from django.utils.translation import gettext_lazy as _

from billing.price_reading import price_from_texts, rate_from_texts
from billing.price_records import (
    ON_DEMAND,
    OWN_BOOK,
    UNITS_OF,
    PricesRefusedError,
    PriceWish,
    RateWish,
)
from billing.price_words import PRICE_CLASS_NAMES, PURCHASE_NAMES, UNIT_NAMES

Wish = TypeVar("Wish", PriceWish, RateWish)
_CSV = {"accept": ".csv,text/csv"}
_RATES = {"accept": ".csv,.zip,.xml,text/csv,text/xml,application/zip"}


def _date_input() -> forms.DateInput:
    return forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")


class _TextsForm(forms.Form):
    """A form whose texts the readers of files check: one rule for pages and files."""

    def _read(self, texts: Mapping[str, str], read: Callable[[Mapping[str, str]], Wish]) -> Any:
        try:
            return read(texts)
        except PricesRefusedError as error:
            self.add_error(error.column if error.column in self.fields else None, error.reason)
            return None


class PriceForm(_TextsForm):
    """One price."""

    cost_class = forms.ChoiceField(label=_("Price of"), choices=list(PRICE_CLASS_NAMES.items()))
    accelerator_key = forms.ChoiceField(
        label=_("Accelerator"), required=False, help_text=_("Only for accelerators.")
    )
    price = forms.CharField(
        label=_("Price of one unit"),
        help_text=_("All its decimals, such as 2.744705. An accelerator is priced by the hour."),
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
    )
    currency = forms.CharField(label=_("Currency"), min_length=3, max_length=3, initial="USD")
    unit = forms.ChoiceField(
        label=_("Unit"),
        required=False,
        choices=[("", _("the usual one")), *UNIT_NAMES.items()],
    )
    purchase = forms.ChoiceField(
        label=_("Bought"), choices=list(PURCHASE_NAMES.items()), initial=ON_DEMAND
    )
    provider = forms.CharField(
        label=_("Provider"),
        required=False,
        max_length=40,
        help_text=_("Such as aws, gcp, azure. Empty: wherever it runs."),
    )
    region = forms.CharField(
        label=_("Region"),
        required=False,
        max_length=60,
        help_text=_("As the provider writes it. Empty: in every region."),
    )
    instance_type = forms.CharField(label=_("Instance or product"), required=False, max_length=120)
    valid_from = forms.CharField(label=_("In force from"), widget=_date_input())
    valid_to = forms.CharField(
        label=_("Until, that day out"),
        required=False,
        widget=_date_input(),
        help_text=_("Empty: until a later price of the same thing."),
    )
    source = forms.CharField(
        label=_("Source"), max_length=300, help_text=_("Contract, offer or page that says so.")
    )
    source_date = forms.CharField(
        label=_("Date of the source"),
        required=False,
        max_length=10,
        help_text=_("As 2026, 2026-03 or 2026-03-31."),
    )
    book = forms.CharField(label=_("Price book"), max_length=120, initial=OWN_BOOK)
    note = forms.CharField(label=_("Note"), required=False, max_length=2000)
    wish: PriceWish | None = None

    def __init__(self, *args: Any, accelerators: Sequence[tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        field = self.fields["accelerator_key"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [("", "—"), *accelerators]

    def clean(self) -> dict[str, Any]:
        """Read the price as a row of a file would be read."""
        texts = {name: str(value) for name, value in self.cleaned_data.items()}
        if not self.errors:
            texts["unit"] = texts["unit"] or UNITS_OF[texts["cost_class"]][0]
            self.wish = self._read(texts, lambda row: price_from_texts(row, currency="USD"))
        return self.cleaned_data


class PriceFileForm(forms.Form):
    """Prices as a CSV."""

    file = forms.FileField(
        label=_("Price list as CSV"),
        help_text=_("All rows are taken, or none and you are told which row is wrong."),
        widget=forms.ClearableFileInput(attrs=_CSV),
        allow_empty_file=True,
    )
    into_book = forms.CharField(
        label=_("Price book"),
        max_length=120,
        initial=OWN_BOOK,
        help_text=_("A new name makes a book."),
    )


class RateForm(_TextsForm):
    """One exchange rate."""

    base = forms.CharField(label=_("One unit of"), min_length=3, max_length=3, initial="USD")
    rate = forms.CharField(
        label=_("is worth"), widget=forms.TextInput(attrs={"inputmode": "decimal"})
    )
    quote = forms.CharField(label=_("of"), min_length=3, max_length=3)
    date = forms.CharField(label=_("On the day"), widget=_date_input())
    source = forms.CharField(label=_("Source"), max_length=300)
    wish: RateWish | None = None

    def clean(self) -> dict[str, Any]:
        """Read the rate as a row of a file would be read."""
        if not self.errors:
            texts = {name: str(value) for name, value in self.cleaned_data.items()}
            self.wish = self._read(texts, lambda row: rate_from_texts(row, source=""))
        return self.cleaned_data


class RateFileForm(forms.Form):
    """Exchange rates as a CSV."""

    file = forms.FileField(
        label=_("A file of exchange rates"),
        help_text=_(
            "Columns date, base, quote, rate; or a file of the European Central Bank "
            "as it is: CSV, zip or XML."
        ),
        widget=forms.ClearableFileInput(attrs=_RATES),
        allow_empty_file=True,
    )
    file_source = forms.CharField(
        label=_("Source"),
        required=False,
        max_length=300,
        help_text=_("Where the rates of your own file come from."),
    )
    since = forms.DateField(label=_("Only from this day on"), required=False, widget=_date_input())
