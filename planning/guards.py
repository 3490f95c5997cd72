"""What is doubtful about a question or its answer, each with a code; nothing is computed here.

Red findings keep a plan from being approved; amber ones ask for a second look; info says what was
assumed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.utils.translation import gettext as _

from billing.price_records import PriceRecord
from formulae.beliefs import Belief, Triangular
from formulae.compute import training_steps
from formulae.estimate import EstimateResult
from formulae.flop_terms import model_flop_per_token
from formulae.memory import MemoryLevel, MemoryNeed, MemoryScreen, screen_memory
from formulae.money import Money
from formulae.thresholds import training_compute_threshold
from formulae.units import FLOP_PER_TFLOP, QuantityError
from planning.inputs import Inputs
from planning.memory_words import assumption, verdict
from planning.prior_rows import best_observed
from planning.spec import SpecError

_COUNT_DIFFERENCE: Final = 0.03
_GOOD_PUE: Final = 1.2
_LEAST_MFU: Final = 0.05
_LEAST_TOKENS_PER_PARAM: Final = 1.0
_FLOP_DIFFERENCE: Final = 0.05
_HIGHEST_PRICE: Final = 100
_FAR_ABOVE: Final = 4
_HARD_CURRENCIES: Final = ("USD", "EUR", "GBP", "CHF")
_HIGHEST_POWER: Final = 1.2


class Severity(StrEnum):
    """How much a finding weighs."""

    INFO = "info"
    AMBER = "amber"
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """One finding, for people and programs."""

    code: str
    severity: Severity
    message: str

    def document(self) -> dict[str, Any]:
        """As the answer holds it."""
        return {"code": self.code, "severity": self.severity.value, "message": self.message}


def refuse_impossible(inputs: Inputs) -> None:
    """Refuse what cannot be meant although each value is in range.

    Raises:
        SpecError: grid intensity in kg, or a batch given in tokens.
    """
    grid = inputs.spec.g_per_kwh
    if grid is not None and 0 < grid.median < 1:
        raise SpecError(
            {
                "grid_g_per_kwh": _(
                    "%(value)s gCO2e/kWh looks like kg: 0.4 kg/kWh is 400 gCO2e/kWh."
                )
                % {"value": f"{grid.median:g}"}
            }
        )
    request = inputs.request
    if request.batch_sequences is not None and request.seq_len is not None:
        try:
            training_steps(
                tokens=request.tokens,
                batch_sequences=request.batch_sequences,
                seq_len=request.seq_len,
            )
        except QuantityError as error:
            raise SpecError({"batch_sequences": str(error)}) from error


def warnings_of(inputs: Inputs, result: EstimateResult) -> tuple[Warned, ...]:
    """Everything doubtful, most severe first."""
    order = list(Severity)
    found = [
        *_about_names(inputs),
        *_about_counts(inputs),
        *_about_peak(inputs),
        *_about_place(inputs),
        *_about_price(inputs),
        *_about_compute(result),
        *_about_memory(inputs),
    ]
    return tuple(sorted(found, key=lambda warned: -order.index(warned.severity)))


def _about_names(inputs: Inputs) -> Iterator[Warned]:
    if inputs.named.assumed:
        yield Warned(
            code="accelerator_assumed", severity=Severity.INFO, message=inputs.named.assumed
        )
    if inputs.is_precision_assumed:
        yield Warned(
            code="precision_assumed",
            severity=Severity.INFO,
            message=_("No precision was given: %(precision)s is assumed.")
            % {"precision": inputs.precision},
        )
    if inputs.failures is None and inputs.request.accelerator_count is not None:
        yield Warned(
            code="failures_leave_nothing",
            severity=Severity.AMBER,
            message=_(
                "At this many accelerators the published failure and restart times leave no useful "
                "time: give reliability."
            ),
        )
    if inputs.request.accelerator_count is None:
        yield Warned(
            code="count_missing",
            severity=Severity.INFO,
            message=_("Without accelerator_count there are accelerator-hours but no days."),
        )


def _about_counts(inputs: Inputs) -> Iterator[Warned]:
    difference = inputs.request.model.description().count_difference_fraction
    if difference is not None and abs(difference) > _COUNT_DIFFERENCE:
        follows_shape = inputs.model.architecture is not None
        message = (
            _("The shape counts to %(share)s of the parameters stated; the FLOP follow the shape.")
            if follows_shape
            else _(
                "The shape counts to %(share)s of the parameters stated, so a width must be "
                "missing; the FLOP follow the stated counts."
            )
        )
        yield Warned(
            code="params_differ",
            severity=Severity.AMBER,
            message=message % {"share": f"{1 + difference:.0%}"},
        )
    ratio = inputs.request.tokens / inputs.model.active_params
    if ratio < _LEAST_TOKENS_PER_PARAM:
        yield Warned(
            code="few_tokens",
            severity=Severity.AMBER,
            message=_(
                "%(tokens)s tokens are fewer than the parameters: write tokens, not sequences or "
                "steps."
            )
            % {"tokens": f"{inputs.request.tokens:.3g}"},
        )
    stated = inputs.request.training_flop
    counted = model_flop_per_token(inputs.terms) * inputs.request.tokens
    if stated is not None and abs(stated / counted - 1) > _FLOP_DIFFERENCE:
        yield Warned(
            code="flop_differ",
            severity=Severity.RED,
            message=_("training_flop says %(stated)s FLOP; model and tokens give %(counted)s.")
            % {"stated": f"{stated:.3g}", "counted": f"{counted:.3g}"},
        )


def _about_peak(inputs: Inputs) -> Iterator[Warned]:
    request, accelerator = inputs.request, inputs.accelerator
    mfu = inputs.spec.step_mfu.median
    achieved = mfu * inputs.peak_flop_per_s
    dense = accelerator.peak_dense_flop_per_s.get(inputs.precision)
    words = {
        "achieved": f"{achieved / FLOP_PER_TFLOP:,.0f}",
        "name": accelerator.name,
        "precision": inputs.precision,
    }
    if request.peak == "sparse":
        yield Warned(
            code="sparse_peak",
            severity=Severity.AMBER,
            message=_("MFU is over the 2:4 sparse peak. Reason given: %(reason)s")
            % {"reason": request.sparse_reason},
        )
    if dense is not None and achieved > dense:
        yield Warned(
            code="above_dense_peak",
            severity=Severity.RED,
            message=_(
                "%(achieved)s TFLOP/s is %(share)s of the dense %(precision)s peak of %(name)s: "
                "impossible without sparsity."
            )
            % {**words, "share": f"{achieved / dense:.0%}"},
        )
    yield from _about_best(inputs, achieved)
    if mfu < _LEAST_MFU:
        yield Warned(
            code="mfu_low",
            severity=Severity.AMBER,
            message=_("An MFU of %(mfu)s is below every published run: 0.4 is 40 %%.")
            % {"mfu": f"{mfu:.1%}"},
        )


def _about_best(inputs: Inputs, achieved: float) -> Iterator[Warned]:
    """A stated MFU against the best that anybody published on the hardware."""
    request, accelerator = inputs.request, inputs.accelerator
    best = best_observed(accelerator.key, inputs.precision)
    if request.step_mfu is not None and best and achieved > best.model_flop_per_s:
        yield Warned(
            code="above_best_observed",
            severity=Severity.AMBER,
            message=_(
                "%(achieved)s TFLOP/s is above the best observed on %(name)s at %(precision)s: "
                "%(best)s TFLOP/s (%(model)s, %(software)s, %(date)s)."
            )
            % {
                "achieved": f"{achieved / FLOP_PER_TFLOP:,.0f}",
                "name": accelerator.name,
                "precision": inputs.precision,
                "best": f"{best.model_flop_per_s / FLOP_PER_TFLOP:,.0f}",
                "model": best.model,
                "software": best.software,
                "date": best.date,
            },
        )


def _about_place(inputs: Inputs) -> Iterator[Warned]:
    pue = _likeliest(inputs.spec.pue)
    if pue is not None and pue >= _GOOD_PUE:
        yield Warned(
            code="pue_high",
            severity=Severity.AMBER,
            message=_("A PUE of %(pue)s: modern data centres stay below 1.2.")
            % {"pue": f"{pue:.2f}"},
        )
    if inputs.spec.power_w is None:
        yield Warned(
            code="power_missing",
            severity=Severity.INFO,
            message=_("No power or TDP of %(name)s is known: give power_w for energy and carbon.")
            % {"name": inputs.accelerator.name},
        )
    yield from _about_power(inputs)
    if inputs.spec.g_per_kwh is None:
        yield Warned(
            code="grid_missing",
            severity=Severity.INFO,
            message=_("Without region or grid_g_per_kwh there are no emissions."),
        )


def _about_power(inputs: Inputs) -> Iterator[Warned]:
    """A mean power above what the accelerator may draw: a node's, perhaps."""
    power, limit_w = inputs.spec.power_w, inputs.accelerator.max_power_w or inputs.accelerator.tdp_w
    if power is not None and limit_w is not None and power.median > limit_w * _HIGHEST_POWER:
        yield Warned(
            code="power_high",
            severity=Severity.AMBER,
            message=_(
                "%(power)s W is above the %(limit)s W that one %(name)s may draw: is it the power "
                "of a node?"
            )
            % {
                "power": f"{power.median:,.0f}",
                "limit": f"{limit_w:,.0f}",
                "name": inputs.accelerator.name,
            },
        )


