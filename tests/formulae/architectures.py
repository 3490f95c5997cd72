"""Shapes of published models, plain builders for the tests of counts and FLOP terms."""

from typing import Any

from formulae.architecture import Architecture


def make_architecture(**fields: Any) -> Architecture:
    """A small dense decoder."""
    return Architecture(
        **{
            "layers": 4,
            "hidden": 64,
            "heads": 4,
            "kv_heads": 4,
            "head_dim": 16,
            "ffn_hidden": 256,
            "vocab": 1000,
        }
        | fields
    )


def make_llama(**fields: Any) -> Architecture:
    """Llama 3 8B."""
    return make_architecture(
        **{
            "layers": 32,
            "hidden": 4096,
            "heads": 32,
            "kv_heads": 8,
            "head_dim": 128,
            "ffn_hidden": 14336,
            "vocab": 128256,
        }
        | fields
    )


def make_llama_70b() -> Architecture:
    return make_llama(layers=80, hidden=8192, heads=64, ffn_hidden=28672)


def make_mixtral() -> Architecture:
    return make_llama(vocab=32000, experts=8, top_k=2)


def make_gpt2() -> Architecture:
    return make_architecture(
        layers=12,
        hidden=768,
        heads=12,
        kv_heads=12,
        head_dim=64,
        ffn_hidden=3072,
        vocab=50257,
        gated_ffn=False,
        tied_embeddings=True,
        biases="all",
        norm_bias=True,
        learned_positions=1024,
    )


def make_deepseek_v3(**fields: Any) -> Architecture:
    return make_architecture(
        **{
            "layers": 61,
            "hidden": 7168,
            "heads": 128,
            "kv_heads": 128,
            "head_dim": 128,
            "ffn_hidden": 18432,
            "vocab": 129280,
            "experts": 256,
            "top_k": 8,
            "shared_experts": 1,
            "expert_ffn_hidden": 2048,
            "moe_layers": 58,
            "mtp_depth": 1,
            "q_lora_rank": 1536,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
        }
        | fields
    )


def make_t5_small() -> tuple[Architecture, Architecture]:
    """T5 small: encoder and decoder."""
    shape = {
        "layers": 6,
        "hidden": 512,
        "heads": 8,
        "kv_heads": 8,
        "head_dim": 64,
        "ffn_hidden": 2048,
        "gated_ffn": False,
        "tied_embeddings": True,
    }
    encoder = make_architecture(**shape, vocab=0, causal=False)
    decoder = make_architecture(**shape, vocab=32128, cross_attention_hidden=512, norms_per_layer=3)
    return encoder, decoder
