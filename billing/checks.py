"""Checks of charges: recompute every roll-up in two independent ways; changes nothing."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

from audit.records import Finding
from billing.allocation_matching import columns_of, position_of, rules_for_source
from billing.allocation_selectors import newest_rule_set, rules_of
from billing.allocation_shares import TARGET_KEYS
from billing.expressions import DAILY_KEYS, DAILY_MEASURES
from billing.models import ChargeSlice, DailyCost, PeriodVersion
from billing.published_selectors import published_versions
from billing.records import COST_COLUMNS, RuleRecord, RuleTarget
from billing.services.rollups import daily_rows
from formulae.units import EXACT, MONEY_QUANTUM
from lake import store

_SPLIT = (*COST_COLUMNS, *DAILY_MEASURES)
_SUMS = (*_SPLIT, "rows")
_KEYS = (*DAILY_KEYS, *TARGET_KEYS)
_DERIVED = ("day", "rule_position", "has_tags", "is_estimated")
_READ = ("charge_period_start", "tags", "x_estimated")
_CHUNK = 5_000
_KEPT = 20  # findings of one kind in one version; more would say no more
Sums = dict[tuple[Any, ...], dict[str, Any]]
_Totals = Mapping[str, Mapping[str, Any]]


def verify(organisation_id: UUID) -> list[Finding]:
    """Recompute what is published by the engine and, apart from it, row by row in plain Python."""
    rule_set = newest_rule_set(organisation_id)
    rules = rules_of(rule_set)
    versions = published_versions(organisation_id).select_related("period__source")
    findings = _pointers(organisation_id)
    for version in versions.order_by("period__start", "pk"):
        where = f"{version.period.source.name}, {version.period}"
        slices = list(version.slices.order_by("path"))
        missing = [item for item in slices if not store.exists(item.path)]
        if missing:
            findings += [
                Finding(code="charges_file_missing", where=where, expected=item.path, found="")
                for item in missing
            ]
            continue
        stored = _stored(version)
        by_python, totals = _by_python(slices, rules_for_source(rules, version.period.source.name))
        findings += _differences("daily_cost_python", where, by_python, stored)
        del by_python
        findings += _differences("daily_cost_engine", where, _by_engine(version, rules), stored)
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
    rows = version.daily_costs.values(*_KEYS, *_SUMS).iterator(chunk_size=_CHUNK)
    return {_key(row, _KEYS): {name: row[name] for name in _SUMS} for row in rows}


def _key(row: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(
        str(row[name]) if name == "project_id" and row[name] else row[name] for name in names
    )


def _by_engine(version: PeriodVersion, rules: tuple[RuleRecord, ...]) -> Sums:
    """Daily costs as the roll-up computes them."""
    return {
        _key(row, _KEYS): {name: row[name] for name in _SUMS} for row in daily_rows(version, rules)
    }


def _by_python(
    slices: Sequence[ChargeSlice], rules: Sequence[RuleRecord]
) -> tuple[Sums, dict[str, dict[str, Any]]]:
    """Daily costs and totals by currency, added up one row after the other as Decimal.

    A day's cost that one of its rows lacks is unknown; totals say under `lacking` which are.
    """
    lacking: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    lacking_total: dict[str, set[str]] = defaultdict(set)
    daily: Sums = defaultdict(dict)
    totals: dict[str, dict[str, Any]] = defaultdict(dict)
    for item in slices:
        for row in store.rows_of(item.path, columns=_columns(rules)):
            _complete(row, rules)
            currency, key = totals[row["billing_currency"]], _key(row, DAILY_KEYS)
            for name in _SUMS:
                currency[name] = _plus(currency.get(name), row[name])
                daily[key][name] = _plus(daily[key].get(name), row[name])
            unknown = {name for name in COST_COLUMNS if row[name] is None}
            lacking[key] |= unknown
            lacking_total[row["billing_currency"]] |= unknown
    for key, names in lacking.items():
        daily[key].update(dict.fromkeys(names))
    for code, names in lacking_total.items():
        totals[code]["lacking"] = names
    return _shared(daily, rules), dict(totals)


def _columns(rules: Sequence[RuleRecord]) -> tuple[str, ...]:
    own = (name for name in DAILY_KEYS if name not in _DERIVED)
    measured = DAILY_MEASURES.values()
    needed = (*own, *COST_COLUMNS, *measured, *_READ, *columns_of(rules))
    return tuple(dict.fromkeys(needed))


def _complete(row: dict[str, Any], rules: Sequence[RuleRecord]) -> None:
    """Add the keys and sums of the roll-up that are no columns of a charge."""
    row["rule_position"] = position_of(row, rules)
    row["day"] = row["charge_period_start"].date()
    row["has_tags"] = bool(row["tags"])
    row["is_estimated"] = bool(row["x_estimated"])
    row["rows"] = 1
    for name, column in DAILY_MEASURES.items():
        row[name] = row[column]


def _plus(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return left + right if isinstance(right, int) else EXACT.add(left, right)


def _shared(daily: Sums, rules: Sequence[RuleRecord]) -> Sums:
    """Each sum once for each target of the rule that matched, shared without `formulae`."""
    targets = {rule.position: rule.targets for rule in rules}
    at = DAILY_KEYS.index("rule_position")
    found: Sums = {}
    for key, sums in daily.items():
        whose = targets.get(key[at], (RuleTarget(),))
        weights = [target.weight for target in whose]
        parts = {name: largest_remainder(sums[name], weights) for name in _SPLIT}
        for index, target in enumerate(whose):
            own = {name: amounts[index] for name, amounts in parts.items()}
            rows = 0 if index else sums["rows"]
            found[(*key, *_whose(target))] = {**own, "rows": rows}
    return found


def _whose(target: RuleTarget) -> tuple[str | None, ...]:
    project = None if target.project_id is None else str(target.project_id)
    return (project, target.run_key or None, target.team or None, target.plan_line_key or None)


def largest_remainder(amount: Decimal | None, weights: Sequence[Decimal]) -> list[Decimal | None]:
    """The parts of an amount by weights, in money's smallest unit, the slow and plain way."""
    if amount is None or len(weights) == 1:
        return [amount for _weight in weights]
    whole = sum(map(Fraction, weights), Fraction(0))
    units = abs(Fraction(amount)) / Fraction(MONEY_QUANTUM)
    exact = [units * Fraction(weight) / whole for weight in weights]
    parts = [math.floor(one) for one in exact]
    missing = int(units) - sum(parts)
    ranks = sorted(range(len(parts)), key=lambda index: (parts[index] - exact[index], index))
    for index in ranks[:missing]:
        parts[index] += 1
    sign = -1 if amount < 0 else 1
    return [EXACT.multiply(Decimal(sign * part), MONEY_QUANTUM) for part in parts]


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
    partial = {
        currency: {name: sums.get(name) for name in (*COST_COLUMNS, "rows")}
        for currency, sums in totals.items()
    }
    counted = {
        currency: {**sums, **dict.fromkeys(totals[currency]["lacking"])}
        for currency, sums in partial.items()
    }
    findings = []
    if noted != counted:
        is_older = _is_partial(noted, counted=counted, partial=partial)
        code = "version_totals_partial" if is_older else "version_totals"
        findings.append(_finding(code, where, str(counted), str(noted)))
    rows = sum(int(sums["rows"] or 0) for sums in counted.values())
    if rows != version.rows:
        findings.append(_finding("version_rows", where, str(rows), str(version.rows)))
    return findings


def _is_partial(noted: _Totals, *, counted: _Totals, partial: _Totals) -> bool:
    """Whether all that is wrong is a sum of the rows that have a cost, where others lack it."""
    return noted.keys() == counted.keys() and all(
        amount in (counted[currency][name], partial[currency][name])
        for currency, sums in noted.items()
        for name, amount in sums.items()
    )


def _other_rules(where: str, version: PeriodVersion, rule_set_id: int | None) -> list[Finding]:
    """Daily costs that were allocated by other rules than those in force."""
    other = version.daily_costs.exclude(rule_set_id=rule_set_id)
    if rule_set_id is None:
        other = version.daily_costs.filter(rule_set__isnull=False)
    count = other.count()
    if not count:
        return []
    return [_finding("daily_cost_rules", where, f"rule set {rule_set_id}", f"{count} others")]
