"""What a config.json leaves to its model type: FFN kind, ties, norms, defaults; a table only."""

from dataclasses import dataclass, field
from typing import Any, Final

from formulae.architecture import Biases


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The habits of one model type that its config.json does not write down.

    ``window_every`` n: each n-th layer sees the whole sequence, the others the window.
    ``defaults`` are the sizes that the library takes for absent keys.
    """

    is_gated: bool = True
    is_tied: bool = False
    causal: bool = True
    ffn_is_4_hidden: bool = False
    biases: Biases = "none"
    norm_bias: bool = False
    norms_per_layer: int = 2
    qk_norm: bool = False
    window_every: int | None = None
    windows_are_off: bool = False
    has_shared_expert: bool = False
    extra_positions: int | None = None
    defaults: dict[str, Any] = field(default_factory=dict)


_PLAIN: Final = Family(is_gated=False, biases="all", norm_bias=True)
_GPT2: Final = Family(
    is_gated=False, is_tied=True, ffn_is_4_hidden=True, biases="all", norm_bias=True,
    extra_positions=0,
)  # fmt: skip
_BERT: Final = Family(
    is_gated=False, is_tied=True, causal=False, biases="all", norm_bias=True, extra_positions=0
)
_LLAMA_DEFAULTS: Final = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
}
_GEMMA3: Final = Family(
    is_tied=True,
    norms_per_layer=4,
    qk_norm=True,
    window_every=6,
    defaults={
        "vocab_size": 262208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "sliding_window": 4096,
    },
)
_QWEN2: Final = Family(biases="qkv", windows_are_off=True)
_QWEN3: Final = Family(qk_norm=True, windows_are_off=True)
_LLAMA4: Final = Family(
    window_every=4, has_shared_expert=True, defaults={"attention_chunk_size": 8192}
)

FAMILIES: Final[dict[str, Family]] = {
    "llama": Family(defaults=_LLAMA_DEFAULTS),
    "mistral": Family(
        defaults=_LLAMA_DEFAULTS | {"intermediate_size": 14336, "num_key_value_heads": 8}
    ),
    "mistral3": Family(),
    "ministral": Family(),
    "mixtral": Family(),
    "phimoe": Family(biases="all", norm_bias=True),
    "phi3": Family(),
    "phi": Family(
        is_gated=False, biases="all", norm_bias=True, norms_per_layer=1, ffn_is_4_hidden=True
    ),
    "internlm2": Family(),
    "internlm3": Family(),
    "yi": Family(),
    "smollm3": Family(is_tied=True),
    "granite": Family(is_tied=True),
    "granitemoe": Family(is_tied=True),
    "stablelm": Family(norm_bias=True),
    "olmo": Family(norms_per_layer=0),
    "olmo2": Family(qk_norm=True),
    "olmo3": Family(qk_norm=True, window_every=4),
    "olmoe": Family(qk_norm=True),
    "cohere": Family(is_tied=True, norms_per_layer=1),
    "cohere2": Family(is_tied=True, norms_per_layer=1, window_every=4),
    "qwen": Family(biases="qkv"),
    "qwen2": _QWEN2,
    "qwen2_moe": _QWEN2,
    "qwen2_vl": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "qwen3_vl_moe_text": _QWEN3,
    "deepseek": Family(),
    "deepseek_v2": Family(),
    "deepseek_v3": Family(),
    "kimi_k2": Family(),
    "chatglm": Family(biases="qkv"),
    "glm4": Family(biases="qkv", norms_per_layer=4),
    "glm4_moe": Family(biases="qkv", qk_norm=True),
    "gemma": Family(is_tied=True),
    "gemma2": Family(is_tied=True, norms_per_layer=4, window_every=2),
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "llama4": _LLAMA4,
    "llama4_text": _LLAMA4,
    "gpt_oss": Family(biases="all", window_every=2),
    "dbrx": Family(),
    "grok-1": Family(is_tied=True, norms_per_layer=4),
    "gpt2": _GPT2,
    "gpt_bigcode": _GPT2,
    "gpt_neo": _GPT2,
    "gpt_neox": _PLAIN,
    "gptj": Family(
        is_gated=False, biases="none", norm_bias=True, norms_per_layer=1, ffn_is_4_hidden=True
    ),
    "codegen": Family(is_gated=False, norm_bias=True, norms_per_layer=1, ffn_is_4_hidden=True),
    "opt": Family(
        is_gated=False, is_tied=True, biases="all", norm_bias=True, extra_positions=2
    ),
    "bloom": Family(
        is_gated=False, is_tied=True, biases="all", norm_bias=True, ffn_is_4_hidden=True
    ),
    "falcon": Family(
        is_gated=False, is_tied=True, norm_bias=True, norms_per_layer=1, ffn_is_4_hidden=True
    ),
    "mpt": Family(is_gated=False, is_tied=True, ffn_is_4_hidden=True),
    "starcoder2": Family(is_gated=False, is_tied=True, biases="all", norm_bias=True),
    "nemotron": Family(is_gated=False, norm_bias=True),
    "persimmon": _PLAIN,
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "electra": _BERT,
    "camembert": _BERT,
    "modernbert": Family(is_tied=True, causal=False),
}  # fmt: skip

T5_TYPES: Final = frozenset({"t5", "mt5", "umt5", "longt5"})
VISION_TYPES: Final = frozenset(
    {"vit", "deit", "beit", "dinov2", "dinov3_vit", "clip_vision_model", "siglip_vision_model"}
)
# Types whose layers are not, or not only, attention and FFN, or which train two towers abreast.
REFUSED_TYPES: Final = frozenset(
    {
        "mamba", "mamba2", "falcon_mamba", "rwkv", "rwkv5", "jamba", "zamba", "zamba2", "bamba",
        "nemotron_h", "granitemoehybrid", "recurrent_gemma", "qwen3_next", "lfm2", "minimax",
        "kimi_linear", "falcon_h1", "clip", "siglip", "albert", "nemotron-nas",
        "switch_transformers", "nllb-moe",
    }
)  # fmt: skip
REFUSED_KEYS: Final = r"^(mamba_|ssm_|linear_num_|linear_attn|block_configs$|layers_block_type$)"

VISION_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "clip_vision_model": {
        "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "image_size": 224, "patch_size": 32,
    },
    "siglip_vision_model": {
        "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "image_size": 224, "patch_size": 16,
    },
    "vit": {
        "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "image_size": 224, "patch_size": 16,
    },
    "pixtral": {
        "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "image_size": 1024, "patch_size": 16,
    },
    "qwen2_vl": {
        "depth": 32, "embed_dim": 1280, "num_heads": 16, "mlp_ratio": 4, "patch_size": 14,
        "spatial_merge_size": 2, "temporal_patch_size": 2,
    },
    "qwen2_5_vl": {
        "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
        "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112,
    },
    "llama4_vision_model": {
        "num_hidden_layers": 34, "num_attention_heads": 16, "intermediate_size": 5632,
        "image_size": 448, "patch_size": 14, "pixel_shuffle_ratio": 0.5,
    },
}  # fmt: skip
GATED_TOWERS: Final = frozenset({"qwen2_5_vl", "pixtral"})
