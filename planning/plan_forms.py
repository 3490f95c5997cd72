"""Forms of a plan: a draft from an estimate, the lines of a draft, and the approval."""

from datetime import date
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from planning.records import PlanLineRecord
from planning.services import DraftChoice, LineChange

MAIN_RUN = "main_run"


class DraftPlanForm(forms.Form):
    """Which project an estimate becomes the plan of, from when, how sure, with which reserve."""

    project = forms.ChoiceField(label=_("Project"))
    starts_on = forms.DateField(
        label=_("Main run starts on"), widget=forms.DateInput(attrs={"type": "date"})
    )
    level = forms.ChoiceField(
        label=_("Percentile that is planned"),
        required=False,
        initial="p50",
        choices=[
            ("p10", _("P10: nine of ten draws cost more")),
            ("p50", _("P50: as likely above as below")),
            ("p80", _("P80: one draw in five costs more")),
            ("p90", _("P90: one draw in ten costs more")),
            ("mean", _("Mean of all draws")),
        ],
        help_text=_("Days, cost, energy and emissions of the main run are taken from it."),
    )
    contingency = forms.ChoiceField(
        label=_("Contingency"),
        required=False,
        initial="flat",
        choices=[
            ("flat", _("A flat percentage, as the lines say")),
            ("p80", _("P80 less P50 of this estimate, as an amount")),
        ],
    )

    def __init__(self, *args: Any, projects: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"] = forms.ChoiceField(label=_("Project"), choices=projects)

    def choice(self) -> DraftChoice:
        """How the draft is made, as the service takes it; what was left out is P50 and flat."""
        return DraftChoice(
            starts_on=self.cleaned_data["starts_on"],
            level=self.cleaned_data["level"] or "p50",
            contingency=self.cleaned_data["contingency"] or "flat",
        )


class PlanLineForm(forms.Form):
    """One line of a draft: its percent of its base, or a fixed amount, and its dates."""

    percent = forms.DecimalField(
        label=_("Percent"), required=False, min_value=Decimal(0), max_value=Decimal(1000)
    )
    amount = forms.DecimalField(
        label=_("Amount"), required=False, min_value=Decimal(0), decimal_places=18, max_digits=38
    )
    starts_on = forms.DateField(label=_("From"), widget=forms.DateInput(attrs={"type": "date"}))
    ends_on = forms.DateField(label=_("To"), widget=forms.DateInput(attrs={"type": "date"}))

    @classmethod
    def for_line(cls, line: PlanLineRecord, data: Any = None) -> "PlanLineForm":
        """The form of one line, filled from the line or from what was posted."""
        initial: dict[str, Decimal | date | None] = {
            "percent": None if line.fraction is None else _percent(line.fraction),
            "amount": line.amount if line.fraction is None else None,
            "starts_on": line.starts_on,
            "ends_on": line.ends_on,
        }
        form = cls(data, prefix=line.key, initial=initial)
        if line.key == MAIN_RUN:
            # 1.0x is the estimate's word: only its dates may move.
            form.fields["percent"].disabled = form.fields["amount"].disabled = True
        return form

    def change(self, key: str) -> LineChange:
        """What was posted, as the service takes it."""
        percent = self.cleaned_data["percent"]
        return LineChange(
            key=key,
            fraction=None if percent is None else percent / 100,
            amount=self.cleaned_data["amount"] if percent is None else None,
            starts_on=self.cleaned_data["starts_on"],
            ends_on=self.cleaned_data["ends_on"],
        )


def _percent(fraction: Decimal) -> Decimal:
    """A fraction in percent, without trailing zeros or an exponent.

    >>> _percent(Decimal("0.200000000")), _percent(Decimal("1.00"))
    (Decimal('20'), Decimal('100'))
    """
    return Decimal(format((fraction * 100).normalize(), "f"))


class ApprovePlanForm(forms.Form):
    """Why a draft becomes the baseline; required when it replaces one."""

    reason = forms.CharField(
        label=_("Reason"), required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