def _likeliest(belief: Belief | None) -> float | None:
    """The mode of a range: its median may lie above what anybody stated."""
    if belief is None:
        return None
    return belief.mode if isinstance(belief, Triangular) else belief.median


def _about_price(inputs: Inputs) -> Iterator[Warned]:
    price = inputs.spec.price_per_accelerator_h
    if price is None:
        missing = inputs.own_hardware.missing if inputs.own_hardware else ()
        yield Warned(
            code="price_missing",
            severity=Severity.AMBER,
            message="; ".join(item.message for item in missing)
            or inputs.price_source
            or _("No price book has %(name)s: without a price there is no cost, and no plan.")
            % {"name": inputs.accelerator.name},
        )
    elif _is_far_above(price, inputs.book_price):
        yield Warned(
            code="price_high",
            severity=Severity.AMBER,
            message=_(
                "%(price)s %(currency)s per accelerator-hour: is it the price of a whole machine?"
            )
            % {"price": format(price.amount.normalize(), "f"), "currency": price.currency},
        )


def _is_far_above(price: Money, book: PriceRecord | None) -> bool:
    """Whether a price is several times the book's, or without one in its currency, implausible."""
    if book is None or book.price.currency != price.currency:
        return price.currency in _HARD_CURRENCIES and price.amount > _HIGHEST_PRICE
    return price.amount > book.price.amount * _FAR_ABOVE


