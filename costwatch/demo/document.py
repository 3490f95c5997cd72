"""The demo's configuration as `manage.py apply` reads it, and its kickoff question. Data only."""

from typing import Any

from costwatch.demo import story
from costwatch.demo.focus import instant_text

ACCELERATOR_KEY = "h100-sxm-80gb"


def configuration_document() -> dict[str, Any]:
    """Project, site, devices, runs, assignments, sources and rules of the demo."""
    nodes = range(1, story.NODE_COUNT + 1)
    return {
        "projects": [_project()],
        "sites": [_site()],
        "devices": [
            {
                "uuid": uuid,
                "site": story.SITE_SLUG,
                "node": story.node_name(node),
                "model": story.GPU_MODEL,
                "accelerator": ACCELERATOR_KEY,
            }
            for node in nodes
            for uuid in _devices_of(node)
        ],
        "runs": _runs(),
        "assignments": _assignments(),
        "sources": [
            {"name": story.AWS_SOURCE, "format": "focus"},
            {"name": story.GCP_SOURCE, "format": "focus"},
        ],
        "milestones": _milestones(),
    }


def _milestones() -> list[dict[str, Any]]:
    """The calendar of the project by week: W0 begins four weeks before the main run."""
    weeks: tuple[tuple[int, str, str], ...] = (
        (0, "Budget approved", "2026-08-17"),
        (2, "Data mix frozen", "2026-09-05"),
        (3, "Scaling laws fitted", "2026-09-10"),
        (4, "Main run begins", "2026-09-14"),
        (9, "Mid-run evaluation", "2026-10-22"),
        (13, "Main run ends", ""),
        (18, "Cost and operations begin", ""),
        (26, "Cost and operations reviewed", ""),
    )
    found: list[dict[str, Any]] = [
        {
            "project": story.PROJECT_SLUG,
            "name": name,
            "week": week,
            "reached_on": day or None,
        }
        for week, name, day in weeks
    ]
    # All preprocessing was for the mix: once it is frozen, the line is earned.
    found[1] |= {"line_key": "preprocessing", "share_fraction": "1"}
    return found


def _project() -> dict[str, Any]:
    return {
        "slug": story.PROJECT_SLUG,
        "name": story.PROJECT_NAME,
        "description": story.PROJECT_DESCRIPTION,
        "currency": "USD",
        "starts_on": story.MAIN_RUN_START.date(),
        "is_synthetic": True,
        "members": [
            {"username": user.username, "role": user.project_role}
            for user in story.DEMO_USERS
            if user.project_role
        ],
    }


def _site() -> dict[str, Any]:
    return {
        "slug": story.SITE_SLUG,
        "name": story.SITE_NAME,
        "provider": "aws",
        "region": story.REGION,
        "country": "USA",
        "state": "US-OR",
        "time_zone": "America/Los_Angeles",
        "factors": [
            {
                "host_factor": story.HOST_FACTOR,
                "tier": "estimated",
                "source": "Typical of eight-GPU servers, not measured here",
            },
            {"pue": story.PUE, "tier": "published", "source": story.PUE_SOURCE},
        ],
    }


def allocation_rules() -> list[dict[str, str]]:
    """Whose charges are the project's: two accounts, and what is tagged in a shared one."""
    project = story.PROJECT_SLUG
    return [
        {"match": "sub_account", "value": story.TRAIN_ACCOUNT, "project": project},
        {"match": "sub_account", "value": story.GCP_ACCOUNT, "project": project},
        {"match": "tag", "key": story.PROJECT_TAG, "value": project, "project": project},
    ]


def _devices_of(node: int) -> list[str]:
    return [story.device_uuid(node, gpu) for gpu in range(story.GPUS_PER_NODE)]


