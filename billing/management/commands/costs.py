"""manage.py costs: costs by any dimension, exact."""

from datetime import date
from decimal import Decimal
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.http import Http404

from billing.cost_conversion import ConvertedTable, conversion_document, converted_costs
from billing.cost_questions import GROUP_COLUMNS, Scope, make_question
from billing.cost_records import CostTable
from billing.cost_selectors import cost_table
from billing.documents import cost_document
from billing.records import Basis
from projects.access import project_for, system_actor
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Show costs by any dimension; --from is the first day, --to the first day that is out."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--group-by",
            default="x_cost_class",
            metavar="COL[,COL]",
            help=f"of {', '.join(GROUP_COLUMNS)}, tag:KEY",
        )
        parser.add_argument(
            "--where",
            action="append",
            default=[],
            metavar="COL=VALUE",
            help="only charges with this value; COL!=VALUE leaves them out; several values of one "
            "column are alternatives; no value means missing; repeatable",
        )
        parser.add_argument("--basis", choices=[basis.value for basis in Basis], default="billed")
        parser.add_argument("--from", dest="start_on", type=date.fromisoformat, metavar="D")
        parser.add_argument("--to", dest="end_on", type=date.fromisoformat, metavar="D")
        parser.add_argument("--project", metavar="SLUG")
        parser.add_argument(
            "--currency",
            metavar="CUR",
            help="also the total in this currency, by the rate of each month's last day",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py costs")
        try:
            project = project_for(actor, options["project"]) if options["project"] else None
            question = make_question(
                group_by=options["group_by"].split(","),
                basis=options["basis"],
                days=(options["start_on"], options["end_on"]),
                filters=options["where"],
                scope=Scope(project_id=project.pk if project else None),
            )
            table = cost_table(organisation.pk, question)
            converted = (
                converted_costs(organisation.pk, question, currency=options["currency"].upper())
                if options["currency"]
                else None
            )
        except (ValueError, Http404) as error:
            raise CommandError(str(error)) from error
        more = conversion_document(converted) if converted else {}
        words = [_in_words(table), *(_converted_in_words(converted) if converted else [])]
        self.emit(cost_document(table) | more, "\n".join(words))


def _in_words(table: CostTable) -> str:
    """The basis, one line a group, then the totals."""
    lines = [f"{table.basis} cost"]
    for row in table.rows:
        named = zip(table.group_by, row.group, strict=True)
        group = " | ".join(_named(name, value) for name, value in named)
        lines.append(f"{group:<60} {row.currency} {_amount(row.cost):>20}")
    lines += [f"{'total':<60} {one.currency} {_amount(one.cost):>20}" for one in table.total]
    return "\n".join(lines if table.rows else ["No costs."])


def _converted_in_words(table: ConvertedTable) -> list[str]:
    """The converted total, then every rate or what is missing."""
    total = f"{'total, converted':<60} {table.currency} {_amount(table.total):>20}"
    rates = [
        f"  {one.month}: 1 {one.rate.base} = {one.rate.rate.normalize():f} {one.rate.quote} "
        f"of {one.rate.on_date} ({one.rate.source})"
        for one in table.rates
        if one.rate.base != table.currency
    ]
    absent = [f"  {one.month}: no rate of {one.currency} by {one.on}" for one in table.missing]
    return [total, *rates, *absent]


def _amount(cost: Decimal | None) -> str:
    return "n/a" if cost is None else f"{cost:,.2f}"


def _named(column: str, value: str | None) -> str:
    if value is None:
        return "unallocated" if column == "project" else "-"
    return value
