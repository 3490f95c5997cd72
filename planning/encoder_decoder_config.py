"""The encoder-decoders of a config.json: T5 and BART with their kin; decoders are elsewhere."""

from typing import Any, Final

from django.utils.translation import gettext as _

from planning.config_reader import ConfigReader
from planning.model_families import T5_TYPES

_T5_DEFAULTS: Final = {
    "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "vocab_size": 32128,
}  # fmt: skip


def is_encoder_decoder(reader: ConfigReader, model_type: str) -> bool:
    """Whether a config describes two stacks."""
    if model_type in T5_TYPES:
        return True
    return reader.flag("is_encoder_decoder", default=False) and bool(
        reader.value("encoder_layers", "num_decoder_layers", "decoder_layers")
    )


def read_encoder_decoder(
    reader: ConfigReader, model_type: str, *, notes: list[str]
) -> dict[str, Any]:
    """The keys of the decoder, with those of the encoder in `encoder`.

    Raises:
        ConfigError: a size is missing or wrong.
    """
    model = _t5(reader) if model_type in T5_TYPES else _bart(reader)
    notes.append(
        _("Encoder-decoder: the config does not say how the tokens divide; half of them are taken "
          "to pass the encoder. Give source_fraction. seq_len is the length of a source.")
    )  # fmt: skip
    if model_type not in T5_TYPES:
        notes.append(
            _("model_type “%(type)s” is read as an encoder-decoder in the manner of BART: plain "
              "feed-forward layers, the head shared with the embedding.")
            % {"type": model_type or "?"}
        )  # fmt: skip
    return model | {"source_fraction": 0.5}


def _t5(reader: ConfigReader) -> dict[str, Any]:
    """T5: sizes shared by both stacks."""
    reader.assume(_T5_DEFAULTS)
    layers = reader.need("num_layers")
    is_gated = reader.text("feed_forward_proj").startswith("gated") or reader.flag(
        "is_gated_act", default=False
    )
    shape: dict[str, Any] = {
        "hidden": reader.need("d_model"),
        "heads": reader.need("num_heads"),
        "head_dim": reader.need("d_kv"),
        "ffn_hidden": reader.need("d_ff"),
        "gated_ffn": is_gated,
    }
    return {
        **shape,
        "layers": reader.size("num_decoder_layers") or layers,
        "vocab": reader.need("vocab_size"),
        "tied_embeddings": reader.flag("tie_word_embeddings", default=True),
        "norms_per_layer": 3,
        "encoder": shape | {"layers": layers},
    }


def _bart(reader: ConfigReader) -> dict[str, Any]:
    """BART and its kin: each stack has its own layers, heads and FFN."""
    hidden = reader.need("d_model", "hidden_size")
    positions = reader.size("max_position_embeddings", "max_target_positions")
    small: dict[str, Any] = {
        "hidden": hidden,
        "gated_ffn": False,
        "norm_bias": True,
        "biases": "all",
    }
    encoder = small | {
        "layers": reader.need("encoder_layers", "num_hidden_layers"),
        "heads": reader.need("encoder_attention_heads", "num_attention_heads"),
        "ffn_hidden": reader.need("encoder_ffn_dim", "intermediate_size"),
        "learned_positions": positions,
    }
    return small | {
        "layers": reader.need("decoder_layers", "num_decoder_layers"),
        "heads": reader.need("decoder_attention_heads", "num_attention_heads"),
        "ffn_hidden": reader.need("decoder_ffn_dim", "intermediate_size"),
        "vocab": reader.need("vocab_size"),
        "tied_embeddings": reader.flag("tie_word_embeddings", default=True),
        "learned_positions": positions,
        "norms_per_layer": 3,
        "encoder": {key: value for key, value in encoder.items() if value is not None},
    }
