"""The answer to a kickoff question: inputs completed, formulae asked, findings named; its JSON."""

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Self
from uuid import UUID

from formulae.beliefs import Belief, quantile_of
from formulae.estimate import EstimateResult, MoneyPercentiles, Percentiles, estimate_training
from formulae.flop_terms import hardware_flop_per_token, model_flop_per_token
from formulae.money import Money, MoneyError
from formulae.plan_lines import REFERENCE_BAND
from planning.answer_bill import bill_document, own_hardware_document
from planning.first_answers import todays_document
from planning.guards import memory_screen, refuse_impossible, warnings_of
from planning.inputs import Inputs, resolve
from planning.programme_lines import line_amounts
from planning.spec import EstimateRequest, SpecError

VERSION: Final = 2
LEVELS: Final = ("p10", "p50", "p80", "p90", "mean")


@dataclass(frozen=True, slots=True)
class Answer:
    """What an estimate says, as it is kept: a reader of the JSON of `manage.py estimate`."""

    document: dict[str, Any]

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Self:
        """Read a frozen answer back, whatever its version."""
        return cls(todays_document(document))

    @property
    def currency(self) -> str | None:
        """Of every amount; None without a price."""
        cost = self.document["cost"]
        return None if cost is None else str(cost["currency"])

    def cost(self, level: str = "p50") -> Money | None:
        """The main run, 1.0x, at a percentile."""
        return self._money("cost", level)

    def programme_cost(self, level: str = "p50") -> Money | None:
        """Main run and lines without contingency, at a percentile."""
        return self._money("programme", level)

    def figure(self, name: str, level: str = "p50") -> float | None:
        """A quantity at a percentile; None where it is not known."""
        found = self.document.get(name)
        return None if found is None else float(found[level])

    @property
    def is_blocked(self) -> bool:
        """Whether a red finding keeps it from being approved."""
        return any(item["severity"] == "red" for item in self.document["warnings"])

    def _money(self, name: str, level: str) -> Money | None:
        found = self.document.get(name)
        if found is None:
            return None
        return Money(amount=Decimal(found[level]), currency=found["currency"])


def answer_request(organisation_id: UUID, request: EstimateRequest, *, as_of: datetime) -> Answer:
    """Answer a kickoff question; deterministic for the same question, catalogue and factors.

    Args:
        organisation_id: whose catalogue and prices extend the shipped ones.
        request: the checked shape.
        as_of: the instant whose day stands for a start that is not given.

    Raises:
        SpecError: an unknown name, or a value outside its range.
    """
    inputs = resolve(organisation_id, request, as_of=as_of)
    refuse_impossible(inputs)
    try:
        result = estimate_training(inputs.spec)
        return Answer(_document(organisation_id, inputs, result))
    except MoneyError as error:
        raise SpecError({"price_per_accelerator_hour": str(error)}) from error


def _document(organisation_id: UUID, inputs: Inputs, result: EstimateResult) -> dict[str, Any]:
    return {
        "version": VERSION,
        "name": inputs.request.name,
        **_physical_document(result),
        "cost": _cost_document(inputs, result),
        "programme": _programme_document(result),
        "bill": bill_document(organisation_id, inputs, result),
        "own_hardware": own_hardware_document(inputs),
        "flop_terms": _terms_document(inputs),
        "tornado": {
            name: [asdict(bar) for bar in bars] for name, bars in result.tornado.items() if bars
        },
        "assumptions": _assumptions(inputs),
        "priors": [prior.document() for prior in inputs.priors],
        "warnings": [warned.document() for warned in warnings_of(inputs, result)],
    }


def _physical_document(result: EstimateResult) -> dict[str, Any]:
    """Compute, time, energy, carbon and water; the headline energy is that of the facility."""

    def levels(found: Percentiles | None) -> dict[str, float] | None:
        return None if found is None else asdict(found)

    return {
        "training_flop": result.flop,
        "accelerator_h": levels(result.accelerator_h),
        "days": levels(result.days),
        "energy_kwh": levels(result.facility_energy_kwh),
        "emissions_kgco2e": levels(result.scope_2_location_kgco2e),
        "accelerator_energy_kwh": levels(result.accelerator_energy_kwh),
        "it_energy_kwh": levels(result.it_energy_kwh),
        "facility_energy_kwh": levels(result.facility_energy_kwh),
        "scope_2_location_kgco2e": levels(result.scope_2_location_kgco2e),
        "scope_2_market_kgco2e": levels(result.scope_2_market_kgco2e),
        "embodied_kgco2e": levels(result.embodied_kgco2e),
        "water_l": levels(result.water_l),
    }


