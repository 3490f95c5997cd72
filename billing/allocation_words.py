"""Allocation rules as sentences, and the names of what they look at; no rule lives here."""

from collections.abc import Sequence
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.allocation_matching import TAG, values_of
from billing.records import RuleCondition
from billing.words import CLASS_NAMES

FIELD_NAMES: Final = {
    "sub_account": gettext_lazy("Account"),
    "billing_account": gettext_lazy("Billing account"),
    TAG: gettext_lazy("Tag or label"),
    "resource": gettext_lazy("Resource"),
    "resource_name": gettext_lazy("Name of the resource"),
    "service": gettext_lazy("Service"),
    "service_category": gettext_lazy("Service category"),
    "region": gettext_lazy("Region"),
    "provider": gettext_lazy("Provider"),
    "source": gettext_lazy("Source of the bill"),
    "cost_class": gettext_lazy("Cost class"),
    "charge_category": gettext_lazy("Charge category"),
    "invoice_issuer": gettext_lazy("Invoice issuer"),
}
OP_NAMES: Final = {
    "is": gettext_lazy("is"),
    "one_of": gettext_lazy("is one of"),
    "any": gettext_lazy("is there"),
    "absent": gettext_lazy("is missing"),
    "starts_with": gettext_lazy("starts with"),
    "matches": gettext_lazy("matches the pattern"),
}
_SHOWN_VALUES: Final = 5


def condition_in_words(condition: RuleCondition) -> str:
    """One condition as people say it: "Tag team is one of vision, speech"."""
    return " ".join(part for part in _parts(condition) if part)


def _parts(condition: RuleCondition) -> Sequence[str]:
    name = str(FIELD_NAMES[condition.field])
    if condition.field == TAG:
        name = _("Tag {key}").format(key=condition.key)
    return (name, str(OP_NAMES[condition.op]), _value(condition))


def _value(condition: RuleCondition) -> str:
    if condition.op == "one_of":
        values = [_named(condition, value) for value in values_of(condition)]
        shown = ", ".join(values[:_SHOWN_VALUES])
        more = len(values) - _SHOWN_VALUES
        return shown if more <= 0 else _("{shown} and {count} more").format(shown=shown, count=more)
    return _named(condition, condition.value) if condition.op == "is" else condition.value


def _named(condition: RuleCondition, value: str) -> str:
    """A cost class by its name, everything else as it stands in the bill."""
    return str(CLASS_NAMES.get(value, value)) if condition.field == "cost_class" else value
