"""The `model` object of an estimate as people write it; what its numbers mean is formulae's."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field

from formulae.architecture import Architecture
from formulae.model_description import ModelDescription, StackOutline, VisionEncoder
from formulae.units import QuantityError

Size = Annotated[int, Field(gt=0, le=10_000_000)]
Count = Annotated[int, Field(ge=0, le=10_000_000)]
Params = Annotated[float, Field(ge=1, le=1e16, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

_SHAPE: Final = (
    "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden", "gated_ffn", "vocab",
    "tied_embeddings", "causal", "experts", "top_k", "shared_experts", "expert_ffn_hidden",
    "shared_ffn_hidden", "moe_layers", "window", "windowed_layers", "chunked_window", "mtp_depth",
    "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "v_head_dim", "patch_values",
    "learned_positions", "norms_per_layer", "norm_bias", "qk_norm", "biases",
)  # fmt: skip
# Without these there is no architecture, only counts.
_ESSENTIAL: Final = ("layers", "hidden", "heads", "ffn_hidden", "vocab")
# These change the FLOP in ways that counts do not show.
_NEEDS_ALL: Final = (
    "mtp_depth", "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "v_head_dim", "encoder",
)  # fmt: skip


class ModelSpecError(ValueError):
    """A model that cannot be described; `field` is the key of the model object to correct."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


