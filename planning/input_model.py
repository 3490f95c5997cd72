"""The model, precision and peak of a question: completed from shape, counts and catalogue."""

from dataclasses import replace
from typing import Final

from django.utils.translation import gettext as _

from formulae.flop_terms import FlopTerm, train_flop_terms
from formulae.model_description import ModelDescription, StackOutline
from formulae.units import QuantityError
from planning.model_spec import ModelSpecError
from planning.prior_rows import SIXTEEN_BIT
from planning.spec import EstimateRequest, SpecError
from runs.records import AcceleratorSpec

# Beyond this a shape is not the model whose parameters were stated.
FAR_FRACTION: Final = 0.10


def precision_of(request: EstimateRequest, accelerator: AcceleratorSpec) -> str:
    """What was asked, else the better 16-bit format that the accelerator has."""
    if request.precision is not None:
        return request.precision
    peaks = accelerator.peak_dense_flop_per_s
    return next((name for name in SIXTEEN_BIT if name in peaks), SIXTEEN_BIT[0])


def model_of(request: EstimateRequest) -> tuple[ModelDescription, tuple[FlopTerm, ...]]:
    try:
        model = _by_stated_counts(request.model.description())
        return model, train_flop_terms(model, seq_len=request.seq_len)
    except ModelSpecError as error:
        raise SpecError({f"model.{error.field}": error.why}) from error
    except QuantityError as error:
        raise SpecError({"model": str(error)}) from error


def _by_stated_counts(model: ModelDescription) -> ModelDescription:
    """The model by its stated counts where its shape is far from them: a width left out (that of
    an expert, say) puts a shape wrong by far more than a stated count ever is.
    """
    shape, counts = model.architecture, model.backbone_counts
    if shape is None or counts is None or model.is_encoder_decoder or model.vision is not None:
        return model
    pairs = [(counts.total, model.stated_params), (counts.active, model.stated_active_params)]
    far = any(stated and abs(counted / stated - 1) > FAR_FRACTION for counted, stated in pairs)
    if not far or (model.is_mixture_of_experts and model.stated_active_params is None):
        return model
    outline = StackOutline(
        layers=shape.layers,
        hidden=shape.hidden,
        attention_width=shape.heads * shape.head_dim,
        causal=shape.causal,
        window=shape.window,
        windowed_layers=shape.windowed_layers,
    )
    return replace(model, architecture=None, outline=outline)


def peak_of(request: EstimateRequest, accelerator: AcceleratorSpec, precision: str) -> float:
    """The denominator of MFU: the asker's own, else the catalogue's, dense unless asked."""
    if request.peak_flop_per_s is not None:
        return request.peak_flop_per_s
    is_sparse = request.peak == "sparse"
    peaks = accelerator.peak_sparse_flop_per_s if is_sparse else accelerator.peak_dense_flop_per_s
    peak = peaks.get(precision)
    if peak is None:
        raise SpecError(
            {
                "precision": _("%(name)s has no %(kind)s %(precision)s peak; it has %(known)s.")
                % {
                    "name": accelerator.name,
                    "kind": request.peak,
                    "precision": precision,
                    "known": ", ".join(peaks) or _("none"),
                }
            }
        )
    return peak