def money_levels(found: MoneyPercentiles) -> dict[str, str]:
    """Percentiles of an amount with its currency, as exact text."""
    amounts = {f.name: getattr(found, f.name) for f in fields(found)}
    return {
        "currency": found.p50.currency,
        **{level: format(money.amount, "f") for level, money in amounts.items()},
    }


def _cost_document(inputs: Inputs, result: EstimateResult) -> dict[str, Any] | None:
    """The main run's cost, and the plan's lines at its median."""
    if result.cost is None:
        return None
    return {
        **money_levels(result.cost),
        "lines": [
            {
                "key": line.key,
                "name": line.name,
                "base": line.rule.base.value if line.rule else "amount",
                "fraction": format(line.rule.fraction, "f") if line.rule else None,
                "amount": format(amount.amount, "f"),
                "in_programme": line.in_programme,
            }
            for line, amount in line_amounts(inputs.lines, result.cost.p50)
        ],
        "lines_source": inputs.line_source,
    }


def _programme_document(result: EstimateResult) -> dict[str, Any] | None:
    """Main run and lines before contingency, the reserve that the spread asks for, the odds."""
    if result.programme is None:
        return None
    return {
        **money_levels(result.programme.cost),
        "contingency_p80_less_p50": format(result.programme.contingency.amount, "f"),
        "probability_inside": {
            format(multiple, "f"): fraction
            for multiple, fraction in zip(
                REFERENCE_BAND, result.programme.inside_fraction, strict=True
            )
        },
    }


def _terms_document(inputs: Inputs) -> list[dict[str, Any]]:
    """The working, term by term."""
    return [
        {
            "key": term.key,
            "formula": term.formula,
            "flop_per_token": term.flop_per_token,
            "is_model_flop": term.is_model_flop,
        }
        for term in inputs.terms
    ]


def _belief_document(belief: Belief | None) -> dict[str, Any] | None:
    """A belief by three of its percentiles."""
    if belief is None:
        return None
    return {
        "p10": quantile_of(belief, 0.1),
        "p50": belief.median,
        "p90": quantile_of(belief, 0.9),
        "is_certain": belief.is_certain,
    }


def _assumptions(inputs: Inputs) -> dict[str, Any]:
    """What the answer hangs on, for the page and for whoever asks later."""
    spec, accelerator = inputs.spec, inputs.accelerator
    failures, screen, price = inputs.failures, memory_screen(inputs), spec.price_per_accelerator_h
    return {
        "accelerator": accelerator.name,
        "accelerator_key": accelerator.key,
        "accelerator_source": accelerator.source,
        "accelerator_count": spec.accelerators,
        "precision": inputs.precision,
        "peak": inputs.request.peak,
        "peak_flop_per_s": inputs.peak_flop_per_s,
        "peak_dense_flop_per_s": accelerator.peak_dense_flop_per_s.get(inputs.precision),
        "tdp_w": accelerator.tdp_w,
        "total_params": inputs.model.total_params,
        "active_params": inputs.model.active_params,
        "is_mixture_of_experts": inputs.model.is_mixture_of_experts,
        "tokens": spec.tokens,
        "model_flop_per_token": model_flop_per_token(inputs.terms),
        "hardware_flop_per_token": hardware_flop_per_token(inputs.terms),
        "end_to_end_efficiency": _belief_document(inputs.training.end_to_end),
        **{
            name: _belief_document(getattr(spec, name))
            for name in (
                "step_mfu",
                "goodput",
                "price_ratio",
                "power_w",
                "host_factor",
                "pue",
                "g_per_kwh",
                "market_g_per_kwh",
                "embodied_kg_per_accelerator_h",
                "wue_l_per_kwh",
            )
        },
        "price_per_accelerator_hour": None if price is None else format(price.amount, "f"),
        "price_source": inputs.price_source,
        "place": inputs.place.key if inputs.place else None,
        "priced_on": inputs.on.isoformat(),
        "draws": spec.draws,
        "seed": spec.seed,
        "failures": None if failures is None else asdict(failures),
        "memory": None if screen is None else asdict(screen),
    }
