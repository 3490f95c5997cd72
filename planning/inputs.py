"""What an estimate is computed from: the question completed from catalogue, books and priors."""

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from billing.price_records import PriceRecord
from billing.price_selectors import price_in_force
from carbon.embodied import EmbodiedFactor, embodied_factor
from carbon.places import Place, place_from_text
from carbon.plan_factors import PlaceFactors, place_factors
from formulae.beliefs import Belief
from formulae.estimate import EstimateInputError, EstimateSpec
from formulae.flop_terms import FlopTerm, model_flop_per_token
from formulae.goodput import GoodputBreakdown, goodput_breakdown, nodes_for
from formulae.model_description import ModelDescription
from formulae.money import Money
from formulae.plan_lines import PLAN_LINES, PlanLineBase, PlanLineRule, evidence_preset
from formulae.units import QuantityError
from planning.bill_prices import BillTerms, in_plan_currency
from planning.input_beliefs import Chosen, physical_beliefs
from planning.input_model import model_of, peak_of, precision_of
from planning.own_hardware import OwnHardware, OwnPower, own_hardware
from planning.prior_fit import USUAL_NODE
from planning.priors import Prior, TrainingPriors, goodput_with_failures, training_priors
from planning.programme_lines import PlanLine, around_the_main_run
from planning.ranges import refuse_out_of_range, refuse_unnamed_sparsity, spec_error
from planning.spec import EstimateRequest, LineSpec, Reliability, SpecError, belief_of
from planning.whole_bill_spec import WholeBillError
from runs.records import AcceleratorSpec, NamedAccelerator
from runs.selectors import accelerator_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The completed question: what the formulae are given, and where each part comes from."""

    request: EstimateRequest
    named: NamedAccelerator
    model: ModelDescription
    terms: tuple[FlopTerm, ...]
    peak_flop_per_s: float
    spec: EstimateSpec
    lines: tuple[PlanLine, ...]
    line_source: str
    place: Place | None
    factors: PlaceFactors | None
    embodied: EmbodiedFactor | None
    training: TrainingPriors
    own_hardware: OwnHardware | None
    failures: GoodputBreakdown | None
    on: date
    price_source: str
    book_price: PriceRecord | None
    precision: str
    is_precision_assumed: bool
    priors: tuple[Prior, ...] = field(default=())

    @property
    def accelerator(self) -> AcceleratorSpec:
        """The catalogue's row."""
        return self.named.spec

    @property
    def terms_of_bill(self) -> dict[str, Any]:
        """Where the rest of the bill is priced."""
        return {
            "provider": self.place.provider if self.place else "",
            "region": self.place.region if self.place else "",
        }


def resolve(organisation_id: UUID, request: EstimateRequest, *, as_of: datetime) -> Inputs:
    """Complete a question; deterministic for the same question, catalogue, books and factors.

    Args:
        organisation_id: whose catalogue and price books extend the shipped ones.
        request: the checked shape.
        as_of: today, where the question names no start.

    Raises:
        SpecError: an unknown name, or a value outside its range; each names its field.
    """
    refuse_out_of_range(request)
    on = request.started_on or as_of.date()
    named = _accelerator(organisation_id, request)
    precision = precision_of(request, named.spec)
    refuse_unnamed_sparsity(request, named.spec, precision)
    model, terms = model_of(request)
    peak = peak_of(request, named.spec, precision)
    place, factors = _place(request, year=on.year)
    training = _training(
        request, named.spec, model, terms, precision=precision, peak=peak, year=on.year
    )
    embodied, chosen = embodied_factor(named.spec.key), Chosen()
    beliefs = physical_beliefs(chosen, request, named.spec, factors, embodied)
    beliefs["step_mfu"] = chosen.given_or(request.step_mfu, training.step_mfu)
    beliefs["goodput"], failures = _goodput(chosen, request, named.spec, training)
    currency = plan_currency(request)
    own = _own_hardware(organisation_id, request, beliefs, on=on, currency=currency)
    price, price_source = _price(organisation_id, request, named.spec, place, own=own, on=on)
    lines, line_source = _lines(
        organisation_id, request, on=on, currency=price.currency if price else currency
    )
    spec = _spec(request, terms, beliefs, peak=peak, price=price, lines=lines)
    return Inputs(
        request=request,
        named=named,
        model=model,
        terms=terms,
        peak_flop_per_s=peak,
        spec=spec,
        lines=lines,
        line_source=line_source,
        place=place,
        factors=factors,
        embodied=embodied,
        training=training,
        own_hardware=own,
        failures=failures,
        on=on,
        price_source=price_source,
        book_price=_book_price(organisation_id, request, named.spec, place, on=on)[0],
        precision=precision,
        is_precision_assumed=request.precision is None,
        priors=tuple(chosen.priors),
    )