def _runs() -> list[dict[str, Any]]:
    shared = {
        "project": story.PROJECT_SLUG,
        "accelerator": ACCELERATOR_KEY,
        "precision": "bf16",
    }
    return [
        shared
        | {
            "slug": story.EXPERIMENT_RUN,
            "name": "Experiments and ablations (synthetic)",
            "accelerator_count": story.EXPERIMENT_NODE_COUNT * story.GPUS_PER_NODE,
            "start": instant_text(story.EXPERIMENTS_START),
            "end": instant_text(story.MAIN_RUN_START),
            "parameters_active": story.EXPERIMENT_PARAMETERS,
            "tokens_per_step": story.EXPERIMENT_TOKENS_PER_STEP,
            "tokens_planned": story.EXPERIMENT_TOKENS,
            "plan_line_key": "experiments",
        },
        shared
        | {
            "slug": story.MAIN_RUN,
            "name": "Main run (synthetic)",
            "accelerator_count": story.ACCELERATOR_COUNT,
            "start": instant_text(story.MAIN_RUN_START),
            "parameters_active": story.ACTIVE_PARAMETERS,
            "tokens_per_step": story.MAIN_TOKENS_PER_STEP,
            "tokens_planned": story.TRAINING_TOKENS,
            "plan_line_key": "main_run",
        },
    ]


def _assignments() -> list[dict[str, Any]]:
    experiment_nodes = range(1, story.EXPERIMENT_NODE_COUNT + 1)
    shared = {"project": story.PROJECT_SLUG, "site": story.SITE_SLUG}
    return [
        shared
        | {
            "run": story.EXPERIMENT_RUN,
            "devices": [uuid for node in experiment_nodes for uuid in _devices_of(node)],
            "start": instant_text(story.EXPERIMENTS_START),
            "end": instant_text(story.MAIN_RUN_START),
        },
        shared
        | {
            "run": story.MAIN_RUN,
            "devices": "all",
            "start": instant_text(story.MAIN_RUN_START),
            "end": instant_text(story.AS_OF),
        },
    ]


def _bill_around() -> dict[str, Any]:
    """What the plan says of storage, requests, transfer and support, at the contract's prices."""

    def usd(amount: str) -> dict[str, str]:
        return {"amount": amount, "currency": "USD"}

    return {
        "storage": [
            {
                "tier": tier,
                "terabytes": terabytes,
                "months": "3",
                "price_per_tb_month": usd(price),
            }
            for tier, terabytes, price in (
                ("hot", "200", "210"),
                ("warm", "1350", "20.90"),
                ("cold", "2000", "0.99"),
            )
        ],
        "requests": [
            {"verb": "get", "count": 4_500_000_000, "price_per_1000": usd("0.0004")},
            {"verb": "put", "count": 400_000_000, "price_per_1000": usd("0.005")},
        ],
        "transfer": [
            {"kind": "egress", "terabytes": "70", "price_per_gb": usd("0.07")},
            {"kind": "inter_region", "terabytes": "230", "price_per_gb": usd("0.02")},
        ],
        "services": [{"kind": "support", "fraction_of_compute": "0.03"}],
    }


def kickoff_question() -> dict[str, Any]:
    """The estimate from which the demo's plan was made."""
    return {
        "name": "Kickoff estimate (synthetic)",
        "model": {"params": story.TOTAL_PARAMETERS, "active_params": story.ACTIVE_PARAMETERS},
        "tokens": story.TRAINING_TOKENS,
        "accelerator": ACCELERATOR_KEY,
        "accelerator_count": story.ACCELERATOR_COUNT,
        "precision": "bf16",
        # Ranges even about what was planned, so that their medians are what was planned.
        "step_mfu": {"low": 0.36, "mode": story.PLANNED_MFU, "high": 0.48},
        "goodput": {"low": 0.85, "mode": story.PLANNED_GOODPUT_FRACTION, "high": 0.95},
        "price_per_accelerator_hour": {"amount": str(story.GPU_RATE_AT_PLAN), "currency": "USD"},
        "power_w": 650,
        "host_factor": story.HOST_FACTOR,
        "pue": story.PUE,
        "region": f"aws:{story.REGION}",
        "started_on": story.MAIN_RUN_START.date().isoformat(),
        **_bill_around(),
        "seed": story.DEFAULT_SEED,
    }
