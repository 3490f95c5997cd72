"""A Hugging Face config.json as the `model` object of an estimate; what it costs is formulae's."""

from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from planning.config_layers import read_experts, read_window
from planning.config_reader import ConfigError, ConfigReader
from planning.encoder_decoder_config import is_encoder_decoder, read_encoder_decoder
from planning.model_families import (
    FAMILIES,
    REFUSED_KEYS,
    REFUSED_TYPES,
    VISION_TYPES,
    Family,
)
from planning.vision_config import read_tower, read_vision

__all__ = ["ConfigError", "ConfigRead", "model_from_config"]

# Beyond this, the stated context is what a model can be asked for, not what it was trained with.
_LONGEST_TRAINED: Final = 32_768
_MOST_LAYERS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRead:
    """What a config.json says: `model` keys of an estimate, a context length, what was assumed."""

    model: dict[str, Any]
    seq_len: int | None
    notes: tuple[str, ...]


def model_from_config(config: object) -> ConfigRead:
    """Read a config.json; nothing that changes the FLOP is passed over in silence.

    Args:
        config: the parsed JSON.

    Returns:
        The keys of the `model` object of an estimate; the context length, None where the config
        does not say what was trained with; and a note for each assumption.

    Raises:
        ConfigError: a ValueError that names the key that is missing, wrong or not understood.
    """
    top = ConfigReader(config)
    model_type = top.text("model_type")
    _refuse(top, model_type)
    notes: list[str] = []
    text = top.section("text_config", "language_config", "llm_config") or top
    if text is not top:
        text_type = text.text("model_type") or model_type
        _refuse(text, text_type)
        model_type = text_type
    if model_type in VISION_TYPES:
        return _vision_only(top, model_type)
    if is_encoder_decoder(text, model_type):
        model = read_encoder_decoder(text, model_type, notes=notes)
    else:
        model = _decoder(top, text, model_type, notes=notes)
    sections = [top] if text is top else [top, text]
    tower = top.section("vision_config")
    if tower is not None:
        model["vision"] = read_vision(top, tower, hidden=model["hidden"], notes=notes)
        sections.append(tower)
    seq_len = _context(text, model_type, notes)
    notes += _about(sections)
    return ConfigRead(model=_without_none(model), seq_len=seq_len, notes=tuple(notes))


def _refuse(reader: ConfigReader, model_type: str) -> None:
    """Refuse layers that are not attention and FFN, and towers trained side by side."""
    key = "model_type" if model_type in REFUSED_TYPES else reader.has(REFUSED_KEYS)
    if key is None:
        return
    raise ConfigError(
        reader.name(key),
        _("this model is not made of attention and feed-forward layers alone (%(type)s). Enter "
          "params, and active_params where a token does not meet all of them.")
        % {"type": model_type or "?"},
    )  # fmt: skip


def _family(reader: ConfigReader, model_type: str, notes: list[str]) -> Family:
    """The habits of a type; for an unknown one those that its keys suggest, with a note."""
    if model_type in FAMILIES:
        family = FAMILIES[model_type]
        reader.assume(family.defaults)
        return family
    activation = reader.text("hidden_act", "hidden_activation", "activation_function")
    is_gated = activation in {"silu", "swish", "swiglu", "geglu"}
    notes.append(
        _("model_type “%(type)s” is not known here: read by the usual key names, as one "
          "transformer stack with %(kind)s feed-forward layers (hidden_act “%(activation)s”).")
        % {
            "type": model_type or "?",
            "kind": _("gated") if is_gated else _("plain"),
            "activation": activation or "?",
        }
    )  # fmt: skip
    is_masked = any("MaskedLM" in str(name) for name in reader.items("architectures"))
    # The library ties embeddings unless told otherwise; the FLOP are the same either way.
    return Family(is_gated=is_gated, is_tied=True, causal=not is_masked)


def _decoder(
    top: ConfigReader, text: ConfigReader, model_type: str, *, notes: list[str]
) -> dict[str, Any]:
    """The keys of one stack."""
    family = _family(text, model_type, notes)
    layers = text.need("num_hidden_layers", "n_layer", "num_layers", "n_layers", high=_MOST_LAYERS)
    hidden = text.need("hidden_size", "n_embd", "n_embed", "d_model", "dim")
    heads = text.need("num_attention_heads", "n_head", "num_heads", "n_heads")
    experts = read_experts(text, family, layers=layers)
    tied = text.value("tie_word_embeddings")
    if tied is None:
        tied = top.value("tie_word_embeddings")
    model: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": _kv_heads(text, model_type, heads),
        "head_dim": text.size("head_dim", "d_kv", "kv_channels", "attention_head_size"),
        "vocab": text.need("vocab_size", "padded_vocab_size"),
        "tied_embeddings": family.is_tied if tied is None else bool(tied),
        "causal": family.causal,
        "mtp_depth": text.size("num_nextn_predict_layers", "mtp_num_layers", low=0) or None,
    }
    model |= experts | _ffn(text, family, model_type, hidden=hidden, has_experts=bool(experts))
    model |= _latent(text, heads)
    model |= read_window(text, family, layers=layers, notes=notes)
    return model | _small(text, family, model_type)