def _accelerator(organisation_id: UUID, request: EstimateRequest) -> NamedAccelerator:
    try:
        return accelerator_named(request.accelerator, organisation_id=organisation_id)
    except LookupError as error:
        raise SpecError({"accelerator": str(error.args[0])}) from error


def _place(request: EstimateRequest, *, year: int) -> tuple[Place | None, PlaceFactors | None]:
    if not request.region:
        return None, None
    try:
        place = place_from_text(request.region)
    except LookupError as error:
        raise SpecError({"region": str(error.args[0])}) from error
    factors = place_factors(
        provider=place.provider, region=place.region, country=place.country, year=year
    )
    return place, factors


def _training(  # noqa: PLR0913 - what efficiency hangs on
    request: EstimateRequest,
    accelerator: AcceleratorSpec,
    model: ModelDescription,
    terms: tuple[FlopTerm, ...],
    *,
    precision: str,
    peak: float,
    year: int,
) -> TrainingPriors:
    return training_priors(
        accelerator,
        terms,
        active_params=model.active_params,
        is_moe=model.is_mixture_of_experts,
        precision=precision,
        peak_flop_per_s=peak,
        accelerators=request.accelerator_count,
        year=float(year),
    )


def _goodput(
    chosen: Chosen, request: EstimateRequest, accelerator: AcceleratorSpec, priors: TrainingPriors
) -> tuple[Belief, GoodputBreakdown | None]:
    """What was given; else what stated failures leave of it; else the prior of published runs."""
    failures = _failures(request, accelerator)
    prior = priors.goodput
    if request.reliability is not None and failures is not None:
        prior = goodput_with_failures(failures.goodput_fraction)
    return chosen.given_or(request.goodput, prior), failures


def _failures(request: EstimateRequest, accelerator: AcceleratorSpec) -> GoodputBreakdown | None:
    """What hardware failures alone would cost; None without a count."""
    if request.accelerator_count is None or request.accelerator_count < 1:
        return None
    given = request.reliability or Reliability()
    per_node = given.accelerators_per_node or accelerator.accelerators_per_node or USUAL_NODE
    try:
        return goodput_breakdown(
            nodes=nodes_for(request.accelerator_count, per_node),
            failures_per_node_day=given.failures_per_node_day,
            restart_s=given.restart_s,
            checkpoint_write_s=given.checkpoint_write_s,
            checkpoint_interval_s=given.checkpoint_interval_s,
        )
    except QuantityError as error:
        if request.reliability is None:
            return None
        raise SpecError({"reliability": str(error)}) from error


def plan_currency(request: EstimateRequest) -> str:
    """The plan's one currency: stated, else that of the price or capital, else the dollar."""
    if request.currency is not None:
        return request.currency
    if request.price_per_accelerator_hour is not None:
        return request.price_per_accelerator_hour.currency
    if request.on_premises is not None:
        return request.on_premises.capital_per_accelerator.currency
    return "USD"


def _own_hardware(
    organisation_id: UUID,
    request: EstimateRequest,
    beliefs: dict[str, Belief | None],
    *,
    on: date,
    currency: str,
) -> OwnHardware | None:
    if request.on_premises is None:
        return None
    median = {
        name: None if (belief := beliefs[name]) is None else belief.median
        for name in ("power_w", "host_factor", "pue")
    }
    terms = BillTerms(currency=currency, on=on, months=Decimal(1))
    try:
        return own_hardware(organisation_id, request.on_premises, terms, OwnPower(**median))
    except WholeBillError as error:
        raise SpecError(dict(error.problems)) from error


def _price(  # noqa: PLR0913 - where a price may come from
    organisation_id: UUID,
    request: EstimateRequest,
    accelerator: AcceleratorSpec,
    place: Place | None,
    *,
    own: OwnHardware | None,
    on: date,
) -> tuple[Money | None, str]:
    """The price of an accelerator-hour in the plan's currency, and where it comes from.

    Stated, else of own hardware, else of the price book; without a rate into the plan's currency
    there is none, and the source says so.
    """
    price, source = _price_as_found(organisation_id, request, accelerator, place, own=own, on=on)
    if price is None or request.currency in (None, price.currency):
        return price, source
    terms = BillTerms(currency=plan_currency(request), on=on, months=Decimal(1))
    priced = in_plan_currency(organisation_id, terms, price, source=source)
    if priced.price is None:
        return None, priced.missing
    return priced.price, "; ".join(filter(None, (priced.source, priced.note)))


