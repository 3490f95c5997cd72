"""The parts of one stack: projections, FFN, experts, scores, head; no frozen parts, no towers."""

from dataclasses import replace

from formulae.architecture import Architecture, MatmulWeights, matmul_weights, mtp_layer
from formulae.flop_attention import attention_shape, score_parts
from formulae.flop_parts import FlopPart, Training, score_part, weight_part


def stack_parts(
    architecture: Architecture, *, seq_len: float | None, training: Training, prefix: str = ""
) -> tuple[FlopPart, ...]:
    """The parts of one stack: projections, FFN, experts, router, scores, output head, MTP.

    Cross attention is not among them: it takes two stacks.

    Args:
        architecture: the stack.
        seq_len: tokens of one sequence, > 0; None leaves the attention scores out.
        training: how it is trained, and its share of the tokens.
        prefix: put before each key.

    Returns:
        The parts that are not zero.

    Source: the formulae of matmul_weights, weight_part and score_parts.

    >>> tiny = Architecture(layers=2, hidden=8, heads=2, kv_heads=1, head_dim=4, ffn_hidden=32)
    >>> for part in stack_parts(tiny, seq_len=16, training=Training()):
    ...     print(part.key, part.flop_per_token)
    attention_projections 2304.0
    dense_ffn 9216.0
    attention_scores 1536.0
    """
    weights = matmul_weights(architecture)
    parts = [
        _projections(architecture, weights, training, prefix),
        *_ffn(architecture, weights, training, prefix),
        weight_part(
            f"{prefix}patch_projection",
            "P * H",
            f"{architecture.patch_values} * {architecture.hidden}",
            weights=weights.patches,
            training=training,
        ),
        weight_part(
            f"{prefix}output_head",
            "V * H",
            f"{architecture.vocab} * {architecture.hidden}",
            weights=weights.output_head,
            training=training,
        ),
    ]
    shape = attention_shape(architecture)
    if seq_len is not None and shape is not None:
        parts += score_parts(shape, seq_len=seq_len, training=training, prefix=prefix)
    if architecture.mtp_depth:
        parts += _prediction_depths(architecture, seq_len, training, prefix)
    return tuple(part for part in parts if part.forward_flop_per_token > 0)


def cross_attention_parts(
    decoder: Architecture,
    *,
    source_len: float | None,
    decoder_training: Training,
    encoder_training: Training,
) -> tuple[FlopPart, ...]:
    """What a decoder computes to attend to its encoder, in each of its layers.

    queries and outputs 6 * L * 2 H H_attn for each target token, keys and values
    6 * L * 2 H_enc H_kv for each source token, scores 12 * L * H_attn * S_source for each target

    Args:
        decoder: its ``cross_attention_hidden`` is the encoder's width.
        source_len: tokens of one source sequence, > 0; None leaves the scores out.
        decoder_training: passes and share of the target tokens.
        encoder_training: share of the source tokens.

    Returns:
        Two parts, or three with scores (a = 1: all of the source is seen).

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3.

    >>> tiny = Architecture(
    ...     layers=2,
    ...     hidden=8,
    ...     heads=2,
    ...     kv_heads=2,
    ...     head_dim=4,
    ...     ffn_hidden=32,
    ...     cross_attention_hidden=16,
    ... )
    >>> half = Training(share=0.5)
    >>> parts = cross_attention_parts(
    ...     tiny, source_len=10, decoder_training=half, encoder_training=half
    ... )
    >>> [part.flop_per_token for part in parts]
    [768.0, 1536.0, 960.0]
    """
    a, memory, width = (
        decoder,
        decoder.cross_attention_hidden or 0,
        decoder.heads * decoder.head_dim,
    )
    weights = matmul_weights(decoder)
    parts = [
        weight_part(
            "cross_attention_queries",
            "L * 2 * H * H_attn",
            f"{a.layers} * 2 * {a.hidden} * {width}",
            weights=weights.cross_query,
            training=decoder_training,
        ),
        weight_part(
            "cross_attention_memory",
            "L * 2 * H_enc * H_kv",
            f"{a.layers} * 2 * {memory} * {a.kv_width}",
            weights=weights.cross_memory,
            training=encoder_training,
        ),
    ]
    if source_len is not None:
        parts.append(
            score_part(
                "cross_attention_scores",
                "L * H_attn * S_source",
                f"{a.layers} * {width} * {source_len:.10g} (a = 1: all of the source is seen)",
                width_tokens=a.layers * width * source_len,
                training=decoder_training,
            )
        )
    return tuple(parts)


