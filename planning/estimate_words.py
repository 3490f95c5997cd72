"""What an answer's terms, priors and findings are called on a page; no numbers."""

from typing import Final

from django.utils.translation import gettext as _

from carbon.words import level_name

TONES: Final = {"red": "bad", "amber": "warn", "info": "info"}
_PREFIXES: Final = ("encoder_", "multi_token_prediction_", "vision_")


def severity_name(severity: str) -> str:
    """How much a finding weighs, in a word."""
    return {"red": _("stop"), "amber": _("look"), "info": _("note")}.get(severity, severity)


def term_name(key: str) -> str:
    """A term of the FLOP of a token; a key without a word is shown as it is written."""
    words = {
        "parameters": _("Parameters, forward and backward"),
        "attention_projections": _("Attention projections"),
        "attention_scores": _("Attention scores"),
        "windowed_attention_scores": _("Attention scores within the window"),
        "cross_attention_projections": _("Cross-attention projections"),
        "cross_attention_scores": _("Cross-attention scores"),
        "dense_ffn": _("Feed-forward layers"),
        "routed_experts": _("Routed experts"),
        "shared_experts": _("Shared experts"),
        "router": _("Router"),
        "output_head": _("Output head"),
        "patch_projection": _("Patch projection"),
        "multi_token_prediction": _("Multi-token prediction"),
        "vision_encoder": _("Vision encoder"),
        "adapters": _("Adapters"),
        "forward_only": _("Networks that only run forward"),
        "teacher": _("Teacher"),
        "recompute": _("Recompute of activations"),
    }
    if key in words:
        return words[key]
    for prefix in _PREFIXES:
        rest = key.removeprefix(prefix)
        if rest != key and rest in words:
            return f"{term_name_of_part(prefix)}: {words[rest]}"
    return key.replace("_", " ")


def term_name_of_part(prefix: str) -> str:
    """The part of a model that a term belongs to."""
    return {
        "encoder_": _("Encoder"),
        "multi_token_prediction_": _("Multi-token prediction"),
        "vision_": _("Vision"),
    }[prefix]


def basis_name(basis: str) -> str:
    """How near a prior's evidence is: the level of a factor in words, the rest as it is."""
    level, comma, rest = basis.partition(", ")
    return f"{level_name(level)}{comma}{rest}"


def unit_name(unit: str) -> str:
    """A unit of the price books."""
    return {
        "tb_month": _("TB-months"),
        "1000_requests": _("× 1,000 requests"),
        "gb": _("GB"),
        "month": _("months"),
        "kwh": _("kWh"),
        "accelerator_h": _("accelerator-hours"),
    }.get(unit, unit)


def preset_name(key: str) -> str:
    """A preset in a few words; its own name is that of its run."""
    return {
        "chapter-as-printed": _("Chapter, as printed"),
        "chapter-10b-moe": _("Chapter, corrected (BF16)"),
        "chapter-10b-moe-fp8": _("Chapter, corrected (FP8)"),
        "dense-8b": _("8B dense"),
        "dense-70b": _("70B dense"),
        "video-pipeline": _("Video pipeline"),
    }.get(key, key)