def _price_as_found(  # noqa: PLR0913 - where a price may come from
    organisation_id: UUID,
    request: EstimateRequest,
    accelerator: AcceleratorSpec,
    place: Place | None,
    *,
    own: OwnHardware | None,
    on: date,
) -> tuple[Money | None, str]:
    """The price in the currency of its source: stated, else own hardware's, else the book's."""
    if request.price_per_accelerator_hour is not None:
        return request.price_per_accelerator_hour.money(), _("stated in the question")
    if own is not None:
        price = None if own.price is None else own.price.total
        return price, "; ".join((_("own hardware"), *own.sources))
    record, note = _book_price(organisation_id, request, accelerator, place, on=on)
    if record is None:
        return None, ""
    place_name = " ".join(filter(None, (record.provider, record.region, record.instance_type)))
    parts = (record.book, place_name, record.purchase, record.valid_from.isoformat())
    return record.price, "; ".join(filter(None, (*parts, record.source, note)))


def _book_price(
    organisation_id: UUID,
    request: EstimateRequest,
    accelerator: AcceleratorSpec,
    place: Place | None,
    *,
    on: date,
) -> tuple[PriceRecord | None, str]:
    """The book's price at the place, else the provider's elsewhere, else anybody's; it is said."""
    asked = (place.provider, place.region) if place else ("", "")
    for provider, region in dict.fromkeys((asked, (asked[0], ""), ("", ""))):
        record = price_in_force(
            organisation_id,
            cost_class="accelerator",
            on=on,
            provider=provider,
            region=region,
            accelerator_key=accelerator.key,
            purchase=request.purchase,
        )
        if record is not None and record.accelerator_key == accelerator.key:
            is_there = (provider, region) == asked
            return record, "" if is_there else _("no price is known at the place itself")
    return None, ""


def _lines(
    organisation_id: UUID, request: EstimateRequest, *, on: date, currency: str
) -> tuple[tuple[PlanLine, ...], str]:
    """The lines of the plan and where they come from; the chapter's when nothing is said."""
    if request.lines is None or isinstance(request.lines, str):
        preset = evidence_preset(request.lines or "chapter")
        return tuple(
            PlanLine(key=rule.key, name="", rule=rule) for rule in preset.rules
        ), f"{preset.source}: {preset.finding}"
    lines = [
        _line(organisation_id, line, on=on, currency=currency)
        for line in request.lines
        if line.key != "main_run"
    ]
    return (PlanLine(key="main_run", name="", rule=PLAN_LINES[0]), *lines), _("own lines")


def _line(organisation_id: UUID, line: LineSpec, *, on: date, currency: str) -> PlanLine:
    if line.fraction is not None:
        rule = PlanLineRule(key=line.key, fraction=line.fraction, base=PlanLineBase(line.base))
        return PlanLine(key=line.key, name=line.name, rule=rule, in_programme=line.in_programme)
    if line.amount is None:
        raise SpecError({f"lines.{line.key}": _("give fraction or amount")})
    terms = BillTerms(currency=currency, on=on, months=Decimal(1))
    priced = in_plan_currency(organisation_id, terms, line.amount.money(), source=line.key)
    if priced.price is None:
        raise SpecError({f"lines.{line.key}": priced.missing})
    return PlanLine(
        key=line.key, name=line.name, rule=None, amount=priced.price, in_programme=line.in_programme
    )


def _spec(  # noqa: PLR0913 - the parts of one record
    request: EstimateRequest,
    terms: tuple[FlopTerm, ...],
    beliefs: dict[str, Belief | None],
    *,
    peak: float,
    price: Money | None,
    lines: tuple[PlanLine, ...],
) -> EstimateSpec:
    per_token = model_flop_per_token(terms)
    if request.training_flop is not None:
        per_token = request.training_flop / request.tokens
    around = around_the_main_run(lines, currency=price.currency) if price else ((), None)
    try:
        return EstimateSpec(
            flop_per_token=per_token,
            tokens=request.tokens,
            accelerators=request.accelerator_count,
            peak_flop_per_s=peak,
            price_per_accelerator_h=price,
            price_ratio=belief_of(1.0 if request.price_ratio is None else request.price_ratio),
            lines=around[0],
            fixed_lines=around[1],
            draws=request.draws,
            seed=request.seed,
            **beliefs,  # type: ignore[arg-type]
        )
    except EstimateInputError as error:
        raise spec_error(error) from error
