"""The lines of a programme: rules and amounts around a main run; the formulae have no names."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from formulae.money import Money, sum_money
from formulae.plan_lines import PLAN_LINES, PlanLineBase, PlanLineRule

# What the odds of a programme leave out beside the main run: a reserve is no spending.
_NOT_AROUND: Final = frozenset({"main_run", "contingency"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """One line of the plan before it is priced: a rule, or an amount in the plan's currency."""

    key: str
    name: str
    rule: PlanLineRule | None
    amount: Money | None = None
    in_programme: bool = True


def line_amounts(lines: tuple[PlanLine, ...], main_run: Money) -> list[tuple[PlanLine, Money]]:
    """Each line's amount: on the main run, or on the sum of the lines above it.

    Lines outside the programme stand after it, as in a plan, so that no share of a sum of lines
    counts them.
    """
    found: list[tuple[PlanLine, Money]] = []
    for line in sorted(lines, key=lambda line: not line.in_programme):
        if line.rule is None:
            amount = line.amount or main_run.times(0)
        else:
            base = main_run
            if line.rule.base is PlanLineBase.SUBTOTAL:
                base = sum_money((one for _line, one in found), currency=main_run.currency)
            amount = base.times(line.rule.fraction)
        found.append((line, amount))
    return found


def around_the_main_run(
    lines: tuple[PlanLine, ...], *, currency: str
) -> tuple[tuple[PlanLineRule, ...], Money]:
    """The programme's lines without contingency as one share of the main run and one amount.

    Every line is a share of the main run plus an amount, shares of the lines above too, so two
    main runs tell both.
    """

    def around(main_run: Decimal) -> Decimal:
        amounts = line_amounts(lines, Money(amount=main_run, currency=currency))
        wanted = (
            amount for line, amount in amounts if line.in_programme and line.key not in _NOT_AROUND
        )
        return sum_money(wanted, currency=currency).amount

    fixed = around(Decimal(0))
    share = PlanLineRule(
        key="around", fraction=around(Decimal(1)) - fixed, base=PlanLineBase.MAIN_RUN
    )
    return (PLAN_LINES[0], share), Money(amount=fixed, currency=currency)
