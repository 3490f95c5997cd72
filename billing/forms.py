"""What people type about uploads of bills. No rule of who may."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from formulae.periods import InstantError, PeriodError, month_from_label

ACCEPTED = ".csv,.gz,.zst,.zip,.parquet,.json,text/csv,application/zip"


class _ManyFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class ManyFilesField(forms.FileField):
    """One or more files."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("widget", _ManyFiles(attrs={"accept": ACCEPTED}))
        super().__init__(**options)

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        """Check every file; an empty one is for the import to refuse, with its reason."""
        files = data if isinstance(data, list | tuple) else [data]
        return [super(ManyFilesField, self).clean(file, initial) for file in files or [None]]


class UploadForm(forms.Form):
    """Bill files, where they come from, and which month they are meant to replace."""

    file = ManyFilesField(
        label=_("Bill files"),
        help_text=_(
            "CSV, plain or packed (.gz, .zst), Parquet, or a zip of those: one or more files of "
            "the same export, with its manifest.json where it has one."
        ),
        allow_empty_file=True,
    )
    source = forms.CharField(
        label=_("Source"),
        max_length=120,
        initial="default",
        help_text=_("The export or account that these files come from. A new name makes a source."),
    )
    period = forms.CharField(
        label=_("Month that the files replace"),
        required=False,
        max_length=7,
        help_text=_("As 2026-05. Leave it empty: every month with many rows is then replaced."),
        widget=forms.TextInput(attrs={"placeholder": "2026-05", "pattern": "[0-9]{4}-[0-9]{2}"}),
    )

    adds = forms.BooleanField(
        label=_("A further part of an export: add its rows, replace no month"), required=False
    )

    def clean_period(self) -> str:
        """A billing month, or nothing."""
        period: str = self.cleaned_data["period"].strip()
        if period:
            try:
                month_from_label(period)
            except (InstantError, PeriodError) as error:
                raise forms.ValidationError(str(error)) from error
        return period
