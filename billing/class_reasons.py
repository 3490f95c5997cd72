"""Why a charge has its class: the rule that decided, found again, and said in words."""

from typing import Final

import ibis
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.classification import KIND_COLUMNS, described_kinds, rule_holds
from billing.cost_classes import RULES, ClassRule
from lake.engine import Engine

_FACTS: Final = {
    "charge_category": gettext_lazy("the charge category is {value}"),
    "service_category": gettext_lazy("the service category is {value}"),
    "service_subcategory": gettext_lazy("the service subcategory is {value}"),
    "commitment_discount_status": gettext_lazy("the commitment is {value}"),
}
_YES: Final = {
    "accelerated": gettext_lazy("its instance type or SKU has accelerators"),
    "storage": gettext_lazy("the service stores objects or files"),
    "transfer": gettext_lazy("it is counted in bytes"),
    "committed": gettext_lazy("it belongs to a commitment"),
}
_WORDS: Final = {
    "words": gettext_lazy("the words for what was used match {pattern}"),
    "service_name": gettext_lazy("the service's name matches {pattern}"),
    "unit": gettext_lazy("the unit matches {pattern}"),
    "x_usage_type": gettext_lazy("the usage type matches {pattern}"),
    "x_line_item_type": gettext_lazy("the line item type matches {pattern}"),
    "x_credit_type": gettext_lazy("the credit type matches {pattern}"),
}


def deciding_rule(engine: Engine, charge: ibis.Table) -> ClassRule | None:
    """The first rule of classes that holds for a charge; None where none does."""
    kind = charge.mutate(x_is_committed=charge.commitment_discount_id.notnull())
    found = described_kinds(engine, kind.select(*KIND_COLUMNS, "x_is_committed"))
    numbers = ((rule_holds(found, rule), index) for index, rule in enumerate(RULES))
    row = engine.rows(found.select(number=ibis.cases(*numbers, else_=ibis.null("int64"))))[0]
    return None if row["number"] is None else RULES[row["number"]]


def reasons(rule: ClassRule | None) -> list[str]:
    """What the rule looked at, one sentence a condition."""
    if rule is None:
        return [_("no rule of classes matches")]
    found = []
    for name, value in rule.equals.items():
        if value is True:
            found.append(str(_YES.get(name, name)))
        else:
            words = str(_FACTS.get(name, f"{name} = {{value}}"))
            found.append(words.format(value=value))
    for name, pattern in rule.matches.items():
        words = str(_WORDS.get(name, f"{name} ~ {{pattern}}"))
        found.append(words.format(pattern=_short(pattern)))
    return found


def _short(pattern: str) -> str:
    """A pattern that fits a line: the first of its alternatives."""
    first = pattern.split("|")
    return pattern if len(pattern) <= 80 else "|".join(first[:3])[:80] + "|…"
