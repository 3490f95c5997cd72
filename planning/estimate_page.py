"""What the pages of an estimate show, from its answer; no queries of its own."""

from typing import Any

from planning.estimating import Answer
from planning.models import Estimate
from planning.names import line_name


def list_row(estimate: Estimate) -> dict[str, Any]:
    """An estimate in the list."""
    answer = Answer.from_document(estimate.result)
    return {
        "estimate": estimate,
        "cost": answer.cost(),
        "days": answer.figure("days"),
        "accelerator_h": answer.figure("accelerator_h"),
        "facility_energy_kwh": answer.figure("facility_energy_kwh"),
        "scope_2_location_kgco2e": answer.figure("scope_2_location_kgco2e"),
    }


def answer_context(estimate: Estimate) -> dict[str, Any]:
    """The page of an answer."""
    answer = Answer.from_document(estimate.result)
    cost = answer.document["cost"]
    lines = [] if cost is None else cost["lines"]
    return {
        **list_row(estimate),
        "document": answer.document,
        "lines": [
            {**line, "name": line_name(line["key"], own_name=line["name"])} for line in lines
        ],
    }
