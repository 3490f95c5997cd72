"""The memory screen in words: the verdict, and each thing that was assumed; no rule lives here."""

from django.utils.translation import gettext as _

from formulae.memory import MemoryAssumption, MemoryLevel, MemoryScreen


def verdict(screen: MemoryScreen) -> str:
    """What an accelerator needs of what it has, and what to do when that is too much."""
    need = _("Each accelerator needs %(need).1f GB of %(memory).1f GB (%(percent).0f %%).") % {
        "need": screen.required_gb_per_accelerator,
        "memory": screen.memory_gb,
        "percent": 100 * screen.share_fraction,
    }
    advice = {
        MemoryLevel.OK: "",
        MemoryLevel.AMBER: _("Buffers and fragmentation may not fit beside it."),
        MemoryLevel.RED: _(
            "It does not fit: take more accelerators, more memory, more parallelism or full "
            "recompute."
        ),
    }[screen.level]
    return f"{need} {advice}".strip()


def assumption(assumed: MemoryAssumption) -> str:
    """One field that was not stated, and what was taken for it."""
    sentence = {
        "layers": _("%(value)s layers, as a plain decoder of this size has"),
        "hidden": _("a width of %(value)s, as a plain decoder of this size has"),
        "vocab": _("a vocabulary of %(value)s"),
        "seq_len": _("sequences of %(value)s tokens"),
        "micro_batch": _("a micro-batch of %(value)s"),
        "shard_degree": _("weights and optimiser divided over %(value)s accelerators"),
        "tensor_parallel": _("activations divided over %(value)s accelerators"),
    }
    if assumed.field == "recompute":
        return {
            "full": _("full recompute of activations"),
        }.get(str(assumed.value), _("recompute of attention only"))
    return sentence[assumed.field] % {"value": assumed.value}
