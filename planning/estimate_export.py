"""An estimate as a file: the JSON of the API, or a CSV that a spreadsheet opens without running."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Final

from planning.estimate_working import flop_terms
from planning.estimating import Answer
from planning.models import Estimate

COLUMNS: Final = ("part", "key", "name", "unit", "p10", "p50", "p80", "p90", "mean", "text")
_UNITS: Final = {
    "accelerator_h": "h",
    "days": "days",
    "accelerator_energy_kwh": "kWh",
    "it_energy_kwh": "kWh",
    "facility_energy_kwh": "kWh",
    "scope_2_location_kgco2e": "kgCO2e",
    "scope_2_market_kgco2e": "kgCO2e",
    "embodied_kgco2e": "kgCO2e",
    "water_l": "L",
}
_LEVELS: Final = ("p10", "p50", "p80", "p90", "mean")
# A spreadsheet takes a cell that starts so for a formula.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")

Row = dict[str, Any]


def json_of(estimate: Estimate) -> str:
    """Question and answer, as /api/v1/estimates gives them."""
    document = {
        "id": str(estimate.pk),
        "name": estimate.name,
        "created_at": estimate.created_at.isoformat(),
        "created_by": estimate.created_by,
        "spec": estimate.spec,
        **Answer.from_document(estimate.result).document,
    }
    return json.dumps(document, indent=1, ensure_ascii=False)


def csv_of(estimate: Estimate) -> str:
    """One row for each figure, term, line, prior and finding."""
    document = Answer.from_document(estimate.result).document
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="")
    writer.writeheader()
    first: Row = {"part": "estimate", "key": str(estimate.pk), "name": estimate.name}
    for row in (first, *_rows(document)):
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    """A value that no spreadsheet runs; numbers stay numbers."""
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value


def _rows(document: dict[str, Any]) -> Iterator[Row]:
    yield {
        "part": "result",
        "key": "training_flop",
        "unit": "FLOP",
        "p50": document["training_flop"],
    }
    for key, unit in _UNITS.items():
        if document.get(key) is not None:
            yield {"part": "result", "key": key, "unit": unit, **_levels(document[key])}
    for key in ("cost", "programme"):
        if document.get(key) is not None:
            unit = document[key]["currency"]
            yield {"part": "result", "key": key, "unit": unit, **_levels(document[key])}
    yield from _money_rows(document)
    for term in flop_terms(document):
        yield {
            "part": "flop_term",
            "key": term["key"],
            "unit": "FLOP/token",
            "p50": term["flop_per_token"],
            "text": term["formula"],
        }
    yield from _belief_rows(document)
    for warning in document["warnings"]:
        yield {
            "part": "finding",
            "key": warning["code"],
            "name": warning["severity"],
            "text": warning["message"],
        }


def _levels(found: dict[str, Any]) -> Row:
    return {level: found[level] for level in _LEVELS}


def _money_rows(document: dict[str, Any]) -> Iterator[Row]:
    """The lines of the plan at the median, and the bill around."""
    cost, bill = document["cost"], document.get("bill")
    for line in cost["lines"] if cost else ():
        yield {
            "part": "plan_line",
            "key": line["key"],
            "name": line["name"],
            "unit": cost["currency"],
            "p50": line["amount"],
            "text": f"{line['fraction']} of {line['base']}" if line["fraction"] else "",
        }
    if bill is None:
        return
    for line in bill["lines"]:
        yield {
            "part": "bill_line",
            "key": line["key"],
            "name": line["name"],
            "unit": bill["currency"],
            "p50": line["amount"],
            "text": f"{line['quantity']} {line['unit']} at {line['price']}: {line['price_source']}",
        }


def _belief_rows(document: dict[str, Any]) -> Iterator[Row]:
    """What the answer hangs on: inputs as they were believed, and the priors among them."""
    for key, value in document["assumptions"].items():
        if isinstance(value, dict) and "is_certain" in value:
            yield {"part": "input", "key": key, **{k: value[k] for k in ("p10", "p50", "p90")}}
        elif isinstance(value, str | int | float):
            yield {"part": "input", "key": key, "text": value}
    for prior in document["priors"]:
        yield {
            "part": "prior",
            "key": prior["quantity"],
            "name": prior["basis"],
            "unit": prior["unit"],
            **{level: prior[level] for level in ("p10", "p50", "p90")},
            "text": prior["source"],
        }
