"""Attention scores: mean context under causality and windows, and the FLOP term; no weights."""

from dataclasses import dataclass

from formulae.architecture import Architecture
from formulae.flop_parts import FlopPart, Training, score_part
from formulae.model_description import StackOutline
from formulae.units import require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """What attention scores depend on; width is H_attn, its symbol says how it is made up."""

    layers: int
    width: float
    symbol: str = "H_attn"
    causal: bool = True
    window: int | None = None
    layers_in_window: int = 0
    chunked: bool = False


def mean_context_tokens(
    seq_len: float, *, causal: bool = True, window: int | None = None, chunked: bool = False
) -> float:
    """Tokens that one token attends to, averaged over the sequence.

    causal: w - w^2 / (2 S) with w = min(window, S), which is S / 2 without a window;
    causal in chunks: w / 2; not causal: w

    The first w tokens of a sequence see w / 2 of the earlier ones on average, the other S - w see
    w: (w * w / 2 + (S - w) * w) / S. Chunks of w tokens see nothing of earlier chunks.

    Args:
        seq_len: S, tokens of one sequence, > 0.
        causal: whether a token sees earlier tokens only (a = 0.5) or all (a = 1).
        window: largest distance seen, tokens, >= 1; None is the whole sequence.
        chunked: whether the window is a fixed chunk instead of sliding along.

    Returns:
        Tokens, above 0 to S.

    Source: Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, appendix B, counts S (a = 1); causal
    halving as in Dao 2023, arXiv:2307.08691, section 4.1; windows: Jiang et al. 2023,
    arXiv:2310.06825, section 2; exact mean derived above.

    >>> mean_context_tokens(8192)
    4096.0
    >>> mean_context_tokens(8192, window=4096)
    3072.0
    >>> mean_context_tokens(8192, causal=False)
    8192.0
    """
    require_positive("seq_len (tokens)", seq_len)
    seen = seq_len if window is None else min(require_positive("window (tokens)", window), seq_len)
    if not causal:
        return float(seen)
    return seen / 2 if chunked else seen - seen * seen / (2 * seq_len)


def attention_shape(stack: Architecture | StackOutline) -> AttentionShape | None:
    """What the attention scores of a stack depend on.

    H_attn = heads * head_dim; latent attention: h (d + r + v) / 2; where only the width of the
    model is known: H_attn = hidden

    Args:
        stack: a full architecture, or what is known of one.

    Returns:
        The shape; None where layers or width are not known.

    Source: DeepSeek-V2, arXiv:2405.04434, section 2.1 (widths of latent attention).

    >>> attention_shape(StackOutline(layers=32, hidden=4096)).symbol
    'H'
    """
    if isinstance(stack, StackOutline):
        if stack.layers is None or stack.score_width is None:
            return None
        layers, width = stack.layers, float(stack.score_width)
        symbol = "H" if stack.attention_width is None else "H_attn"
        chunked = stack.chunked_window
    else:
        layers, width, chunked = stack.layers, stack.score_width, stack.chunked_window
        symbol = "h * (d + r + v) / 2" if stack.is_latent else "H_attn"
    return AttentionShape(
        layers=layers,
        width=width,
        symbol=symbol,
        causal=stack.causal,
        window=stack.window,
        layers_in_window=stack.layers_in_window,
        chunked=chunked,
    )


def score_parts(
    shape: AttentionShape, *, seq_len: float, training: Training, prefix: str = ""
) -> tuple[FlopPart, ...]:
    """Training FLOP of attention scores, of the layers that see all and of those with a window.

    12 * a * L * H_attn * S with a = 0.5 (causal) or 1; with a window 12 * L_w * H_attn * context

    Args:
        shape: layers, width, causality, window.
        seq_len: S, tokens of one sequence, > 0.
        training: how the stack is trained, and its share of the tokens.
        prefix: put before each key.

    Returns:
        One or two parts.

    Source: as mean_context_tokens and score_part.

    >>> llama_3_8b = AttentionShape(layers=32, width=4096)
    >>> [part] = score_parts(llama_3_8b, seq_len=8192, training=Training())
    >>> part.flop_per_token, part.formula[:22]
    (6442450944.0, '12 * a * L * H_attn * ')
    """
    windowed = shape.layers_in_window
    parts = []
    if windowed < shape.layers:
        parts.append(_full_part(shape, seq_len=seq_len, training=training, prefix=prefix))
    if windowed:
        parts.append(_window_part(shape, seq_len=seq_len, training=training, prefix=prefix))
    return tuple(parts)


def _full_part(
    shape: AttentionShape, *, seq_len: float, training: Training, prefix: str
) -> FlopPart:
    """The scores of the layers that see the whole sequence."""
    layers = shape.layers - shape.layers_in_window
    a = mean_context_tokens(seq_len, causal=shape.causal) / seq_len
    note = "causal" if shape.causal else "not causal"
    return score_part(
        f"{prefix}attention_scores",
        f"a * L * {shape.symbol} * S",
        f"{a:g} * {layers} * {shape.width:.10g} * {seq_len:.10g} (a = {a:g}: {note})",
        width_tokens=layers * shape.width * a * seq_len,
        training=training,
    )


def _window_part(
    shape: AttentionShape, *, seq_len: float, training: Training, prefix: str
) -> FlopPart:
    """The scores of the layers that see a window."""
    window = min(shape.window or seq_len, seq_len)
    context = mean_context_tokens(
        seq_len, causal=shape.causal, window=shape.window, chunked=shape.chunked
    )
    symbols, numbers, note = "w", f"{window:.10g}", "not causal"
    if shape.causal:
        symbols, numbers, note = "w / 2", f"{window:.10g} / 2", "causal, in chunks"
    if shape.causal and not shape.chunked:
        symbols = "(w - w^2 / (2 * S))"
        numbers, note = f"({window:.10g} - {window:.10g}^2 / (2 * {seq_len:.10g}))", "causal"
    return score_part(
        f"{prefix}windowed_attention_scores",
        f"L_w * {shape.symbol} * {symbols}",
        f"{shape.layers_in_window} * {shape.width:.10g} * {numbers} (w = min(window, S), {note})",
        width_tokens=shape.layers_in_window * shape.width * context,
        training=training,
    )
