"""manage.py plan create|approve|show: the plan of a project from the command line."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser
from django.http import Http404

from planning.differences import PlanDifferences
from planning.documents import plan_document
from planning.models import PlanVersion
from planning.presets import PRESETS
from planning.records import PlanRecord
from planning.selectors import (
    estimate_by_id,
    plan_record,
    plan_versions,
    version_differences,
)
from planning.services import (
    DraftChoice,
    PlanError,
    approve_plan,
    draft_plan,
    freeze_estimate,
)
from planning.spec import SpecError, parse_request
from projects.access import Actor, project_for, system_actor
from projects.chosen_organisation import chosen_organisation
from projects.models import Project
from ui.console import JsonCommand


class Command(JsonCommand):
    help = "Draft a plan from an estimate or a preset, approve it as the baseline, show it."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Let `--version` name a version of the plan; Django's own means its release."""
        return super().create_parser(
            prog_name, subcommand, **{"conflict_handler": "resolve", **kwargs}
        )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("action", choices=("create", "approve", "show"))
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--estimate", metavar="ID", type=UUID, help="create: a frozen estimate")
        parser.add_argument("--preset", choices=sorted(PRESETS), help="create: or a preset")
        parser.add_argument("--starts-on", type=date.fromisoformat, metavar="YYYY-MM-DD")
        parser.add_argument(
            "--at",
            choices=("p10", "p50", "p80", "p90", "mean"),
            default="p50",
            help="create: the percentile of the estimate to plan",
        )
        parser.add_argument(
            "--contingency",
            choices=("flat", "p80"),
            default="flat",
            help="create: as the lines say, or P80 less P50",
        )
        parser.add_argument("--version", type=int, dest="number", help="approve: default newest")
        parser.add_argument("--reason", default="", help="approve: why it replaces a baseline")

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        actor = system_actor(organisation.pk, "manage.py plan")
        try:
            project = project_for(actor, options["project"])
            records = getattr(self, f"_{options['action']}")(actor, project, options)
        except (Http404, PlanError, SpecError) as error:
            raise CommandError(str(error)) from error
        differences = version_differences(project)
        documents = [plan_document(record, differences.get(record.number)) for record in records]
        self.emit(
            {"project": project.slug, "versions": documents},
            "\n".join(_in_words(record, differences.get(record.number)) for record in records)
            or "No plan yet.",
        )

    def _show(self, actor: Actor, project: Project, options: dict[str, Any]) -> list[PlanRecord]:
        return plan_versions(project)

    def _create(self, actor: Actor, project: Project, options: dict[str, Any]) -> list[PlanRecord]:
        now = datetime.now(UTC)
        if options["preset"]:
            request = parse_request(PRESETS[options["preset"]])
            estimate = freeze_estimate(actor, request, as_of=now, project=project)
        elif options["estimate"]:
            found = estimate_by_id(actor.organisation_id, options["estimate"])
            if found is None:
                raise CommandError(f"No estimate {options['estimate']}")
            estimate = found
        else:
            raise CommandError("create needs --estimate ID or --preset NAME")
        starts_on = options["starts_on"] or project.starts_on or now.date()
        choice = DraftChoice(
            starts_on=starts_on, level=options["at"], contingency=options["contingency"]
        )
        return [plan_record(draft_plan(actor, project, estimate, choice))]

    def _approve(self, actor: Actor, project: Project, options: dict[str, Any]) -> list[PlanRecord]:
        versions = PlanVersion.objects.filter(plan__project=project)
        if options["number"] is not None:
            versions = versions.filter(number=options["number"])
        version = versions.first()
        if version is None:
            raise CommandError("No such plan version: draft one with `plan create`")
        return [approve_plan(actor, version, as_of=datetime.now(UTC), reason=options["reason"])]


def _in_words(plan: PlanRecord, differences: PlanDifferences | None) -> str:
    """One version as a small table, and what moved since the version before."""
    state = "approved" if plan.is_approved else "draft"
    lines = [
        f"Version {plan.number} ({state}, {plan.level}), "
        f"{plan.main_run_starts_on} to {plan.main_run_ends_on}, "
        f"programme {plan.programme_multiple:.2f}x, all-in {plan.all_in_multiple:.2f}x"
    ]
    lines += [
        f"  {line.name:<34} {line.amount:>18,.2f} {plan.currency}  {line.starts_on} {line.ends_on}"
        for line in plan.lines
    ]
    lines.append(f"  {'Budget at completion':<34} {plan.budget_at_completion:>18,.2f}")
    if differences is not None:
        lines.append(f"  Against version {differences.before_number}:")
        lines += [
            f"    {line.change.value} {line.name}"
            + ("" if line.amount_change is None else f" {line.amount_change:+,.2f}")
            for line in differences.lines
        ]
        lines += [
            f"    {one.field}: {one.before} -> {one.after}"
            for one in (*differences.inputs, *differences.assumptions)
        ]
    return "\n".join(lines)