def _projections(
    a: Architecture, weights: MatmulWeights, training: Training, prefix: str
) -> FlopPart:
    """The projections of self-attention."""
    if a.kv_lora_rank is None:
        symbols = "L * (2 * H * H_attn + 2 * H * H_kv)"
        numbers = f"{a.layers} * (2 * {a.hidden} * {a.query_width} + 2 * {a.hidden} * {a.kv_width})"
    else:
        rope, value, h = a.qk_rope_head_dim, a.v_head_dim, a.heads
        query = f"{a.hidden} * {a.query_width}"
        query_symbols = "H * h * (d + r)"
        if a.q_lora_rank is not None:
            query = f"{a.q_lora_rank} * ({a.hidden} + {a.query_width})"
            query_symbols = "q * (H + h * (d + r))"
        symbols = f"L * ({query_symbols} + H * (c + r) + c * h * (d + v) + h * v * H)"
        numbers = (
            f"{a.layers} * ({query} + {a.hidden} * ({a.kv_lora_rank} + {rope})"
            f" + {a.kv_lora_rank} * {h} * ({a.head_dim} + {value}) + {h} * {value} * {a.hidden})"
        )
    return weight_part(
        f"{prefix}attention_projections",
        symbols,
        numbers,
        weights=weights.attention,
        training=training,
    )


def _ffn(
    a: Architecture, weights: MatmulWeights, training: Training, prefix: str
) -> tuple[FlopPart, ...]:
    """The feed-forward networks: dense layers, routed and shared experts, router."""
    one, sparse = f"{a.ffn_matrices} * {a.hidden}", a.sparse_layers
    dense = f"{a.dense_layers} * {one} * {a.ffn_hidden}"
    routed = f"{sparse} * {a.top_k} * {one} * {a.expert_width}"
    shared = f"{sparse} * {a.shared_experts} * {one} * {a.shared_width}"
    router = f"{sparse} * {a.hidden} * {a.experts}"
    rows = (
        ("dense_ffn", "L_dense * g * H * F", dense, weights.dense_ffn),
        ("routed_experts", "L_moe * k * g * H * F_e", routed, weights.routed_experts),
        ("shared_experts", "L_moe * s * g * H * F_s", shared, weights.shared_experts),
        ("router", "L_moe * H * E", router, weights.router),
    )
    return tuple(
        weight_part(f"{prefix}{key}", symbols, numbers, weights=count, training=training)
        for key, symbols, numbers, count in rows
    )


def _prediction_depths(
    a: Architecture, seq_len: float | None, training: Training, prefix: str
) -> tuple[FlopPart, ...]:
    """Multi-token prediction: for each depth a layer, a projection of 2 H to H, and the head."""
    layer = mtp_layer(a)
    body = matmul_weights(layer).total - layer.vocab * layer.hidden
    depth = a.mtp_depth
    parts = [
        weight_part(
            f"{prefix}multi_token_prediction",
            "depth * (N_layer + 2 * H * H + V * H)",
            f"{depth} * ({body} + 2 * {a.hidden} * {a.hidden} + {a.vocab} * {a.hidden})",
            weights=depth * (body + 2 * a.hidden * a.hidden + a.vocab * a.hidden),
            training=training,
        )
    ]
    shape = attention_shape(layer)
    if seq_len is not None and shape is not None:
        parts += score_parts(
            replace(shape, layers=depth),
            seq_len=seq_len,
            training=training,
            prefix=f"{prefix}multi_token_prediction_",
        )
    return tuple(parts)
