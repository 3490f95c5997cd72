"""The plan around a main run: its lines, their bases and the evidence for them; no uncertainty."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from formulae.money import Money, exact_sum, sum_money
from formulae.units import QuantityError


class PlanLineBase(StrEnum):
    """What the fraction of a plan line applies to."""

    MAIN_RUN = "main_run"
    SUBTOTAL = "subtotal"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLineRule:
    """One line of the plan: a fraction of the main run, or of the subtotal of the lines above."""

    key: str
    fraction: Decimal
    base: PlanLineBase


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLineAmount:
    """One line of a plan: its rule, the amount that the fraction applies to, and the product."""

    rule: PlanLineRule
    base_amount: Money
    amount: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePreset:
    """The lines that a published programme (or the chapter) gives, with its source."""

    key: str
    rules: tuple[PlanLineRule, ...]
    source: str
    finding: str


def _rule(key: str, fraction: str, base: PlanLineBase = PlanLineBase.MAIN_RUN) -> PlanLineRule:
    return PlanLineRule(key=key, fraction=Decimal(fraction), base=base)


PLAN_LINES: Final = (
    _rule("main_run", "1.00"),
    _rule("experiments", "0.20"),
    _rule("preprocessing", "0.05"),
    _rule("distillation", "0.15"),
    _rule("evaluation", "0.05"),
    _rule("contingency", "0.20", PlanLineBase.SUBTOTAL),
)
REFERENCE_BAND: Final = (Decimal("1.8"), Decimal("2.0"))
EVIDENCE_PRESETS: Final = (
    EvidencePreset(
        key="chapter",
        rules=PLAN_LINES,
        source="chapter 23, section 23.1, budget table",
        finding="1.45 x 1.20 = 1.74; the chapter prints about 1.86, and a band of 1.8 to 2.0.",
    ),
    EvidencePreset(
        key="olmo-2",
        rules=(_rule("main_run", "1.00"), _rule("experiments", "0.50")),
        source="Morrison et al. 2025, arXiv:2503.05804",
        finding="OLMo 2: development cost half of what final training did, 1.5 in all.",
    ),
    EvidencePreset(
        key="llama-1",
        rules=(_rule("main_run", "1.00"), _rule("experiments", "2.40")),
        source="Touvron et al. 2023, arXiv:2302.13971, tables 2 and 15",
        finding="LLaMA 1: five months on 2,048 accelerators, 3.4 times the energy of the four "
        "final runs.",
    ),
    EvidencePreset(
        key="olmo-3",
        rules=(_rule("main_run", "1.00"), _rule("experiments", "4.618")),
        source="arXiv:2605.01158, abstract",
        finding="OLMo 3: development took 82.2 % of all compute, 1 / (1 - 0.822) = 5.618 in all.",
    ),
)


def plan_lines(
    main_run_cost: Money, rules: Sequence[PlanLineRule] = PLAN_LINES
) -> tuple[PlanLineAmount, ...]:
    """The amounts of the plan lines, each on the main run or on the subtotal of those before it.

    line_i = fraction_i * main_run, or fraction_i * sum(line_1 .. line_(i-1))

    Args:
        main_run_cost: accelerator-hours of the main run at the contract rate, 1.0x.
        rules: the lines in order; the chapter's when left out.

    Returns:
        One amount for each rule. The chapter's sum to 1.74 times the main run (see
        programme_multiple), exactly while the cost has at most 14 decimals.

    Source: chapter 23, section 23.1, budget table.

    >>> for line in plan_lines(Money.of(1000, "USD")):
    ...     print(line.rule.key, round(line.amount.amount))
    main_run 1000
    experiments 200
    preprocessing 50
    distillation 150
    evaluation 50
    contingency 290
    """
    lines: list[PlanLineAmount] = []
    for rule in rules:
        base = main_run_cost
        if rule.base is PlanLineBase.SUBTOTAL:
            base = sum_money((line.amount for line in lines), currency=main_run_cost.currency)
        lines.append(PlanLineAmount(rule=rule, base_amount=base, amount=base.times(rule.fraction)))
    return tuple(lines)


def programme_multiple(rules: Sequence[PlanLineRule] = PLAN_LINES) -> Decimal:
    """What the whole programme costs as a multiple of its main run, by the plan lines.

    multiple = (1 + 0.20 + 0.05 + 0.15 + 0.05) * (1 + 0.20) = 1.45 * 1.20 = 1.74

    The chapter that lists these lines prints "about 1.86" for the same product and concludes that
    a budget should be 1.8 to 2.0 times the main run. The product is 1.74; 1.86 is 1.55 * 1.20, as
    if one more line of 10 % were listed. The band of 1.8 to 2.0 is kept apart, as REFERENCE_BAND.

    Args:
        rules: the lines in order; the chapter's when left out.

    Returns:
        Ratio to the main run, exact.

    Source: chapter 23, section 23.1, budget table; its product corrected here.

    >>> programme_multiple() == Decimal("1.74")
    True
    """
    lines = plan_lines(Money.of(1, "XXX"), rules)
    return exact_sum(line.amount.amount for line in lines).normalize()


def evidence_preset(key: str) -> EvidencePreset:
    """The preset of that name.

    Args:
        key: chapter, olmo-2, llama-1 or olmo-3.

    Returns:
        Its lines with their source.

    Raises:
        QuantityError: there is none of that name.

    Source: EVIDENCE_PRESETS, each with its own.

    >>> programme_multiple(evidence_preset("olmo-2").rules)
    Decimal('1.5')
    """
    for preset in EVIDENCE_PRESETS:
        if preset.key == key:
            return preset
    known = ", ".join(preset.key for preset in EVIDENCE_PRESETS)
    raise QuantityError(f"no evidence preset {key!r}; known: {known}")
