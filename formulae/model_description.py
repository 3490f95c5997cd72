"""What is known of a model to be trained: counts, a full architecture, towers, what is frozen."""

from dataclasses import dataclass
from typing import Literal

from formulae.architecture import Architecture, ParamCounts, count_params
from formulae.units import QuantityError, require_positive, require_range

Recompute = Literal["none", "selective", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOutline:
    """What is known of a stack whose full architecture is not: parameters come as counts.

    ``attention_width`` is heads * head_dim; None means ``hidden``. Where ``vocab`` and ``hidden``
    are known and the embeddings are not tied, the input embedding is left out of the FLOP.
    """

    layers: int | None = None
    hidden: int | None = None
    attention_width: int | None = None
    vocab: int | None = None
    tied_embeddings: bool = False
    causal: bool = True
    window: int | None = None
    windowed_layers: int | None = None
    chunked_window: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes below one."""
        for name in ("layers", "hidden", "attention_width", "vocab", "window"):
            value = getattr(self, name)
            if value is not None:
                require_positive(name, value)
        require_range("windowed_layers", self.windowed_layers or 0, low=0, high=self.layers or 1e6)

    @property
    def embedding(self) -> int:
        """Parameters of an input embedding that no matrix product meets; 0 when not known."""
        if self.tied_embeddings or self.vocab is None or self.hidden is None:
            return 0
        return self.vocab * self.hidden

    @property
    def score_width(self) -> int | None:
        """H_attn of the attention term."""
        return self.attention_width or self.hidden

    @property
    def layers_in_window(self) -> int:
        """Layers whose attention sees a window only."""
        if self.window is None or self.layers is None:
            return 0
        return self.layers if self.windowed_layers is None else self.windowed_layers


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionEncoder:
    """The tower that turns pictures or video frames into tokens of the language model.

    Exactly one of ``architecture`` and ``params`` is given. ``visual_token_fraction`` is the share
    of all tokens of the language model that come from pictures; None is not known, and then the
    tower has no term. ``patches_per_token`` patches make one such token; ``patches_per_image``
    patches attend to one another (None leaves the tower's attention scores out).
    """

    architecture: Architecture | None = None
    params: float | None = None
    is_frozen: bool = False
    visual_token_fraction: float | None = None
    patches_per_token: float = 1.0
    patches_per_image: int | None = None
    projector_params: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if (self.architecture is None) == (self.params is None):
            raise QuantityError("vision.params is to be given, or the tower's shape, and not both")
        if self.params is not None:
            require_positive("vision.params", self.params)
        if self.visual_token_fraction is not None:
            require_range("vision.visual_token_fraction", self.visual_token_fraction, low=0, high=1)
        if self.patches_per_image is not None:
            require_positive("vision.patches_per_image", self.patches_per_image)
        require_positive("vision.patches_per_token", self.patches_per_token)
        require_range("vision.projector_params", self.projector_params, low=0)

    @property
    def total_params(self) -> float:
        """Parameters of the tower and its projector, stated or counted."""
        if self.architecture is not None:
            return count_params(self.architecture).total + self.projector_params
        return (self.params or 0.0) + self.projector_params


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """A model and how it is trained: what the FLOP terms are made from.

    Either ``architecture`` or ``stated_params``, or both. An encoder-decoder has its decoder in
    ``architecture`` and its encoder in ``encoder``, or ``encoder_params`` among the stated ones;
    ``source_fraction`` of the tokens pass the encoder and the rest the decoder.
    ``frozen_params`` of the parameters are not trained; ``frozen_passes_gradients`` says whether
    trained parts lie below them. ``adapter_params`` are trained on a base that is frozen whole.
    ``forward_only_params`` belong to other networks that are only run (a text encoder, a
    variational autoencoder), ``teacher_params`` to a teacher that runs online on every token.
    """

    architecture: Architecture | None = None
    outline: StackOutline | None = None
    stated_params: float | None = None
    stated_active_params: float | None = None
    encoder: Architecture | None = None
    encoder_params: float | None = None
    source_fraction: float = 0.5
    vision: VisionEncoder | None = None
    teacher_params: float | None = None
    forward_only_params: float | None = None
    frozen_params: float | None = None
    frozen_passes_gradients: bool = False
    adapter_params: float | None = None
    recompute: Recompute = "none"

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, naming the field."""
        if self.architecture is None and self.stated_params is None:
            raise QuantityError("params is missing; give it, or the full architecture")
        for name in ("stated_params", "stated_active_params", "encoder_params", "teacher_params",
                     "forward_only_params", "frozen_params", "adapter_params"):  # fmt: skip
            value = getattr(self, name)
            if value is not None:
                require_positive(name.removeprefix("stated_"), value)
        _check_parts(self)
        if self.is_encoder_decoder and not 0 < self.source_fraction < 1:
            raise QuantityError(
                f"source_fraction is {self.source_fraction!r}; it must lie between 0 and 1"
            )

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether a token crosses one of two stacks only."""
        return self.encoder is not None or self.encoder_params is not None

    @property
    def backbone_counts(self) -> ParamCounts | None:
        """Counted parameters of the language stacks; None without a full architecture."""
        if self.architecture is None:
            return None
        decoder = count_params(self.architecture)
        if self.encoder is None:
            return decoder
        encoder = count_params(self.encoder)
        return ParamCounts(
            total=decoder.total + encoder.total,
            active=decoder.active + encoder.active,
            matmul_active=decoder.matmul_active + encoder.matmul_active,
            embedding=decoder.embedding + encoder.embedding,
            multi_token_prediction=decoder.multi_token_prediction,
        )

    @property
    def counted_params(self) -> float | None:
        """Counted parameters, the vision tower among them; None without a full architecture."""
        counts = self.backbone_counts
        if counts is None:
            return None
        return counts.total + (self.vision.total_params if self.vision is not None else 0.0)

    @property
    def total_params(self) -> float:
        """Parameters to be stored: stated, else counted. Adapters come on top."""
        if self.stated_params is not None:
            return self.stated_params
        return self.counted_params or 0.0

    @property
    def active_params(self) -> float:
        """Parameters that one token passes through: stated, else counted, else all."""
        if self.stated_active_params is not None:
            return self.stated_active_params
        counts = self.backbone_counts
        return self.total_params if counts is None else float(counts.active)

    @property
    def count_difference_fraction(self) -> float | None:
        """How far the counted total is from the stated one, counted / stated - 1, 0.03 is 3 %;
        None unless both are known.
        """
        counted = self.counted_params
        if counted is None or self.stated_params is None:
            return None
        return counted / self.stated_params - 1.0

    @property
    def layers(self) -> int | None:
        """Layers of the main stack, when known."""
        return _shape(self, "layers")

    @property
    def hidden(self) -> int | None:
        """Width of the main stack, when known."""
        return _shape(self, "hidden")

    @property
    def is_mixture_of_experts(self) -> bool:
        """Whether more parameters are stored than one token passes through."""
        if self.architecture is not None:
            return self.architecture.sparse_layers > 0
        return self.active_params < self.total_params

    @property
    def frozen_fraction(self) -> float:
        """Share of the language stacks' parameters that is not trained; adapters freeze all."""
        if self.adapter_params is not None:
            return 1.0
        counts = self.backbone_counts
        whole = self.total_params if counts is None else float(counts.total)
        return min(1.0, (self.frozen_params or 0.0) / whole)


def _shape(model: ModelDescription, name: str) -> int | None:
    """One size of the main stack, from the architecture or the outline."""
    stack = model.architecture or model.outline
    value: int | None = None if stack is None else getattr(stack, name)
    return value


def _check_parts(model: ModelDescription) -> None:
    """Parts fit into the whole and to one another."""
    total = model.total_params
    for name in ("stated_active_params", "encoder_params", "frozen_params"):
        value = getattr(model, name)
        if value is not None and value > total:
            raise QuantityError(
                f"{name.removeprefix('stated_')} is {value:g}; it must be at most params, {total:g}"
            )
    if model.encoder is not None:
        if model.architecture is None:
            raise QuantityError("encoder is given, but the decoder's architecture is not complete")
        if model.architecture.cross_attention_hidden is None:
            raise QuantityError("cross_attention_hidden is missing; a decoder gives its encoder's")
    if model.adapter_params is not None and model.frozen_params is not None:
        raise QuantityError("frozen_params is to be left out with adapter_params: all is frozen")
