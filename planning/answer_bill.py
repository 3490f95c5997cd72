"""The part of an answer about the bill around the accelerators, and about own hardware."""

from dataclasses import asdict
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from formulae.estimate import EstimateResult
from planning.bill_prices import BillTerms
from planning.inputs import Inputs, plan_currency
from planning.spec import SpecError
from planning.whole_bill import BillLine, WholeBill, bill_lines
from planning.whole_bill_spec import WholeBillError

_DAYS_PER_MONTH: Final = Decimal("30.4375")
_SHORTEST_MONTHS: Final = Decimal(1)


def bill_document(
    organisation_id: UUID, inputs: Inputs, result: EstimateResult
) -> dict[str, Any] | None:
    """Storage, requests, transfer and services over the project's months; None without any.

    Raises:
        SpecError: an amount is too large to be money.
    """
    request = inputs.request
    if not (request.storage or request.requests or request.transfer or request.services):
        return None
    price = inputs.spec.price_per_accelerator_h
    terms = BillTerms(
        currency=price.currency if price else plan_currency(request),
        on=inputs.on,
        months=project_months(result),
        compute_cost=result.cost.p50 if result.cost else None,
        **inputs.terms_of_bill,
    )
    try:
        bill = bill_lines(organisation_id, request.whole_bill(), terms)
    except WholeBillError as error:
        raise SpecError(dict(error.problems)) from error
    return {**_bill(bill), "months": format(terms.months, "f")}


def project_months(result: EstimateResult) -> Decimal:
    """The months of the project where a line names none: the median run, rounded up, at least 1."""
    if result.days is None:
        return _SHORTEST_MONTHS
    months = (Decimal(result.days.p50) / _DAYS_PER_MONTH).to_integral_value(
        rounding="ROUND_CEILING"
    )
    return max(_SHORTEST_MONTHS, months)


def _bill(bill: WholeBill) -> dict[str, Any]:
    return {
        "currency": bill.currency,
        "total": None if bill.total is None else format(bill.total.amount, "f"),
        "lines": [_line(line) for line in bill.lines],
        "missing": [asdict(item) for item in bill.missing],
        "findings": [asdict(item) for item in bill.findings],
        "sharding": [
            {
                "where": advice.where,
                "requests_as_is": advice.what_if.as_is.requests,
                "requests_as_shards": advice.what_if.as_shards.requests,
                "cost_as_is": format(advice.what_if.as_is.cost.amount, "f"),
                "cost_as_shards": format(advice.what_if.as_shards.cost.amount, "f"),
                "saving": format(advice.what_if.saving.amount, "f"),
            }
            for advice in bill.sharding
        ],
    }


def _line(line: BillLine) -> dict[str, Any]:
    return {
        "key": line.key,
        "name": str(line.name),
        "cost_class": line.cost_class,
        "quantity": format(line.quantity, "f"),
        "unit": line.unit,
        "price": None if line.price is None else format(line.price.amount, "f"),
        "price_source": line.price_source,
        "amount": None if line.amount is None else format(line.amount.amount, "f"),
        "note": line.note,
    }


def own_hardware_document(inputs: Inputs) -> dict[str, Any] | None:
    """The price of an hour of own hardware in its parts; None where there is none."""
    own = inputs.own_hardware
    if own is None:
        return None
    price = own.price
    return {
        "currency": None if price is None else price.total.currency,
        **{
            name: None if price is None else format(getattr(price, name).amount, "f")
            for name in ("capital", "electricity", "staff", "total")
        },
        "sources": list(own.sources),
        "missing": [asdict(item) for item in own.missing],
        "findings": [asdict(item) for item in own.findings],
    }
