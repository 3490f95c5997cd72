"""The shape of one transformer stack and the weights it holds; what they compute is elsewhere."""

from dataclasses import dataclass, replace
from typing import Final, Literal

from formulae.units import QuantityError

Biases = Literal["none", "qkv", "all"]

_POSITIVE: Final = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden")
_FROM_ZERO: Final = (
    "vocab", "shared_experts", "windowed_layers", "moe_layers", "mtp_depth", "norms_per_layer",
    "learned_positions", "patch_values",
)  # fmt: skip
_POSITIVE_OR_NONE: Final = (
    "experts", "top_k", "expert_ffn_hidden", "shared_ffn_hidden", "window", "q_lora_rank",
    "kv_lora_rank", "qk_rope_head_dim", "v_head_dim", "cross_attention_hidden",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One transformer stack; checked when built.

    ``vocab`` 0 is a stack without embedding and output head. A mixture of experts has ``experts``
    and ``top_k``; ``moe_layers`` None means all layers, the other layers keep a dense FFN of
    ``ffn_hidden``; ``expert_ffn_hidden`` None means ``ffn_hidden``, ``shared_ffn_hidden`` (of one
    shared expert) None means that of a routed one. ``windowed_layers`` None means all layers once
    ``window`` is set. Multi-head latent attention is on when ``kv_lora_rank`` is set: ``head_dim``
    is then the part of a query head without rotary position. ``cross_attention_hidden`` is the
    width of the memory that each layer also attends to. Biases and norms cost no FLOP worth
    counting; they are here so that parameters can be counted to the last one.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_hidden: int
    vocab: int = 0
    gated_ffn: bool = True
    tied_embeddings: bool = False
    causal: bool = True
    experts: int | None = None
    top_k: int | None = None
    shared_experts: int = 0
    expert_ffn_hidden: int | None = None
    shared_ffn_hidden: int | None = None
    moe_layers: int | None = None
    window: int | None = None
    windowed_layers: int | None = None
    chunked_window: bool = False
    mtp_depth: int = 0
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None
    cross_attention_hidden: int | None = None
    patch_values: int = 0
    learned_positions: int = 0
    norms_per_layer: int = 2
    norm_bias: bool = False
    qk_norm: bool = False
    biases: Biases = "none"

    def __post_init__(self) -> None:
        """Refuse a shape that cannot be built, naming the field."""
        for name, value in self._sizes():
            low = 0 if name in _FROM_ZERO else 1
            if value < low:
                raise QuantityError(f"{name} is {value!r}; it must be a whole number from {low} up")
        _check_shares(self)
        _check_experts(self)
        _check_latent(self)

    def _sizes(self) -> list[tuple[str, int]]:
        """Every size that is set, with its name."""
        named = [(name, getattr(self, name)) for name in (*_POSITIVE, *_FROM_ZERO)]
        named += [(name, getattr(self, name)) for name in _POSITIVE_OR_NONE]
        return [(name, value) for name, value in named if value is not None]

    @property
    def is_latent(self) -> bool:
        """Whether attention is multi-head latent attention (MLA)."""
        return self.kv_lora_rank is not None

    @property
    def query_width(self) -> int:
        """Width of all query heads, as they meet the keys."""
        return self.heads * (self.head_dim + (self.qk_rope_head_dim or 0))

    @property
    def value_width(self) -> int:
        """Width of all heads after the values are mixed."""
        return self.heads * (self.v_head_dim or self.head_dim)

    @property
    def kv_width(self) -> int:
        """Width of the key heads, which is that of the value heads."""
        return self.kv_heads * self.head_dim

    @property
    def score_width(self) -> float:
        """H_attn of the attention term: the mean of query and value width."""
        return (self.query_width + self.value_width) / 2

    @property
    def sparse_layers(self) -> int:
        """Layers whose FFN is a mixture of experts."""
        if self.experts is None:
            return 0
        return self.layers if self.moe_layers is None else self.moe_layers

    @property
    def dense_layers(self) -> int:
        """Layers with one dense FFN."""
        return self.layers - self.sparse_layers

    @property
    def layers_in_window(self) -> int:
        """Layers whose attention sees a window only."""
        if self.window is None:
            return 0
        return self.layers if self.windowed_layers is None else self.windowed_layers

    @property
    def expert_width(self) -> int:
        """FFN width of one routed expert."""
        return self.expert_ffn_hidden or self.ffn_hidden

    @property
    def shared_width(self) -> int:
        """FFN width of one shared expert."""
        return self.shared_ffn_hidden or self.expert_width

    @property
    def ffn_matrices(self) -> int:
        """Weight matrices of one FFN: 3 gated, 2 plain."""
        return 3 if self.gated_ffn else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulWeights:
    """Weights that enter a matrix product for one token, by part of the stack."""

    attention: int
    cross_query: int
    cross_memory: int
    dense_ffn: int
    routed_experts: int
    shared_experts: int
    router: int
    patches: int
    output_head: int

    @property
    def total(self) -> int:
        """All parts together."""
        body = self.attention + self.cross_query + self.cross_memory + self.dense_ffn
        sparse = self.routed_experts + self.shared_experts + self.router
        return body + sparse + self.patches + self.output_head


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamCounts:
    """Parameters of a stack: stored, met by one token, in its matrix products, in the embedding.

    ``active`` holds the embedding, as published counts do; ``matmul_active`` does not, but holds
    the output head, tied or not. Multi-token prediction is apart, as in published counts.
    """

    total: int
    active: int
    matmul_active: int
    embedding: int
    multi_token_prediction: int


def _check_shares(a: Architecture) -> None:
    """Parts are no larger than the whole."""
    for part, whole in (
        ("kv_heads", "heads"),
        ("top_k", "experts"),
        ("moe_layers", "layers"),
        ("windowed_layers", "layers"),
    ):
        value, limit = getattr(a, part), getattr(a, whole)
        if value is not None and limit is not None and value > limit:
            raise QuantityError(f"{part} is {value}; it must be at most {whole}, {limit}")
    if a.heads % a.kv_heads:
        raise QuantityError(
            f"kv_heads is {a.kv_heads}; heads, {a.heads}, must be a whole multiple of it"
        )


def _check_experts(a: Architecture) -> None:
    """A mixture of experts knows how many and how many of them a token meets."""
    if (a.experts is None) != (a.top_k is None):
        missing, given = ("experts", "top_k") if a.experts is None else ("top_k", "experts")
        raise QuantityError(f"{missing} is missing; a mixture of experts gives it with {given}")
    if a.experts is None:
        for name in ("moe_layers", "shared_experts", "expert_ffn_hidden", "shared_ffn_hidden"):
            if getattr(a, name):
                raise QuantityError(f"experts is missing; it must be given with {name}")


def _check_latent(a: Architecture) -> None:
    """Latent attention has all its sizes, and its window has a layer."""
    names = ("kv_lora_rank", "qk_rope_head_dim", "v_head_dim")
    missing = [name for name in names if getattr(a, name) is None]
    if (a.is_latent or a.q_lora_rank is not None) and missing:
        raise QuantityError(f"{missing[0]} is missing; latent attention needs {', '.join(names)}")
    if a.window is None and a.windowed_layers:
        raise QuantityError("window is missing; it must be given with windowed_layers")


def matmul_weights(architecture: Architecture, *, experts_met: int | None = None) -> MatmulWeights:
    """Weights of every matrix product that one token meets, by part.

    attention = L (2 H H_attn + 2 H H_kv), FFN = L g H F with g = 3 gated or 2 plain,
    experts = L_moe top_k g H F_e, router = L_moe H E, output head = V H once, tied or not.
    Latent attention: L (H q + q h (d + r) + H (c + r) + c h (d + v) + h v H), where H h (d + r)
    stands for the first two when queries are not compressed. The lookup of the input embedding is
    no matrix product.

    Args:
        architecture: one stack.
        experts_met: routed experts per token, count; top_k when left out, all of them to count
            what is stored.

    Returns:
        Weights by part, counts.

    Source: Hoffmann et al. 2022, arXiv:2203.15556, appendix F; grouped queries: Ainslie et al.
    2023, arXiv:2305.13245; latent attention: DeepSeek-V2, arXiv:2405.04434, section 2.1; router:
    Fedus et al. 2022, arXiv:2101.03961.

    >>> llama_3_8b = Architecture(
    ...     layers=32,
    ...     hidden=4096,
    ...     heads=32,
    ...     kv_heads=8,
    ...     head_dim=128,
    ...     ffn_hidden=14336,
    ...     vocab=128256,
    ... )
    >>> weights = matmul_weights(llama_3_8b)
    >>> weights.output_head, weights.total
    (525336576, 7504658432)
    """
    a = architecture
    met = experts_met if experts_met is not None else (a.top_k or 0)
    expert = a.ffn_matrices * a.hidden * a.expert_width
    shared = a.shared_experts * a.ffn_matrices * a.hidden * a.shared_width
    memory = a.cross_attention_hidden
    return MatmulWeights(
        attention=a.layers * _attention_weights(a),
        cross_query=a.layers * 2 * a.hidden * a.heads * a.head_dim if memory else 0,
        cross_memory=a.layers * 2 * memory * a.kv_width if memory else 0,
        dense_ffn=a.dense_layers * a.ffn_matrices * a.hidden * a.ffn_hidden,
        routed_experts=a.sparse_layers * met * expert,
        shared_experts=a.sparse_layers * shared,
        router=a.sparse_layers * a.hidden * (a.experts or 0),
        patches=a.patch_values * a.hidden,
        output_head=a.vocab * a.hidden,
    )


def mtp_layer(architecture: Architecture) -> Architecture:
    """The layer that one depth of multi-token prediction adds, with its pass of the shared head.

    It is one layer like the last of the stack (with experts where there are any), full attention.

    Args:
        architecture: the stack that it is added to.

    Returns:
        A stack of one layer.

    Source: DeepSeek-V3, arXiv:2412.19437, section 2.2.

    >>> dense = Architecture(
    ...     layers=2, hidden=64, heads=4, kv_heads=4, head_dim=16, ffn_hidden=256, mtp_depth=1
    ... )
    >>> mtp_layer(dense).layers, mtp_layer(dense).mtp_depth
    (1, 0)
    """
    return replace(
        architecture,
        layers=1,
        moe_layers=None if architecture.experts is None else min(1, architecture.sparse_layers),
        mtp_depth=0,
        window=None,
        windowed_layers=None,
        patch_values=0,
    )


def count_params(architecture: Architecture) -> ParamCounts:
    """Parameters of one stack, counted from its shape.

    total = embedding (unless tied) + matrix weights with every expert + norms, biases, positions;
    active = total - the routed experts that a token does not meet

    Args:
        architecture: one stack.

    Returns:
        Counts; exact for the common families (biases of embedding or head norms, relative position
        buckets and attention sinks are left out: below 0.01 %).

    Source: definition; golden cases Llama 3 8B (arXiv:2407.21783), Mixtral 8x7B
    (arXiv:2401.04088), DeepSeek-V3 (arXiv:2412.19437), GPT-2 small.

    >>> llama_3_8b = Architecture(
    ...     layers=32,
    ...     hidden=4096,
    ...     heads=32,
    ...     kv_heads=8,
    ...     head_dim=128,
    ...     ffn_hidden=14336,
    ...     vocab=128256,
    ... )
    >>> count_params(llama_3_8b).total
    8030261248
    """
    a = architecture
    met = matmul_weights(a)
    stored = matmul_weights(a, experts_met=a.experts)
    embedding = a.vocab * a.hidden
    small = a.layers * _norms(a) + _norm(a, a.hidden) + _biases(a) + a.learned_positions * a.hidden
    total = stored.total + small + (0 if a.tied_embeddings else embedding)
    return ParamCounts(
        total=total,
        active=total - stored.routed_experts + met.routed_experts,
        matmul_active=met.total,
        embedding=embedding,
        multi_token_prediction=_mtp_params(a),
    )


def _attention_weights(a: Architecture) -> int:
    """Projections of self-attention in one layer."""
    if a.kv_lora_rank is None:
        return 2 * a.hidden * a.query_width + 2 * a.hidden * a.kv_width
    if a.q_lora_rank is None:
        query = a.hidden * a.query_width
    else:
        query = a.q_lora_rank * (a.hidden + a.query_width)
    rope = a.qk_rope_head_dim or 0
    down = a.hidden * (a.kv_lora_rank + rope)
    up = a.kv_lora_rank * (a.heads * a.head_dim + a.value_width)
    return query + down + up + a.value_width * a.hidden


def _norm(a: Architecture, width: int) -> int:
    """Parameters of one norm."""
    return width * (2 if a.norm_bias else 1)


def _norms(a: Architecture) -> int:
    """Parameters of the norms of one layer."""
    latent = (a.q_lora_rank or 0) + (a.kv_lora_rank or 0)
    return a.norms_per_layer * _norm(a, a.hidden) + (2 * a.head_dim if a.qk_norm else 0) + latent


def _biases(a: Architecture) -> int:
    """Biases of all layers, every expert's among them."""
    if a.biases == "none":
        return 0
    qkv = a.query_width + 2 * a.kv_width
    if a.biases == "qkv":
        return a.layers * qkv
    dense = (a.ffn_matrices - 1) * a.ffn_hidden + a.hidden
    expert = (a.ffn_matrices - 1) * a.expert_width + a.hidden
    ffn = a.dense_layers * dense + a.sparse_layers * (a.experts or 0) * (expert + 1)
    cross = qkv + a.hidden if a.cross_attention_hidden else 0
    return a.layers * (qkv + a.hidden + cross) + ffn


def _mtp_params(a: Architecture) -> int:
    """Parameters that multi-token prediction adds beside the shared embedding and head."""
    if not a.mtp_depth:
        return 0
    layer = count_params(replace(mtp_layer(a), vocab=0, learned_positions=0))
    return a.mtp_depth * (layer.total + 2 * a.hidden * a.hidden + 2 * _norm(a, a.hidden))
