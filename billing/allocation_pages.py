"""What the pages of allocation show, as plain values: rows of rules, changes, links of a drill."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from billing.allocation_drill import TagKey
from billing.allocation_matching import FIELDS, TAG
from billing.allocation_preview import Catch, Idle
from billing.allocation_wishes import RuleWish, TargetWish
from billing.allocation_words import condition_in_words
from billing.cost_questions import TAG_PREFIX, Filter, written_filters
from billing.cost_records import CostTable
from billing.models import RuleSet
from billing.records import RuleCondition
from billing.words import CLASS_NAMES
from projects.access import Actor, projects_for
from projects.models import Project

# A column of the drill -> the field of a condition, and the column to look at next.
_FIELD_OF: Final = {
    "sub_account_id": "sub_account",
    "service_name": "service",
    "x_cost_class": "cost_class",
    "region_id": "region",
    "provider_name": "provider",
}
_NEXT: Final = {"sub_account_id": "service_name", "service_name": "x_cost_class"}


def project_names(actor: Actor, rule_set: RuleSet | None) -> dict[str, str]:
    """The names of projects by slug: those that the actor sees and those that rules name."""
    named = Project.objects.filter(pk__in=_targets_of(rule_set))
    names = dict(named.values_list("slug", "name"))
    return names | dict(projects_for(actor).values_list("slug", "name"))


def _targets_of(rule_set: RuleSet | None) -> list[Any]:
    if rule_set is None:
        return []
    found = rule_set.rules.values_list("targets__project_id", flat=True).distinct()
    return [one for one in found if one is not None]


def rule_rows(
    wishes: Sequence[RuleWish], caught: Mapping[int | None, Catch], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The rules in order, in words, with what each caught."""
    return [
        {
            "position": position,
            "name": wish.name,
            "conditions": [condition_in_words(one) for one in wish.conditions],
            "shares": _share_rows(wish.targets, names),
            "catch": caught.get(position, Catch()),
        }
        for position, wish in enumerate(wishes, start=1)
    ]


def _share_rows(targets: Sequence[TargetWish], names: Mapping[str, str]) -> list[dict[str, Any]]:
    whole = sum((one.weight for one in targets), Decimal(0))
    return [
        {
            "project": names.get(one.project, one.project),
            "share_fraction": one.weight / whole if len(targets) > 1 else None,
            "notes": [
                words.format(key=key)
                for words, key in (
                    (_("run {key}"), one.run_key),
                    (_("team {key}"), one.team),
                    (_("plan line {key}"), one.plan_line_key),
                )
                if key
            ],
        }
        for one in targets
    ]


def moved(
    wishes: Sequence[RuleWish], position: int, action: str
) -> tuple[list[RuleWish], int | None] | None:
    """The rules with one moved up or down or removed, and where it stands then.

    None where there is no such rule, no such action, or no room to move.
    """
    rules = list(wishes)
    if not 0 < position <= len(rules):
        return None
    rule = rules.pop(position - 1)
    if action == "remove":
        return rules, None
    place = position + {"up": -1, "down": 1}.get(action, 0)
    if place == position or not 0 < place <= len(wishes):
        return None
    rules.insert(place - 1, rule)
    return rules, place


def started_by(parameters: Mapping[str, str]) -> RuleWish | None:
    """The beginning of a rule, from a link that names a field and a value."""
    field, key = parameters.get("field", ""), parameters.get("key", "")
    value = parameters.get("value", "")
    if field not in FIELDS:
        return None
    condition = RuleCondition(field=field, op="is" if value else "any", key=key, value=value)
    return RuleWish(conditions=(condition,), targets=())


def idle_in_words(idle: Sequence[Idle]) -> list[str]:
    """Why rules catch nothing."""
    return [_idle(one) for one in idle]


def _idle(one: Idle) -> str:
    if not one.taken_by:
        words = _("Rule {position} catches nothing: no charge so far meets it.")
        return words.format(position=one.position)
    words = _("Rule {position} catches nothing: what meets it is taken by {earlier} before.")
    earlier = ", ".join(_("rule {position}").format(position=other) for other in one.taken_by)
    return words.format(position=one.position, earlier=earlier)


def drill_links(
    table: CostTable, by: str, filters: Sequence[str], *, may_change: bool
) -> list[dict[str, Any]]:
    """The rows of a drill, the dearest first: where each leads, and the rule it may start."""
    rows = [
        {
            "row": row,
            "label": CLASS_NAMES.get(row.group[0] or "", row.group[0]),
            "url": _narrower(by, row.group[0], filters),
            "rule_url": _rule_link(by, row.group[0]) if may_change else "",
        }
        for row in table.rows
    ]
    return sorted(rows, key=lambda one: -abs(one["row"].cost or Decimal(0)))


def tag_links(keys: Sequence[TagKey], filters: Sequence[str]) -> list[dict[str, Any]]:
    """The keys of tags, each with the way to its values."""
    address = reverse("allocation_unallocated")
    more = [("filter", text) for text in filters]
    return [
        {
            "key": one,
            "url": f"{address}?{urlencode([('by', f'{TAG_PREFIX}{one.key}'), *more])}",
        }
        for one in keys
    ]


def _narrower(by: str, value: str | None, filters: Sequence[str]) -> str:
    own = written_filters([Filter(column=by, values=(value,))])
    pairs = [("by", _NEXT.get(by, "tags")), *(("filter", text) for text in (*filters, *own))]
    return f"{reverse('allocation_unallocated')}?{urlencode(pairs)}"


def _rule_link(by: str, value: str | None) -> str:
    """A new rule for the charges of this row; none for charges without a value."""
    if value is None:
        return ""
    start = {"field": _FIELD_OF.get(by, TAG), "value": value}
    if by.startswith(TAG_PREFIX):
        start["key"] = by.removeprefix(TAG_PREFIX)
    return f"{reverse('allocation_new')}?{urlencode(start)}"
