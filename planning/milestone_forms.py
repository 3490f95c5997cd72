"""What people type about milestones: one form a row, and a row for a new one."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from planning.milestone_changes import LAST_WEEK, MilestoneWish
from planning.records import PlanRecord

# As many decimals as a share is stored with.
_SHARE: Final = Decimal("1E-6")


class MilestoneForm(forms.Form):
    """One milestone: its week, the line that it earns a part of, and when it was reached."""

    use_required_attribute = False

    name = forms.CharField(label=_("Name"), max_length=120)
    week = forms.IntegerField(label=_("Week"), min_value=0, max_value=LAST_WEEK)
    line_key = forms.ChoiceField(label=_("Line of the plan"), required=False)
    percent = forms.DecimalField(
        label=_("Percent of the line"),
        required=False,
        min_value=Decimal(0),
        max_value=Decimal(100),
        decimal_places=4,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
    )
    reached_on = forms.DateField(
        label=_("Reached on"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def __init__(self, *args: Any, lines: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["line_key"] = forms.ChoiceField(
            label=_("Line of the plan"), required=False, choices=[("", "–"), *lines]
        )

    def clean_reached_on(self) -> date | None:
        """Not a day to come."""
        day: date | None = self.cleaned_data["reached_on"]
        if day is not None and day > datetime.now(UTC).date():
            raise forms.ValidationError(_("This day is still to come."))
        return day

    def clean(self) -> dict[str, Any]:
        """A percentage is of a line."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("percent") and not cleaned.get("line_key"):
            self.add_error("line_key", _("Choose the line that this is a part of."))
        return cleaned

    def wish(self) -> MilestoneWish:
        """What was typed, as the service takes it."""
        percent: Decimal | None = self.cleaned_data["percent"]
        return MilestoneWish(
            name=self.cleaned_data["name"],
            week=self.cleaned_data["week"],
            line_key=self.cleaned_data["line_key"],
            share_fraction=(percent / 100).quantize(_SHARE) if percent else None,
            reached_on=self.cleaned_data["reached_on"],
        )


def initial_of(wish: MilestoneWish) -> dict[str, Any]:
    """What a form of a milestone shows."""
    share = wish.share_fraction
    return {
        "name": wish.name,
        "week": wish.week,
        "line_key": wish.line_key,
        "percent": None if share is None else Decimal(format((share * 100).normalize(), "f")),
        "reached_on": wish.reached_on,
    }


def lines_of(plan: PlanRecord | None, wishes: list[MilestoneWish]) -> list[tuple[str, str]]:
    """The lines to choose among: the plan's, and those that milestones name already."""
    found = {line.key: line.name for line in plan.lines} if plan else {}
    kept = {wish.line_key: wish.line_key for wish in wishes if wish.line_key}
    return list((kept | found).items())
