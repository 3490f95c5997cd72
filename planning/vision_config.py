"""The vision tower of a config.json, as the keys of `vision`; no language model."""

from typing import Any

from django.utils.translation import gettext as _

from planning.config_reader import ConfigReader
from planning.model_families import GATED_TOWERS, VISION_DEFAULTS, VISION_TYPES

_QWEN = frozenset({"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe"})


def read_tower(reader: ConfigReader, model_type: str) -> dict[str, Any]:
    """The shape of a vision transformer, as keys of a stack.

    Raises:
        ConfigError: a size is missing or wrong.
    """
    reader.assume(VISION_DEFAULTS.get(model_type, {}))
    # Where embed_dim is set, hidden_size is the width of the language model.
    embedded, width = reader.size("embed_dim"), reader.size("hidden_size", "width", "dim")
    hidden = embedded or width or reader.need("hidden_size")
    layers = reader.need("num_hidden_layers", "depth", "layers", "num_layers")
    layers += reader.size("num_global_layers", low=0) or 0
    ratio = reader.number("mlp_ratio", 0.0)
    width = reader.size("intermediate_size", "mlp_dim", "ffn_dim")
    if width is None:
        width = round(ratio * hidden) if ratio else reader.need("intermediate_size")
    is_gated = reader.text("hidden_act", "activation_function") in {"silu", "swiglu"}
    if reader.flag("use_swiglu_ffn", default=False):
        is_gated, width = True, (int(width * 2 / 3) + 7) // 8 * 8
    patch = reader.size("patch_size") or 0
    channels = reader.size("in_channels", "in_chans", "num_channels") or 3
    frames = reader.size("temporal_patch_size") or 1
    # A text tower's vocabulary that a library writes into every section.
    reader.value("vocab_size", "out_hidden_size")
    keys: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "heads": reader.need("num_attention_heads", "num_heads", "attention_heads"),
        "head_dim": reader.size("head_dim"),
        "ffn_hidden": width,
        "gated_ffn": is_gated or model_type in GATED_TOWERS,
        "norm_bias": True,
        "biases": "all",
        "patch_values": patch * patch * channels * frames,
        "patches_per_image": _patches(reader, patch),
        "learned_positions": _patches(reader, patch) if model_type in VISION_TYPES else None,
    }
    window = reader.size("window_size")
    if window and patch:
        full = reader.items("fullatt_block_indexes")
        keys["window"] = max(1, (window // patch) ** 2)
        keys["windowed_layers"] = max(0, layers - len(full))
    return {key: value for key, value in keys.items() if value is not None}


def _patches(reader: ConfigReader, patch: int) -> int | None:
    """Patches of one picture of the stated size; None when pictures come in any size."""
    sides = reader.value("image_size")
    is_pair = isinstance(sides, list) and [type(side) for side in sides] == [int, int]
    if is_pair and patch:
        return (sides[0] // patch) * (sides[1] // patch) or None
    side = reader.size("image_size")
    return (side // patch) ** 2 or None if side and patch else None


def read_vision(
    top: ConfigReader, section: ConfigReader, *, hidden: int, notes: list[str]
) -> dict[str, Any]:
    """The keys of a model's `vision` object.

    Raises:
        ConfigError: a size is missing or wrong.
    """
    model_type = section.text("model_type") or top.text("model_type")
    keys = read_tower(section, model_type)
    keys["patches_per_token"] = _merging(top, section, keys)
    projector = _projector(
        model_type, section, width=keys["hidden"], merged=keys["patches_per_token"], hidden=hidden
    )
    if projector:
        keys["projector_params"] = projector
    else:
        notes.append(
            _("vision_config: the projector into the language model is not counted; give "
              "vision.projector_params.")
        )  # fmt: skip
    notes.append(
        _("vision_config: the config does not say how many of the tokens come from pictures. Give "
          "vision.visual_token_fraction; until then the vision tower adds no FLOP. It counts as "
          "trained unless vision.frozen is true.")
    )  # fmt: skip
    return keys


def _merging(top: ConfigReader, section: ConfigReader, keys: dict[str, Any]) -> float:
    """Patches that become one token of the language model."""
    side = section.size("spatial_merge_size") or top.size("spatial_merge_size")
    if side:
        return float(side * side)
    ratio = section.value("pixel_shuffle_ratio") or top.value("downsample_ratio")
    if isinstance(ratio, float) and 0 < ratio <= 1:
        return round(1 / ratio**2, 6)
    factor = top.size("scale_factor")
    if factor:
        return float(factor * factor)
    tokens, patches = top.size("mm_tokens_per_image"), keys.get("patches_per_image")
    return patches / tokens if tokens and patches else 1.0


def _projector(
    model_type: str, section: ConfigReader, *, width: int, merged: float, hidden: int
) -> float:
    """Parameters of the projector, for the types whose shape is known; 0 otherwise."""
    wide = width * merged
    if model_type in _QWEN:
        return wide * wide + wide * hidden
    if model_type == "llama4_vision_model":
        inner = section.size("projector_input_dim") or 4096
        outer = section.size("projector_output_dim", "vision_output_dim") or 4096
        return wide * inner + inner * outer + outer * hidden
    if model_type == "clip_vision_model":
        return float(width * hidden + hidden * hidden)
    if model_type == "siglip_vision_model":
        return float(width * hidden)
    return 0.0
