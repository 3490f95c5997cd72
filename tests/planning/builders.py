"""Plain builders for the tests of intent."""

from datetime import UTC, date, datetime
from typing import Any

from planning.models import Estimate, PlanVersion
from planning.services import draft_plan, freeze_estimate
from planning.spec import EstimateRequest, parse_request
from projects.models import Organisation, Project
from projects.records import Actor

AS_OF = datetime(2026, 9, 1, tzinfo=UTC)


def make_spec(**fields: Any) -> dict[str, Any]:
    """The acceptance example: 6.0e23 FLOP on 256 H100 at 55 % of the dense BF16 peak."""
    return {
        "name": "Main run",
        "params": 64e9,
        "active_params": 10e9,
        "tokens": 10e12,
        "accelerator": "h100-sxm-80gb",
        "accelerators": 256,
        "mfu": 0.55,
        "goodput": 1.0,
        "price_per_accelerator_h": "2.50",
        "currency": "USD",
        "host_factor": 1.5,
        "pue": 1.2,
        "g_per_kwh": 400,
    } | fields


def make_request(**fields: Any) -> EstimateRequest:
    return parse_request(make_spec(**fields))


def make_project(organisation: Organisation, slug: str = "moe") -> Project:
    return Project.objects.create(organisation=organisation, slug=slug, name=slug.upper())


def make_estimate(actor: Actor, **fields: Any) -> Estimate:
    return freeze_estimate(actor, make_request(**fields), as_of=AS_OF)


def make_draft(actor: Actor, project: Project) -> PlanVersion:
    return draft_plan(actor, project, make_estimate(actor), starts_on=date(2026, 9, 14))
