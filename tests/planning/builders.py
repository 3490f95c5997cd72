"""Plain builders for the tests of intent."""

import json
from datetime import UTC, date, datetime
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

from planning.estimating import Answer, answer_request
from planning.models import Estimate, PlanVersion
from planning.services import DraftChoice, draft_plan, freeze_estimate
from planning.spec import EstimateRequest, parse_request
from projects.models import Organisation, Project
from projects.records import Actor
from projects.selectors import the_organisation

AS_OF = datetime(2026, 9, 1, tzinfo=UTC)
# The example of the documentation: every key that a question usually has, the optional ones null.
EXAMPLE: dict[str, Any] = {
    "model": {
        "params": 8.03e9,
        "active_params": None,
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "ffn_hidden": 14336,
        "gated_ffn": True,
        "vocab": 128256,
        "tied_embeddings": False,
        "experts": None,
        "top_k": None,
        "shared_experts": None,
    },
    "tokens": 15e12,
    "seq_len": 8192,
    "precision": "bf16",
    "accelerator": "H100 SXM 80GB",
    "accelerator_count": 24576,
    "started_on": "2024-01-01",
    "step_mfu": None,
    "goodput": None,
    "price_per_accelerator_hour": {"amount": "2.50", "currency": "USD"},
    "region": "aws:us-east-1",
    "pue": None,
    "grid_g_per_kwh": None,
    "lines": None,
    "draws": 4000,
    "seed": 1,
}


def make_spec(**fields: Any) -> dict[str, Any]:
    """The acceptance example: 6.0e23 FLOP on 256 H100 at 55 % of the dense BF16 peak."""
    return {
        "name": "Main run",
        "model": {"params": 64e9, "active_params": 10e9},
        "tokens": 10e12,
        "precision": "bf16",
        "accelerator": "h100-sxm-80gb",
        "accelerator_count": 256,
        "step_mfu": 0.55,
        "goodput": 1.0,
        "price_per_accelerator_hour": {"amount": "2.50", "currency": "USD"},
        "power_w": 650,
        "host_factor": 1.5,
        "pue": 1.15,
        "grid_g_per_kwh": 400,
    } | fields


def make_request(**fields: Any) -> EstimateRequest:
    return parse_request(make_spec(**fields))


def answer(document: dict[str, Any]) -> Answer:
    """What the shared service says to a question; needs the database for prices."""
    return answer_request(the_organisation().pk, parse_request(document), as_of=AS_OF)


def codes(found: Answer) -> dict[str, str]:
    """The findings of an answer: code and severity."""
    return {item["code"]: item["severity"] for item in found.document["warnings"]}


def command(document: dict[str, Any], folder: Path, *words: str) -> dict[str, Any]:
    """The JSON that `manage.py estimate --file` prints for a question."""
    path = folder / "spec.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    out = StringIO()
    call_command("estimate", "--file", str(path), "--json", *words, stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def make_project(organisation: Organisation, slug: str = "moe") -> Project:
    return Project.objects.create(organisation=organisation, slug=slug, name=slug.upper())


def make_estimate(actor: Actor, **fields: Any) -> Estimate:
    return freeze_estimate(actor, make_request(**fields), as_of=AS_OF)


def make_choice(**fields: Any) -> DraftChoice:
    return DraftChoice(**({"starts_on": date(2026, 9, 14)} | fields))


def make_draft(actor: Actor, project: Project, **choice: Any) -> PlanVersion:
    return draft_plan(actor, project, make_estimate(actor), make_choice(**choice))
