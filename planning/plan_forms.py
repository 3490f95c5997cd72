"""Forms of a plan: a draft from an estimate, the lines of a draft, and the approval."""

from datetime import date
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from planning.line_changes import LineChange, NewLine
from planning.records import LineBase, PlanLineRecord
from planning.services import DraftChoice

MAIN_RUN = "main_run"
# As many decimals as a fraction is stored with.
_FRACTION = Decimal("1E-9")


class DraftPlanForm(forms.Form):
    """Which project an estimate becomes the plan of, from when, how sure, with which reserve."""

    project = forms.ChoiceField(label=_("Project"))
    starts_on = forms.DateField(
        label=_("Main run starts on"),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
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


BASES = [
    (LineBase.MAIN_RUN.value, _("of the main run")),
    (LineBase.SUBTOTAL.value, _("of the lines above")),
    (LineBase.AMOUNT.value, _("fixed amount")),
]
PLACES = [("programme", _("in the programme")), ("around", _("around it"))]


class _LineFields(forms.Form):
    """Base, percent or amount, dates and place of a line."""

    base = forms.ChoiceField(label=_("Of what"), required=False, choices=BASES)
    percent = forms.DecimalField(
        label=_("Percent"),
        required=False,
        min_value=Decimal(0),
        max_value=Decimal(1000),
        decimal_places=9,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
    )
    amount = forms.DecimalField(
        label=_("Fixed amount"),
        required=False,
        min_value=Decimal(0),
        decimal_places=18,
        max_digits=38,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
    )
    starts_on = forms.DateField(
        label=_("From"), widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    ends_on = forms.DateField(
        label=_("To (exclusive)"), widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    place = forms.ChoiceField(label=_("Counts"), required=False, choices=PLACES)

    def clean(self) -> dict[str, Any]:
        """The number that the base asks for is there."""
        cleaned = super().clean() or self.cleaned_data
        base = cleaned.get("base")
        if base == LineBase.AMOUNT and cleaned.get("amount") is None:
            self.add_error("amount", _("Give the amount, or choose what it is a share of."))
        elif base and base != LineBase.AMOUNT and cleaned.get("percent") is None:
            self.add_error("percent", _("Give the percentage, or choose a fixed amount."))
        return cleaned

    def _base(self) -> LineBase | None:
        """The base that was chosen; without a choice, what the numbers say."""
        if self.cleaned_data["base"]:
            return LineBase(self.cleaned_data["base"])
        is_amount = self.cleaned_data["percent"] is None
        return LineBase.AMOUNT if is_amount and self.cleaned_data["amount"] is not None else None

    def _fraction(self) -> Decimal | None:
        percent: Decimal | None = self.cleaned_data["percent"]
        return None if percent is None else (percent / 100).quantize(_FRACTION)


class PlanLineForm(_LineFields):
    """One line of a draft: its percent of its base, or a fixed amount, its dates and its place."""

    @classmethod
    def for_line(cls, line: PlanLineRecord, data: Any = None) -> "PlanLineForm":
        """The form of one line, filled from the line or from what was posted."""
        initial: dict[str, Decimal | date | str | None] = {
            "base": line.base.value,
            "percent": None if line.fraction is None else _percent(line.fraction),
            "amount": _plain(line.amount) if line.fraction is None else None,
            "starts_on": line.starts_on,
            "ends_on": line.ends_on,
            "place": "programme" if line.in_programme else "around",
        }
        form = cls(data, prefix=line.key, initial=initial)
        if line.key == MAIN_RUN:
            # 1.0x is the estimate's word: only its dates may move.
            for name in ("base", "percent", "amount", "place"):
                form.fields[name].disabled = True
        return form

    def change(self, key: str) -> LineChange:
        """What was posted, as the service takes it."""
        base, place = self._base(), self.cleaned_data["place"]
        is_amount = base is LineBase.AMOUNT
        return LineChange(
            key=key,
            base=None if is_amount else base,
            fraction=None if is_amount else self._fraction(),
            amount=self.cleaned_data["amount"] if is_amount else None,
            in_programme=place == "programme" if place else None,
            starts_on=self.cleaned_data["starts_on"],
            ends_on=self.cleaned_data["ends_on"],
        )


class NewLineForm(_LineFields):
    """A line of one's own; without dates it lasts as long as the main run."""

    use_required_attribute = False
    field_order = ("name", "base", "percent", "amount", "starts_on", "ends_on", "place")

    name = forms.CharField(label=_("Name"), max_length=120)
    starts_on = forms.DateField(
        label=_("From"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    ends_on = forms.DateField(
        label=_("To (exclusive)"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def line(self) -> NewLine:
        """What was posted, as the service takes it."""
        base = self._base() or LineBase.MAIN_RUN
        is_amount = base is LineBase.AMOUNT
        return NewLine(
            name=self.cleaned_data["name"],
            base=base,
            fraction=None if is_amount else self._fraction(),
            amount=self.cleaned_data["amount"] if is_amount else None,
            in_programme=self.cleaned_data["place"] != "around",
            starts_on=self.cleaned_data["starts_on"],
            ends_on=self.cleaned_data["ends_on"],
        )


def _plain(amount: Decimal) -> Decimal:
    """An amount without trailing zeros or an exponent."""
    return Decimal(format(amount.normalize(), "f"))


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

    @classmethod
    def replacing(cls, number: int) -> "ApprovePlanForm":
        """The form where a baseline is in force: it asks why, before it is sent."""
        form = cls()
        form.fields["reason"].required = True
        form.fields["reason"].help_text = _("Why version %(n)s is replaced.") % {"n": number}
        return form