class StackSpec(BaseModel):
    """The shape of one transformer stack; every key may be left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    layers: Size | None = None
    hidden: Size | None = None
    heads: Size | None = None
    kv_heads: Size | None = Field(default=None, description="Without it, heads.")
    head_dim: Size | None = Field(default=None, description="Without it, hidden / heads.")
    ffn_hidden: Size | None = None
    gated_ffn: bool | None = Field(default=None, description="Three matrices, not two; yes.")
    vocab: Count | None = Field(default=None, description="0: no embedding and no output head.")
    tied_embeddings: bool | None = None
    causal: bool | None = Field(default=None, description="A token sees earlier ones only; yes.")
    experts: Size | None = None
    top_k: Size | None = None
    shared_experts: Count | None = None
    expert_ffn_hidden: Size | None = Field(default=None, description="Without it, ffn_hidden.")
    shared_ffn_hidden: Size | None = Field(default=None, description="Of one shared expert.")
    moe_layers: Count | None = Field(default=None, description="Layers with experts; all.")
    window: Size | None = Field(default=None, description="Tokens that a windowed layer sees.")
    windowed_layers: Count | None = Field(default=None, description="Without it, all layers.")
    chunked_window: bool | None = Field(default=None, description="Fixed chunks, not sliding.")
    mtp_depth: Count | None = Field(default=None, description="Further tokens predicted at once.")
    q_lora_rank: Size | None = None
    kv_lora_rank: Size | None = Field(default=None, description="Latent attention (MLA).")
    qk_rope_head_dim: Size | None = None
    v_head_dim: Size | None = None
    patch_values: Count | None = Field(default=None, description="Numbers of one picture patch.")
    learned_positions: Count | None = None
    norms_per_layer: Count | None = None
    norm_bias: bool | None = None
    qk_norm: bool | None = None
    biases: Literal["none", "qkv", "all"] | None = None

    def missing(self) -> tuple[str, ...]:
        """The keys that a full architecture still needs."""
        return tuple(name for name in _ESSENTIAL if getattr(self, name) is None)

    def width_of_head(self) -> int | None:
        """One head's width: given, or hidden / heads; None when not known.

        Raises:
            ModelSpecError: hidden is no multiple of heads.
        """
        if self.head_dim is not None or self.hidden is None or self.heads is None:
            return self.head_dim
        if self.hidden % self.heads:
            raise ModelSpecError(
                "head_dim",
                _("give it: hidden, %(hidden)s, is no whole multiple of heads, %(heads)s")
                % {"hidden": self.hidden, "heads": self.heads},
            )
        return self.hidden // self.heads

    def architecture(self, defaults: Mapping[str, Any]) -> Architecture:
        """The full shape; `defaults` stand where a key was left out.

        Raises:
            ModelSpecError: a key is missing or cannot be meant.
        """
        sizes: dict[str, Any] = dict(defaults)
        sizes.update((name, getattr(self, name)) for name in _SHAPE if _is_set(self, name))
        sizes.setdefault("kv_heads", self.heads)
        sizes.setdefault("head_dim", self.width_of_head())
        for name in _ESSENTIAL[:-1]:
            if sizes.get(name) is None:
                raise ModelSpecError(name, _("the shape is not complete without it"))
        try:
            return Architecture(**sizes)
        except QuantityError as error:
            raise _named(error) from error


class VisionSpec(StackSpec):
    """A vision tower: its shape or `params`, and how its patches become tokens."""

    params: Params | None = Field(default=None, description="Instead of the shape.")
    frozen: bool = Field(default=False, description="Run forward only.")
    visual_token_fraction: Fraction | None = Field(
        default=None, description="Share of all trained tokens that come from pictures."
    )
    patches_per_image: Size | None = Field(default=None, description="That see one another.")
    patches_per_token: Annotated[float, Field(gt=0, le=10_000)] = 1.0
    projector_params: Annotated[float, Field(ge=0, le=1e13)] = 0.0

    def tower(self) -> VisionEncoder:
        """The tower as the formulae take it.

        Raises:
            ModelSpecError: neither a count nor a full shape.
        """
        architecture = None
        if self.params is None:
            architecture = self.architecture({"vocab": 0, "causal": False, "gated_ffn": False})
        return VisionEncoder(
            architecture=architecture,
            params=self.params,
            is_frozen=self.frozen,
            visual_token_fraction=self.visual_token_fraction,
            patches_per_token=self.patches_per_token,
            patches_per_image=self.patches_per_image,
            projector_params=self.projector_params,
        )


class ModelSpec(StackSpec):
    """A model: counts only, or its full shape, or both; and how it is trained."""

    params: Params | None = Field(default=None, description="All, a vision tower among them.")
    active_params: Params | None = Field(default=None, description="That one token passes.")
    encoder: StackSpec | None = Field(default=None, description="Of an encoder-decoder.")
    encoder_params: Params | None = Field(default=None, description="Instead of `encoder`.")
    source_fraction: Fraction | None = Field(
        default=None, description="Share of the tokens that pass the encoder; 0.5."
    )
    vision: VisionSpec | None = None
    teacher_params: Params | None = Field(default=None, description="Run on every token.")
    forward_only_params: Params | None = Field(default=None, description="Other frozen networks.")
    frozen_params: Params | None = None
    frozen_passes_gradients: bool = Field(
        default=False, description="Trained parts lie below the frozen ones."
    )
    adapter_params: Params | None = Field(default=None, description="On a base frozen whole.")
    recompute: Literal["none", "selective", "full"] = "none"

    def description(self) -> ModelDescription:
        """The model as the formulae take it: by its shape when that is complete, else by counts.

        Raises:
            ModelSpecError: a key is missing or cannot be meant; it says which.
        """
        encoder = None
        if self.encoder is not None:
            encoder = _encoder(self.encoder)
        try:
            return ModelDescription(
                architecture=self._decoder(encoder),
                outline=self._outline() if self.missing() else None,
                stated_params=self.params,
                stated_active_params=self.active_params,
                encoder=encoder,
                encoder_params=self.encoder_params,
                source_fraction=0.5 if self.source_fraction is None else self.source_fraction,
                vision=None if self.vision is None else _tower(self.vision),
                teacher_params=self.teacher_params,
                forward_only_params=self.forward_only_params,
                frozen_params=self.frozen_params,
                frozen_passes_gradients=self.frozen_passes_gradients,
                adapter_params=self.adapter_params,
                recompute=self.recompute,
            )
        except QuantityError as error:
            raise _named(error) from error

    def _decoder(self, encoder: Architecture | None) -> Architecture | None:
        """The main stack when its shape is complete; None when counts must do."""
        missing = self.missing()
        if not missing:
            memory = None if encoder is None else encoder.hidden
            return self.architecture({"cross_attention_hidden": memory})
        for name in _NEEDS_ALL:
            if getattr(self, name):
                raise ModelSpecError(
                    name, _("needs the whole shape: give %(keys)s too") % {"keys": _listed(missing)}
                )
        if self.params is None:
            raise ModelSpecError(
                "params",
                _("give it, or the whole shape with %(keys)s") % {"keys": _listed(missing)},
            )
        if self.experts is not None and self.active_params is None:
            raise ModelSpecError(
                "active_params",
                _("give it with experts, or the whole shape with %(keys)s")
                % {"keys": _listed(missing)},
            )
        return None

    def _outline(self) -> StackOutline:
        """What is known of the main stack beside its counts."""
        width = None
        if self.heads is not None:
            head = self.width_of_head()
            width = None if head is None else self.heads * head
        return StackOutline(
            layers=self.layers,
            hidden=self.hidden,
            attention_width=width,
            vocab=self.vocab or None,
            tied_embeddings=bool(self.tied_embeddings),
            causal=self.causal is not False,
            window=self.window,
            windowed_layers=self.windowed_layers,
            chunked_window=bool(self.chunked_window),
        )


def _is_set(spec: StackSpec, name: str) -> bool:
    """Whether a key was given a value."""
    return getattr(spec, name) is not None


def _listed(names: tuple[str, ...]) -> str:
    """Keys in one line."""
    return ", ".join(names)


def _named(error: QuantityError) -> ModelSpecError:
    """A refusal of the formulae, whose first word is the field."""
    field, _space, why = str(error).partition(" ")
    return ModelSpecError(field, why)


def _encoder(spec: StackSpec) -> Architecture:
    """The shape of the encoder; refusals name the nested key."""
    try:
        return spec.architecture({"vocab": 0, "causal": False})
    except ModelSpecError as error:
        raise ModelSpecError(f"encoder.{error.field}", error.why) from error


def _tower(spec: VisionSpec) -> VisionEncoder:
    """The vision tower; refusals name the nested key."""
    try:
        return spec.tower()
    except ModelSpecError as error:
        raise ModelSpecError(f"vision.{error.field}", error.why) from error