def _about_compute(result: EstimateResult) -> Iterator[Warned]:
    reading = training_compute_threshold(result.flop)
    if reading.state == "none":
        return
    yield Warned(
        code=f"compute_{reading.state}_threshold",
        severity=Severity.AMBER,
        message=_("%(flop)s FLOP is %(share)s of %(limit)s FLOP: %(source)s")
        % {
            "flop": f"{result.flop:.3g}",
            "share": f"{reading.share_fraction:.0%}",
            "limit": f"{reading.threshold.threshold_flop:.0e}",
            "source": reading.threshold.source,
        },
    )


def memory_screen(inputs: Inputs) -> MemoryScreen | None:
    """Whether the run fits; None where memory or count is not known."""
    memory_gb, count = inputs.accelerator.memory_gb, inputs.request.accelerator_count
    if memory_gb is None or count is None:
        return None
    model = inputs.request.model
    return screen_memory(
        MemoryNeed(
            params=inputs.model.total_params,
            active_params=inputs.model.active_params,
            accelerators=count,
            memory_gb=memory_gb,
            layers=model.layers,
            hidden=model.hidden,
            vocab=model.vocab or None,
            seq_len=inputs.request.seq_len,
            accelerators_per_node=inputs.accelerator.accelerators_per_node,
            recompute=None if model.recompute == "none" else model.recompute,
        )
    )


def _about_memory(inputs: Inputs) -> Iterator[Warned]:
    screen = memory_screen(inputs)
    if screen is None or screen.level is MemoryLevel.OK:
        return
    severity = Severity.RED if screen.level is MemoryLevel.RED else Severity.AMBER
    assumed = "; ".join(assumption(one) for one in screen.assumed)
    yield Warned(
        code="memory", severity=severity, message=" ".join(filter(None, (verdict(screen), assumed)))
    )