def _kv_heads(reader: ConfigReader, model_type: str, heads: int) -> int:
    """Key and value heads; one where all queries share it."""
    stated = reader.size(
        "num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "kv_n_heads"
    )
    nested = reader.part("attn_config")
    if nested is not None and stated is None:
        stated = nested.size("kv_n_heads")
    shares_one = reader.flag("multi_query", default=model_type == "gpt_bigcode")
    is_new = reader.flag("new_decoder_architecture", default=False)
    if shares_one and not is_new:
        return 1
    return stated or heads


def _ffn(
    reader: ConfigReader, family: Family, model_type: str, *, hidden: int, has_experts: bool
) -> dict[str, Any]:
    """Width and kind of the feed-forward layers."""
    nested = reader.part("ffn_config") or reader
    width = nested.size("intermediate_size", "n_inner", "ffn_hidden_size", "d_ff", "ffn_dim")
    ratio = reader.number("expansion_ratio", 0.0)
    if width is None and ratio:
        width = round(ratio * hidden)
    if width is None and family.ffn_is_4_hidden:
        width = 4 * hidden
    dense = reader.size("intermediate_size_mlp")
    if width is None:
        width = reader.need("intermediate_size")
    if model_type == "qwen":
        # Its intermediate_size holds both halves of the gated layer.
        width //= 2
    keys: dict[str, Any] = {"ffn_hidden": width, "gated_ffn": family.is_gated}
    if has_experts and dense is not None:
        keys |= {"ffn_hidden": dense, "expert_ffn_hidden": width}
    return keys


def _latent(reader: ConfigReader, heads: int) -> dict[str, Any]:
    """The keys of latent attention; empty without."""
    rank = reader.size("kv_lora_rank")
    if rank is None:
        return {}
    return {
        "kv_heads": heads,
        "kv_lora_rank": rank,
        "q_lora_rank": reader.size("q_lora_rank"),
        "head_dim": reader.need("qk_nope_head_dim"),
        "qk_rope_head_dim": reader.need("qk_rope_head_dim"),
        "v_head_dim": reader.need("v_head_dim"),
    }


def _small(reader: ConfigReader, family: Family, model_type: str) -> dict[str, Any]:
    """Norms, biases and positions: parameters without FLOP worth counting."""
    biases = family.biases
    if biases == "none" and reader.flag("attention_bias", "qkv_bias", default=False):
        biases = "qkv"
    norms = family.norms_per_layer
    if model_type == "falcon" and reader.flag("new_decoder_architecture", default=False):
        norms = 2
    positions = None
    if family.extra_positions is not None:
        length = reader.size("n_positions", "max_position_embeddings")
        positions = None if length is None else length + family.extra_positions
    return {
        "norms_per_layer": norms if norms != 2 else None,
        "norm_bias": family.norm_bias or None,
        "qk_norm": family.qk_norm or None,
        "biases": biases if biases != "none" else None,
        "learned_positions": positions,
    }


def _vision_only(reader: ConfigReader, model_type: str) -> ConfigRead:
    """A vision transformer that is trained by itself: its patches are the tokens."""
    model = read_tower(reader, model_type) | {"vocab": 0, "causal": False}
    patches = model.pop("patches_per_image", None)
    notes = [_("A vision transformer: tokens are picture patches, each seeing all of its picture.")]
    notes += _about([reader])
    return ConfigRead(model=model, seq_len=patches, notes=tuple(notes))


def _context(reader: ConfigReader, model_type: str, notes: list[str]) -> int | None:
    """The context length that the config suggests, with a note."""
    scaling = reader.section("rope_scaling", "rope_parameters")
    stated = None if scaling is None else scaling.size("original_max_position_embeddings")
    stated = stated or reader.size("original_max_position_embeddings")
    longest = reader.size(
        "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx",
        "max_sequence_length", "max_target_positions",
    )  # fmt: skip
    if stated is None and (longest is None or longest > _LONGEST_TRAINED):
        notes.append(
            _("The config gives no context length that the model was trained with "
              "(max_position_embeddings: %(longest)s); enter seq_len.")
            % {"longest": longest if longest is not None else "?"}
        )  # fmt: skip
        return None
    length = stated or longest
    notes.append(
        _("seq_len %(length)s is the longest context that the config states; enter the one that "
          "most tokens are trained with.")
        % {"length": length}
    )  # fmt: skip
    return length


def _about(sections: list[ConfigReader]) -> list[str]:
    """Notes on values taken by default, and on keys that were not understood."""
    assumed = [item for section in sections for item in section.assumed]
    unread = [key for section in sections for key in section.unread()]
    notes = []
    if assumed:
        notes.append(
            _("Not in the config, taken as its library does: %(keys)s.")
            % {"keys": ", ".join(dict.fromkeys(assumed))}
        )
    if unread:
        notes.append(
            _("Not understood, and left out of the FLOP: %(keys)s.")
            % {"keys": ", ".join(unread[:20]) + (" …" if len(unread) > 20 else "")}
        )
    return notes


def _without_none(model: dict[str, Any]) -> dict[str, Any]:
    """The keys that have a value."""
    return {key: value for key, value in model.items() if value is not None}
