"""Checks of charges: recompute every roll-up in two independent ways; changes nothing."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from audit.records import Finding
from billing.expressions import DAILY_KEYS, allocated, daily_costs
from billing.models import ChargeSlice, DailyCost, PeriodVersion
from billing.records import COST_COLUMNS, RuleCondition, RuleRecord
from billing.selectors import newest_rule_set, published_versions, rules_of
from formulae.units import EXACT
from lake import store
from lake.engine import open_engine

_SUMS = (*COST_COLUMNS, "accelerator_h", "rows")
_KEPT = 20  # findings of one kind in one version; more would say no more
Sums = dict[tuple[Any, ...], dict[str, Any]]


def verify(organisation_id: UUID) -> list[Finding]:
    """Recompute what is published by the engine and, apart from it, row by row in plain Python."""
    rule_set = newest_rule_set(organisation_id)
    rules = rules_of(rule_set)
    versions = published_versions(organisation_id).select_related("period__source")
    findings = _pointers(organisation_id)
    for version in versions.order_by("period__start", "pk"):
        where = f"{version.period.source.name}, {version.period}"
        slices = list(version.slices.order_by("path"))
        missing = [item for item in slices if not store.resolve(item.path).exists()]
        if missing:
            findings += [
                Finding(code="charges_file_missing", where=where, expected=item.path, found="")
                for item in missing
            ]
            continue
        stored = _stored(version)
        by_python, totals = _by_python(slices, rules)
        findings += _differences("daily_cost_python", where, by_python, stored)
        findings += _differences("daily_cost_engine", where, _by_engine(slices, rules), stored)
        findings += _totals_differ(where, version, totals)
        findings += _other_rules(where, version, rule_set.pk if rule_set else None)
    return findings


def _pointers(organisation_id: UUID) -> list[Finding]:
    """Every period points to its version in force, and daily costs belong to such versions only."""
    loose = DailyCost.objects.filter(
        organisation_id=organisation_id, version__superseded_at__isnull=False
    ).count()
    astray = published_versions(organisation_id).filter(published_period__isnull=True).count()
    findings = []
    if loose:
        findings.append(_finding("daily_cost_of_old_version", "daily costs", "0", str(loose)))
    if astray:
        findings.append(_finding("version_not_published", "billing periods", "0", str(astray)))
    return findings


def _finding(code: str, where: str, expected: str, found: str) -> Finding:
    return Finding(code=code, where=where, expected=expected, found=found)


def _stored(version: PeriodVersion) -> Sums:
    return {
        _key(row, DAILY_KEYS): {name: row[name] for name in _SUMS}
        for row in version.daily_costs.values(*DAILY_KEYS, *_SUMS)
    }


def _key(row: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(
        str(row[name]) if name == "project_id" and row[name] else row[name] for name in names
    )


def _by_engine(slices: Sequence[ChargeSlice], rules: Sequence[RuleRecord]) -> Sums:
    if not slices:
        return {}
    with open_engine() as engine:
        charges = allocated(engine.table([item.path for item in slices]), rules)
        found = engine.rows(daily_costs(charges))
    return {_key(row, DAILY_KEYS): {name: row[name] for name in _SUMS} for row in found}


def _by_python(
    slices: Sequence[ChargeSlice], rules: Sequence[RuleRecord]
) -> tuple[Sums, dict[str, dict[str, Any]]]:
    """Daily costs and totals by currency, added up one row after the other as Decimal.

    A day's cost that one of its rows lacks is unknown; a total is that of the amounts in the files.
    """
    lacking: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    daily: Sums = defaultdict(dict)
    totals: dict[str, dict[str, Any]] = defaultdict(dict)
    ordered = sorted(rules, key=lambda rule: rule.position)
    for item in slices:
        for row in store.rows_of(item.path, columns=_READ):
            row["project_id"] = _project_of(row, ordered)
            row["day"] = row["charge_period_start"].date()
            row["accelerator_h"] = row["x_accelerator_h"]
            row["rows"] = 1
            currency, key = totals[row["billing_currency"]], _key(row, DAILY_KEYS)
            for name in _SUMS:
                currency[name] = _plus(currency.get(name), row[name])
                daily[key][name] = _plus(daily[key].get(name), row[name])
            lacking[key] |= {name for name in COST_COLUMNS if row[name] is None}
    for key, names in lacking.items():
        daily[key].update(dict.fromkeys(names))
    return dict(daily), dict(totals)


_READ = (
    *(name for name in DAILY_KEYS if name not in ("day", "project_id")),
    *COST_COLUMNS,
    "x_accelerator_h",
    "charge_period_start",
    "resource_id",
    "tags",
)


def _plus(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return left + right if isinstance(right, int) else EXACT.add(left, right)


def _project_of(row: Mapping[str, Any], rules: Sequence[RuleRecord]) -> str | None:
    """The first rule's project, decided without the engine."""
    for rule in rules:
        if all(_holds(row, one) for one in rule.conditions):
            return str(rule.targets[0].project_id)
    return None


def _holds(row: Mapping[str, Any], condition: RuleCondition) -> bool:
    if condition.field == "tag":
        value = dict(row["tags"] or ()).get(condition.key)
    else:
        value = row["resource_id" if condition.field == "resource" else "sub_account_id"]
    return value is not None and condition.value in ("*", value)


def _differences(code: str, where: str, expected: Sums, found: Sums) -> list[Finding]:
    findings = []
    for key in sorted({*expected, *found}, key=str):
        if expected.get(key) != found.get(key):
            place = f"{where}: {', '.join(str(part) for part in key if part is not None)}"
            findings.append(
                _finding(code, place, _shown(expected.get(key)), _shown(found.get(key)))
            )
    return findings[:_KEPT]


def _shown(sums: Mapping[str, Any] | None) -> str:
    if sums is None:
        return "no row"
    return ", ".join(f"{name} {sums.get(name)}" for name in _SUMS)


def _totals_differ(
    where: str, version: PeriodVersion, totals: Mapping[str, Mapping[str, Any]]
) -> list[Finding]:
    """The version's noted totals and rows against those of its rows."""
    noted = {
        entry["currency"]: {
            **{
                name: None if entry[name] is None else Decimal(entry[name]) for name in COST_COLUMNS
            },
            "rows": entry["rows"],
        }
        for entry in version.totals
    }
    counted = {
        currency: {name: sums.get(name) for name in (*COST_COLUMNS, "rows")}
        for currency, sums in totals.items()
    }
    findings = []
    if noted != counted:
        findings.append(_finding("version_totals", where, str(counted), str(noted)))
    rows = sum(int(sums["rows"] or 0) for sums in counted.values())
    if rows != version.rows:
        findings.append(_finding("version_rows", where, str(rows), str(version.rows)))
    return findings


def _other_rules(where: str, version: PeriodVersion, rule_set_id: int | None) -> list[Finding]:
    """Daily costs that were allocated by other rules than those in force."""
    other = version.daily_costs.exclude(rule_set_id=rule_set_id)
    if rule_set_id is None:
        other = version.daily_costs.filter(rule_set__isnull=False)
    count = other.count()
    if not count:
        return []
    return [_finding("daily_cost_rules", where, f"rule set {rule_set_id}", f"{count} others")]
