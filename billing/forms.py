"""What people type about bills: uploads and allocation rules. No rule of who may."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from billing.models import AllocationRule
from billing.services import RuleWish
from formulae.periods import InstantError, PeriodError, month_from_label


class _ManyFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class ManyFilesField(forms.FileField):
    """One or more files."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("widget", _ManyFiles(attrs={"accept": ".csv,.gz,text/csv"}))
        super().__init__(**options)

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        """Check every file; an empty one is for the import to refuse, with its reason."""
        files = data if isinstance(data, list | tuple) else [data]
        return [super(ManyFilesField, self).clean(file, initial) for file in files or [None]]


class UploadForm(forms.Form):
    """Bill files, where they come from, and which month they are meant to replace."""

    file = ManyFilesField(
        label=_("Bill files"),
        help_text=_("FOCUS 1.0 to 1.2 as CSV or CSV.gz, one or more files of the same export."),
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

    def clean_period(self) -> str:
        """A billing month, or nothing."""
        period: str = self.cleaned_data["period"].strip()
        if period:
            try:
                month_from_label(period)
            except (InstantError, PeriodError) as error:
                raise forms.ValidationError(str(error)) from error
        return period


class RuleForm(forms.Form):
    """Which charges go to which project."""

    match = forms.ChoiceField(
        label=_("Charges of the same"),
        choices=AllocationRule.Match.choices,
        help_text=_("Account is FOCUS SubAccountId, resource is FOCUS ResourceId."),
    )
    key = forms.CharField(
        label=_("Tag key"), required=False, max_length=200, help_text=_("Only for tags.")
    )
    value = forms.CharField(
        label=_("Value"), max_length=500, help_text=_("Exactly this value; * means any value.")
    )
    project = forms.ChoiceField(label=_("Go to project"))

    def __init__(
        self, *args: Any, project_choices: Sequence[tuple[str, str]], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        field = self.fields["project"]
        if isinstance(field, forms.ChoiceField):
            field.choices = list(project_choices)

    def wish(self) -> RuleWish:
        """The rule as services take it."""
        return RuleWish(
            match=self.cleaned_data["match"],
            key=self.cleaned_data["key"].strip(),
            value=self.cleaned_data["value"].strip(),
            project=self.cleaned_data["project"],
        )
