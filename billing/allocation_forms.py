"""What people type about one allocation rule: conditions and shares; says nothing of who may."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from billing.allocation_matching import WITHOUT_VALUE
from billing.allocation_wishes import (
    MAX_CONDITIONS,
    MAX_KEY,
    MAX_TARGETS,
    MAX_VALUE,
    MAX_WORD,
    WEIGHT_DECIMALS,
    RuleWish,
    TargetWish,
    checked_condition,
    checked_rule,
)
from billing.allocation_words import FIELD_NAMES, OP_NAMES
from billing.records import RuleCondition

NOBODY: Final = "-"  # no slug: unallocated, and on purpose
MORE_CONDITIONS: Final = "more_conditions"
MORE_SHARES: Final = "more_shares"


class NameForm(forms.Form):
    """What the rule is called."""

    name = forms.CharField(
        label=_("Name of the rule"),
        required=False,
        max_length=MAX_WORD,
        help_text=_("For people; leave it empty and the conditions speak for themselves."),
    )


class ConditionForm(forms.Form):
    """One condition; without a field it is no condition."""

    field = forms.ChoiceField(label=pgettext_lazy("field of a condition", "What"), required=False)
    key = forms.CharField(
        label=_("Tag key"), required=False, max_length=MAX_KEY, help_text=_("Only for tags.")
    )
    op = forms.ChoiceField(label=_("Comparison"), choices=OP_NAMES.items(), required=False)
    value = forms.CharField(
        label=_("Value"),
        required=False,
        max_length=MAX_VALUE,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 1, "spellcheck": "false"}),
        help_text=_("One of several: one a line."),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _choose(self.fields["field"], [("", _("no condition")), *FIELD_NAMES.items()])

    def clean(self) -> dict[str, Any]:
        """The condition, checked as it will be stored; None where there is none."""
        cleaned: dict[str, Any] = super().clean() or {}
        cleaned["condition"] = None
        if not self.errors and cleaned.get("field"):
            op = cleaned.get("op") or "is"
            wanted = RuleCondition(
                field=cleaned["field"],
                op=op,
                key=cleaned.get("key", ""),
                value="" if op in WITHOUT_VALUE else cleaned.get("value", "").strip("\r\n"),
            )
            cleaned["condition"] = checked_condition(wanted)
        return cleaned


class ShareForm(forms.Form):
    """One share; without a project it is no share."""

    project = forms.ChoiceField(label=_("Goes to"), required=False)
    weight = forms.DecimalField(
        label=_("Weight"),
        required=False,
        initial=1,
        max_digits=18,
        decimal_places=WEIGHT_DECIMALS,
        help_text=_("2 gets twice what 1 gets."),
    )
    run_key = forms.CharField(label=_("Run"), required=False, max_length=MAX_WORD)
    team = forms.CharField(label=_("Team"), required=False, max_length=MAX_WORD)
    plan_line_key = forms.CharField(label=_("Plan line"), required=False, max_length=MAX_WORD)

    def __init__(
        self, *args: Any, project_choices: Sequence[tuple[str, str]], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        own = [("", _("no share")), *project_choices, (NOBODY, _("Unallocated, on purpose"))]
        _choose(self.fields["project"], own)

    def clean(self) -> dict[str, Any]:
        """The share; None where there is none."""
        cleaned: dict[str, Any] = super().clean() or {}
        cleaned["share"] = None
        if not self.errors and cleaned.get("project"):
            weight = cleaned.get("weight")
            cleaned["share"] = TargetWish(
                project="" if cleaned["project"] == NOBODY else cleaned["project"],
                weight=Decimal(1) if weight is None else weight,
                run_key=cleaned.get("run_key", ""),
                team=cleaned.get("team", ""),
                plan_line_key=cleaned.get("plan_line_key", ""),
            )
        return cleaned


class RuleForms:
    """The forms of one rule: its name, its conditions, its shares."""

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        wish: RuleWish | None = None,
        project_choices: Sequence[tuple[str, str]],
    ) -> None:
        self._conditions = _conditions_of(wish)
        self._shares = _shares_of(wish)
        self.name = NameForm(data, initial={"name": wish.name if wish else ""}, prefix="rule")
        self.conditions = [
            ConditionForm(data, initial=_at(self._conditions, index), prefix=f"when-{index}")
            for index in range(
                _wanted(data, "conditions", MORE_CONDITIONS, len(self._conditions), MAX_CONDITIONS)
            )
        ]
        self.shares = [
            ShareForm(
                data,
                initial=_at(self._shares, index),
                prefix=f"share-{index}",
                project_choices=project_choices,
            )
            for index in range(_wanted(data, "shares", MORE_SHARES, len(self._shares), MAX_TARGETS))
        ]
        self.errors: list[str] = []

    def is_valid(self) -> bool:
        """Whether all of it makes a rule; `errors` says what concerns the whole."""
        every = [one.is_valid() for one in (self.name, *self.conditions, *self.shares)]
        if all(every):
            try:
                checked_rule(self.wish())
            except ValidationError as error:
                self.errors = error.messages
        return all(every) and not self.errors

    def wish(self) -> RuleWish:
        """The rule as services take it."""
        conditions = (one.cleaned_data["condition"] for one in self.conditions)
        shares = (one.cleaned_data["share"] for one in self.shares)
        return RuleWish(
            name=self.name.cleaned_data["name"],
            conditions=tuple(one for one in conditions if one is not None),
            targets=tuple(one for one in shares if one is not None),
        )


def _choose(field: forms.Field, choices: Sequence[tuple[Any, Any]]) -> None:
    if isinstance(field, forms.ChoiceField):
        field.choices = list(choices)


def _conditions_of(wish: RuleWish | None) -> list[dict[str, Any]]:
    if wish is None:
        return []
    return [
        {"field": one.field, "key": one.key, "op": one.op, "value": one.value}
        for one in wish.conditions
    ]


def _shares_of(wish: RuleWish | None) -> list[dict[str, Any]]:
    if wish is None:
        return []
    return [
        {
            "project": one.project or NOBODY,
            "weight": f"{one.weight:f}",
            "run_key": one.run_key,
            "team": one.team,
            "plan_line_key": one.plan_line_key,
        }
        for one in wish.targets
    ]


def _at(rows: Sequence[dict[str, Any]], index: int) -> dict[str, Any]:
    return rows[index] if index < len(rows) else {}


def _wanted(data: Mapping[str, Any] | None, count: str, more: str, known: int, limit: int) -> int:
    """How many lines the form has: one empty line at least, one more where somebody asks."""
    if data is None:
        return min(known + 1, limit)
    text = str(data.get(count, ""))
    asked = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else 1
    return max(1, min(asked + (more in data), limit))
