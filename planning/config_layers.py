"""Which layers of a config.json have experts and which see a window; sizes are read elsewhere."""

from typing import Any

from django.utils.translation import gettext as _

from planning.config_reader import ConfigError, ConfigReader
from planning.model_families import Family

_EXPERTS = (
    "num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts",
    "num_routed_experts",
)  # fmt: skip
_WINDOWED = frozenset({"sliding_attention", "local", "local_attention"})
_CHUNKED = frozenset({"chunked_attention"})
_FULL = frozenset({"full_attention", "global", "attention"})


def read_experts(reader: ConfigReader, family: Family, *, layers: int) -> dict[str, Any]:
    """The keys of a mixture of experts; empty for a dense model.

    Raises:
        ConfigError: experts without the number that a token meets.
    """
    nested = reader.part("ffn_config")
    where = nested if nested is not None and nested.size(*_EXPERTS, low=0) else reader
    experts = where.size(*_EXPERTS, low=0)
    if not experts:
        return {}
    keys: dict[str, Any] = {
        "experts": experts,
        "top_k": where.need(
            "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k",
            "num_selected_experts", "moe_topk", "moe_k",
        ),
        "moe_layers": _layers_with_experts(reader, layers),
    }  # fmt: skip
    width = where.size("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size")
    if width is not None:
        keys["expert_ffn_hidden"] = width
    return keys | _shared(reader, family)


def _shared(reader: ConfigReader, family: Family) -> dict[str, Any]:
    """The experts that every token meets."""
    shared = reader.size(
        "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert",
        low=0,
    )  # fmt: skip
    width = reader.size("shared_expert_intermediate_size", "shared_intermediate_size", low=0)
    if width:
        return {"shared_experts": 1, "shared_ffn_hidden": width}
    if shared is None and family.has_shared_expert:
        shared = 1
    return {"shared_experts": shared} if shared else {}


def _layers_with_experts(reader: ConfigReader, layers: int) -> int:
    """How many layers have experts, by whichever keys say so."""
    listed = reader.items("moe_layers")
    frequency = reader.value("moe_layer_freq")
    first = reader.size("first_k_dense_replace", "moe_layer_start_index", low=0) or 0
    every = reader.size("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval")
    dense = {index for index in reader.items("mlp_only_layers") if isinstance(index, int)}
    if listed:
        return len(listed)
    if isinstance(frequency, list):
        return sum(1 for item in frequency if item)
    period = reader.size("moe_layer_freq") or 1
    return sum(
        1
        for layer in range(layers)
        if layer >= first
        and layer % period == 0
        and (layer + 1) % (every or 1) == 0
        and layer not in dense
    )


def read_window(
    reader: ConfigReader, family: Family, *, layers: int, notes: list[str]
) -> dict[str, Any]:
    """The keys of windowed layers; empty where every layer sees the whole sequence.

    Raises:
        ConfigError: a list of layers that is not as long as the model.
    """
    window = reader.size(
        "sliding_window", "sliding_window_size", "window_size", "attention_window_size",
        "local_attention",
    )  # fmt: skip
    chunk = reader.size("attention_chunk_size")
    is_on = reader.flag("use_sliding_window", default=not family.windows_are_off)
    first = reader.size("max_window_layers", low=0)
    every = reader.size(
        "sliding_window_pattern", "_sliding_window_pattern", "no_rope_layer_interval"
    )
    full_from_first = reader.size("global_attn_every_n_layers")
    every = every or family.window_every
    kinds = _kinds(reader, layers)
    if kinds:
        return _listed_windows(kinds, window=window, chunk=chunk, notes=notes)
    if chunk is not None:
        return _chunked(reader, chunk, layers=layers, every=every)
    if window is None or not is_on:
        return {}
    if family.windows_are_off:
        return {"window": window, "windowed_layers": max(0, layers - (first or 0))}
    full = -(-layers // full_from_first) if full_from_first else layers // every if every else 0
    return {"window": window, "windowed_layers": layers - full}


def _kinds(reader: ConfigReader, layers: int) -> list[str]:
    """The kind of attention of each layer, when the config lists it."""
    for key in ("layer_types", "attention_layers"):
        kinds = reader.items(key)
        if kinds:
            if len(kinds) != layers:
                raise ConfigError(
                    reader.name(key),
                    _("lists %(listed)s layers; the model has %(layers)s")
                    % {"listed": len(kinds), "layers": layers},
                )
            return [str(kind) for kind in kinds]
    kinds = []
    for group in reader.items("attention_types"):
        match group:
            case [list(pattern), int(times)] if 0 < times <= layers:
                kinds += [str(kind) for kind in pattern] * times
    return kinds


def _listed_windows(
    kinds: list[str], *, window: int | None, chunk: int | None, notes: list[str]
) -> dict[str, Any]:
    """The windowed layers of a list of kinds."""
    for kind in sorted(set(kinds) - _WINDOWED - _CHUNKED - _FULL):
        notes.append(
            _("layer_types: %(count)s layers of kind “%(kind)s” are counted as full attention.")
            % {"count": kinds.count(kind), "kind": kind}
        )
    sliding = sum(1 for kind in kinds if kind in _WINDOWED)
    chunked = sum(1 for kind in kinds if kind in _CHUNKED)
    if chunked and chunk is not None:
        return {"window": chunk, "windowed_layers": chunked, "chunked_window": True}
    if not sliding:
        return {}
    if window is None:
        raise ConfigError("sliding_window", _("is missing; layer_types lists windowed layers"))
    return {"window": window, "windowed_layers": sliding}


def _chunked(reader: ConfigReader, chunk: int, *, layers: int, every: int | None) -> dict[str, Any]:
    """Attention in fixed chunks, but for the layers without rotary positions."""
    rotary = reader.items("no_rope_layers")
    windowed = sum(1 for item in rotary if item) if rotary else layers - layers // (every or 4)
    return {"window": chunk, "windowed_layers": windowed, "chunked_window": True}
