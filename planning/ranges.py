"""The plain numbers of a question against the ranges of formulae, before anything is computed."""

from collections.abc import Iterator
from typing import Final

from django.utils.translation import gettext as _

from formulae.estimate_spec import EstimateInputError, check_input
from planning.spec import EstimateRequest, SpecError, belief_of
from runs.records import AcceleratorSpec

# What the formulae call otherwise than the question does.
_FIELD_OF: Final = {
    "accelerators": "accelerator_count",
    "g_per_kwh": "grid_g_per_kwh",
    "flop_per_token": "model",
    "price_per_accelerator_h": "price_per_accelerator_hour",
}
_QUANTITIES: Final = ("step_mfu", "goodput", "price_ratio", "power_w", "host_factor", "pue")
# Vendors round their peaks: a few percent above the catalogue are no other kind of peak.
_ROUNDING: Final = 1.05


def spec_error(error: EstimateInputError) -> SpecError:
    """A refusal of the formulae, by the name that the question has for the field."""
    why = f"{error.value} {error.unit}: it must be {error.requirement}. {error.fix}"
    return SpecError({_FIELD_OF.get(error.field, error.field): why})


def refuse_out_of_range(request: EstimateRequest) -> None:
    """Refuse numbers that cannot be meant, each by its name and unit.

    Raises:
        SpecError: names the first of them.
    """
    for field, value in _numbers(request):
        try:
            check_input(field, value)
        except EstimateInputError as error:
            raise spec_error(error) from error


def _numbers(request: EstimateRequest) -> Iterator[tuple[str, object]]:
    yield "tokens", request.tokens
    for field, value in (
        ("accelerators", request.accelerator_count),
        ("peak_flop_per_s", request.peak_flop_per_s),
    ):
        if value is not None:
            yield field, value
    for field in _QUANTITIES:
        given = getattr(request, field)
        if given is not None:
            yield field, belief_of(given)
    if request.grid_g_per_kwh is not None:
        yield "g_per_kwh", belief_of(request.grid_g_per_kwh)


def refuse_unnamed_sparsity(
    request: EstimateRequest, accelerator: AcceleratorSpec, precision: str
) -> None:
    """Refuse a stated peak far above the dense one of the catalogue that does not say it is sparse.

    Raises:
        SpecError: names both peaks and what to do.
    """
    stated = request.peak_flop_per_s
    dense = accelerator.peak_dense_flop_per_s.get(precision)
    if request.peak == "sparse" or stated is None or dense is None or stated <= dense * _ROUNDING:
        return
    raise SpecError(
        {
            "peak_flop_per_s": _(
                "%(stated).4g FLOP/s is %(share).0f %% of the dense %(precision)s peak of %(name)s,"
                " %(dense).4g FLOP/s. A sparse peak needs peak: sparse with sparse_reason."
            )
            % {
                "stated": stated,
                "share": 100 * stated / dense,
                "precision": precision,
                "name": accelerator.name,
                "dense": dense,
            }
        }
    )
