"""The form of a run: what it is measured against, and where it belongs."""

from collections.abc import Iterable
from dataclasses import fields
from datetime import UTC, datetime, time
from typing import Any, Final

from django import forms
from django.core.validators import URLValidator
from django.utils.translation import gettext as say
from django.utils.translation import gettext_lazy as _

from runs.records import PRECISIONS, AcceleratorSpec, RunRecord
from ui.count_fields import CountField, short_count

LARGEST_COUNT: Final = 2**63 - 1
COUNTS: Final = ("parameters_active", "flop_per_token", "tokens_planned", "tokens_per_step")
WHOLE: Final = ("tokens_planned", "tokens_per_step")


def _day(label: Any, help_text: Any = "") -> forms.DateField:
    return forms.DateField(
        label=label,
        required=False,
        help_text=help_text,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )


class RunForm(forms.Form):
    """A run of a project; its slug is how programs call it and stays."""

    slug = forms.SlugField(
        label=_("Short name"),
        max_length=80,
        help_text=_("Letters, digits and hyphens. Programs call the run PROJECT/RUN by it."),
    )
    name = forms.CharField(label=_("Name"), max_length=200, required=False)
    accelerator_key = forms.ChoiceField(label=_("Accelerator"), required=False)
    accelerator_count = forms.IntegerField(
        label=_("Accelerators"), required=False, min_value=0, max_value=2**31 - 1
    )
    precision = forms.ChoiceField(
        label=_("Precision"),
        required=False,
        choices=[("", _("not told: BF16 is assumed")), *((one, one.upper()) for one in PRECISIONS)],
        help_text=_("Utilisation is measured against the dense peak of this precision."),
    )
    parameters_active = CountField(
        label=_("Active parameters"),
        required=False,
        help_text=_("10B. A token takes 6 FLOP of each: of a mixture of experts only the active."),
    )
    flop_per_token = CountField(
        label=_("FLOP of a token"),
        required=False,
        help_text=_("Only where 6 per parameter is not right, such as 6.6e10."),
    )
    tokens_planned = CountField(
        label=_("Tokens planned"), required=False, help_text=_("10T, 500B.")
    )
    tokens_per_step = CountField(
        label=_("Tokens of a step"),
        required=False,
        help_text=_("Where the log tells steps only: global batch times sequence length."),
    )
    start = _day(_("From"))
    end = _day(_("To (exclusive)"), _("Empty while it goes on."))
    plan_line_key = forms.CharField(
        label=_("Line of the plan"),
        max_length=80,
        required=False,
        help_text=_("Which line of the plan the run works off, such as main_run."),
    )
    git_commit = forms.CharField(label=_("Commit"), max_length=64, required=False)
    external_url = forms.CharField(
        label=_("Address elsewhere"),
        max_length=500,
        required=False,
        validators=[URLValidator(schemes=["http", "https"])],
        help_text=_("Such as the run's page in your experiment tracker."),
    )

    def __init__(self, *args: Any, accelerators: Iterable[AcceleratorSpec], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["accelerator_key"] = forms.ChoiceField(
            label=_("Accelerator"),
            required=False,
            choices=[("", _("not told: that of its devices")), *_choices(accelerators)],
        )
        self.order_fields([one for one in RunForm.base_fields if one in self.fields])

    def clean(self) -> dict[str, Any]:
        """Counts that can be kept, and an end after the start."""
        cleaned = super().clean() or self.cleaned_data
        for name in COUNTS:
            value = cleaned.get(name)
            if value is not None and not 0 < value <= LARGEST_COUNT:
                self.add_error(name, say("It must be above 0 and below 9.2e18."))
        start, end = cleaned.get("start"), cleaned.get("end")
        if start and end and end <= start:
            self.add_error("end", say("The end comes after the start."))
        return cleaned

    def changes(self, before: RunRecord | None = None) -> dict[str, Any]:
        """The fields of the record as they were typed; a day that stays keeps its hour."""
        found = {name: self.cleaned_data[name] for name in self.cleaned_data if name != "slug"}
        for name in WHOLE:
            value = found[name]
            found[name] = None if value is None else int(value)
        found["accelerator_count"] = found["accelerator_count"] or 0
        for name in ("start", "end"):
            old = getattr(before, name) if before else None
            day = found[name]
            stays = old is not None and day == old.astimezone(UTC).date()
            midnight = datetime.combine(day, time(), tzinfo=UTC) if day else None
            found[name] = old if stays else midnight
        return found


def _choices(accelerators: Iterable[AcceleratorSpec]) -> list[tuple[str, str]]:
    return sorted(((one.key, one.name) for one in accelerators), key=lambda one: one[1])


def run_initial(run: RunRecord) -> dict[str, Any]:
    """What the form shows of a run."""
    found = {one.name: getattr(run, one.name) for one in fields(run)}
    for name in COUNTS:
        if found[name] is not None:
            found[name] = short_count(float(found[name]))
    for name in ("start", "end"):
        found[name] = found[name].astimezone(UTC).date() if found[name] else None
    return found
