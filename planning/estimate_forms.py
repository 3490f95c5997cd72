"""The form of a kickoff question, to SPEC and back; what may be asked is planning.spec's."""

from copy import deepcopy
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from planning.estimate_bill_fields import bill_document, bill_fields, bill_initial
from planning.estimate_fields import (
    CountField,
    Slider,
    SpecPartField,
    choice,
    exact,
    merged,
    number,
    short_count,
    whole,
)
from planning.estimate_line_fields import OWN, line_fields, lines_document, lines_initial
from planning.spec import PRECISIONS

COUNTS, SHAPE, CONFIG = "counts", "shape", "config"
SHAPE_NUMBERS: Final = {
    "layers": _("Layers"),
    "hidden": _("Hidden width"),
    "heads": _("Attention heads"),
    "kv_heads": _("Key-value heads"),
    "head_dim": _("Width of a head"),
    "ffn_hidden": _("FFN width"),
    "vocab": _("Vocabulary"),
    "experts": _("Experts"),
    "top_k": _("Experts per token"),
    "shared_experts": _("Shared experts"),
    "expert_ffn_hidden": _("FFN width of an expert"),
    "moe_layers": _("Layers with experts"),
    "window": _("Attention window (tokens)"),
    "windowed_layers": _("Windowed layers"),
}
_YES_NO: Final = {"gated_ffn", "tied_embeddings"}
RANGED: Final = ("step_mfu", "goodput")
_NUMBERS: Final = ("pue", "power_w", "host_factor", "grid_g_per_kwh")
_PLAIN: Final = (
    "name", "tokens", "seq_len", "batch_sequences", "precision", "accelerator",
    "accelerator_count", "started_on", "peak", "sparse_reason", "peak_flop_per_s", "purchase",
    "region",
)  # fmt: skip
RELIABILITY: Final = (
    "failures_per_node_day", "restart_s", "checkpoint_write_s", "checkpoint_interval_s",
)  # fmt: skip
SLIDERS: Final = {
    "tokens": Slider(low=1e9, high=1e14, step=0.02, scale="log", shows="count"),
    "step_mfu": Slider(low=0.05, high=0.8, step=0.005),
    "goodput": Slider(low=0.3, high=1.0, step=0.005),
    "price": Slider(low=0.1, high=15.0, step=0.05),
    "pue": Slider(low=1.0, high=2.0, step=0.01),
}


class EstimateForm(forms.Form):
    """A kickoff question: what the reader leaves empty comes from catalogue, books and priors."""

    name = forms.CharField(label=_("Name of the run"), max_length=200, initial=_("Main run"))
    model_way = forms.ChoiceField(
        label=_("The model, as"),
        choices=[
            (COUNTS, _("Parameters")),
            (SHAPE, _("Full shape")),
            (CONFIG, _("config.json")),
        ],
        widget=forms.RadioSelect,
        required=False,
        initial=COUNTS,
    )
    params = CountField(label=_("Parameters"), required=False, help_text=_("All: 64B, 8.03B."))
    active_params = CountField(
        label=_("Active parameters"),
        required=False,
        help_text=_("Of one token. Empty if dense."),
    )
    gated_ffn = choice(
        _("Feed-forward"),
        [("", _("gated, three matrices")), ("false", _("plain, two matrices"))],
    )
    tied_embeddings = choice(
        _("Embeddings"),
        [("", _("input and output apart")), ("true", _("tied to the output"))],
    )
    recompute = choice(
        _("Recompute of activations"),
        [("none", _("none")), ("selective", _("attention only")), ("full", _("full"))],
    )
    model_extra = SpecPartField(
        label=_("Further keys of the model, as JSON"),
        help_text=_('Such as {"mtp_depth": 1}, an encoder, a vision tower, a teacher.'),
    )
    tokens = CountField(label=_("Training tokens"), help_text=_("10T, 500B."))
    seq_len = whole(_("Sequence length"), help_text=_("Tokens. Empty: no attention scores."))
    batch_sequences = number(_("Sequences in a batch"), help_text=_("Sequences, not tokens."))
    accelerator = forms.CharField(
        label=_("Accelerator"),
        max_length=80,
        help_text=_("From the catalogue, or as people say: H100, TPU v4, p5.48xlarge."),
        widget=forms.TextInput(attrs={"list": "accelerator-names", "autocomplete": "off"}),
    )
    accelerator_count = forms.IntegerField(
        label=_("How many at once"), min_value=1, max_value=10**9, required=False
    )
    precision = choice(
        _("Precision"),
        [("", _("the usual")), *((name, name.upper()) for name in PRECISIONS)],
    )
    started_on = forms.DateField(
        label=_("Starts on"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text=_("Prices, factors and priors are those of this day; empty: today."),
    )
    step_mfu = number(_("MFU"), help_text=_("Of the step, over the dense peak: 0.42 is 42 %."))
    step_mfu_low = number(_("MFU, at worst"))
    step_mfu_high = number(_("MFU, at best"))
    goodput = number(_("Goodput"), help_text=_("Productive share of billed time: 0.9 is 90 %."))
    goodput_low = number(_("Goodput, at worst"))
    goodput_high = number(_("Goodput, at best"))
    failures_per_node_day = number(
        _("Failures of a node per day"), help_text=_("Llama 3 saw 0.0038.")
    )
    restart_s = number(_("Restart after a failure (s)"))
    checkpoint_write_s = number(_("Blocked while writing a checkpoint (s)"))
    checkpoint_interval_s = number(
        _("Between checkpoints (s)"), help_text=_("Empty: the interval that loses least.")
    )
    peak = choice(
        _("MFU is over"), [("dense", _("the dense peak")), ("sparse", _("the 2:4 sparse peak"))]
    )
    sparse_reason = forms.CharField(
        label=_("Why a sparse peak"), required=False, max_length=500, help_text=_("Must be said.")
    )
    peak_flop_per_s = number(_("Own peak (FLOP/s)"), help_text=_("Instead of the catalogue's."))
    price = exact(
        _("Price per accelerator-hour"), help_text=_("Your contract rate; else the price books'.")
    )
    currency = forms.CharField(label=_("Currency"), max_length=3, min_length=3, required=False)
    purchase = choice(
        _("Bought as"),
        [
            ("on_demand", _("on demand")),
            ("spot", _("spot")),
            ("reserved_1y", _("reserved, 1 year")),
            ("reserved_3y", _("reserved, 3 years")),
            ("contract", _("contract")),
        ],
    )
    region = forms.CharField(
        label=_("Place"),
        max_length=80,
        required=False,
        help_text=_("aws:us-east-1, or a country: SWE."),
        widget=forms.TextInput(attrs={"list": "place-names", "autocomplete": "off"}),
    )
    pue = number(_("PUE"), help_text=_("Facility energy over IT energy."))
    power_w = number(_("Mean power of an accelerator (W)"))
    host_factor = number(_("Host factor"), help_text=_("IT energy over accelerator energy."))
    grid_g_per_kwh = number(_("Grid (gCO₂e/kWh)"), help_text=_("Empty: of the place."))
    lines = choice(
        _("Lines of the plan"),
        [
            ("", _("the chapter's lines: 1.74×")),
            ("olmo-2", _("as OLMo 2: 1.5×")),
            ("llama-1", _("as LLaMA 1: 3.4×")),
            ("olmo-3", _("as OLMo 3: 5.6×")),
            (OWN, _("my own lines, in the table")),
        ],
    )
    extra = SpecPartField(
        label=_("Further keys of the question, as JSON"),
        help_text=_('Whatever has no field here: {"price_ratio": …, "draws": 10000, "seed": 2}.'),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.update({key: whole(label) for key, label in SHAPE_NUMBERS.items()})
        self.fields.update(bill_fields())
        self.fields.update(line_fields())

    def clean_currency(self) -> str:
        """Capitals; the dollar when nothing is said."""
        return str(self.cleaned_data["currency"]).strip().upper() or "USD"

    def clean(self) -> dict[str, Any]:
        """A range needs its most likely value."""
        cleaned = super().clean() or {}
        for name in RANGED:
            ends = [cleaned.get(f"{name}_{end}") for end in ("low", "high")]
            if cleaned.get(name) is None and any(end is not None for end in ends):
                self.add_error(name, _("A range needs the most likely value too."))
        return cleaned

    def document(self) -> dict[str, Any]:
        """The cleaned fields as a SPEC document."""
        cleaned = self.cleaned_data
        currency = cleaned["currency"]
        document: dict[str, Any] = {
            name: value for name in _PLAIN if (value := cleaned.get(name)) not in (None, "")
        }
        if "started_on" in document:
            document["started_on"] = document["started_on"].isoformat()
        document["model"] = self._model()
        for name in (*RANGED, *_NUMBERS):
            if cleaned.get(name) is not None:
                document[name] = self._quantity(name)
        document |= self._reliability() | self._money(currency)
        document |= bill_document(cleaned, currency=currency)
        return merged(document, cleaned.get("extra") or {})

    def _reliability(self) -> dict[str, Any]:
        """What is said of failures."""
        cleaned = self.cleaned_data
        given = {name: cleaned[name] for name in RELIABILITY if cleaned.get(name) is not None}
        return {"reliability": given} if given else {}

    def _money(self, currency: str) -> dict[str, Any]:
        """The price and the lines of the plan."""
        cleaned = self.cleaned_data
        found: dict[str, Any] = {}
        if cleaned.get("price") is not None:
            amount = format(cleaned["price"], "f")
            found["price_per_accelerator_hour"] = {"amount": amount, "currency": currency}
        if cleaned["lines"] == OWN:
            found["lines"] = lines_document(cleaned, currency=currency)
        elif cleaned["lines"]:
            found["lines"] = cleaned["lines"]
        return found

    def _model(self) -> dict[str, Any]:
        """The model's keys: counts, and its shape unless only counts are shown."""
        cleaned = self.cleaned_data
        names = ["params", "active_params"]
        if cleaned.get("model_way") in (SHAPE, CONFIG):
            names += SHAPE_NUMBERS
        model = {name: cleaned[name] for name in names if cleaned.get(name) is not None}
        if cleaned.get("model_way") in (SHAPE, CONFIG):
            model |= {name: cleaned[name] == "true" for name in _YES_NO if cleaned.get(name)}
            model = merged(model, cleaned.get("model_extra") or {})
        if cleaned.get("recompute") not in (None, "", "none"):
            model["recompute"] = cleaned["recompute"]
        return model

    def _quantity(self, name: str) -> Any:
        """A number, or a range where an end was given."""
        mode = self.cleaned_data[name]
        low, high = (self.cleaned_data.get(f"{name}_{end}") for end in ("low", "high"))
        if low is None and high is None:
            return mode
        return {
            "low": mode if low is None else low,
            "mode": mode,
            "high": mode if high is None else high,
        }


def initial_from(spec: dict[str, Any]) -> dict[str, Any]:
    """A checked SPEC document as first values of the fields; nothing of it is lost.

    Args:
        spec: as `EstimateRequest.document` gives it.
    """
    rest = deepcopy(spec)
    initial: dict[str, Any] = {name: rest.pop(name) for name in _PLAIN if name in rest}
    initial["tokens"] = short_count(float(initial["tokens"]))
    initial |= model_initial(rest.pop("model", {}))
    price = rest.pop("price_per_accelerator_hour", None)
    initial["currency"] = currency = price["currency"] if price else "USD"
    initial["price"] = price["amount"] if price else None
    for name in (*RANGED, *_NUMBERS):
        value = rest.get(name)
        if isinstance(value, dict) and name in RANGED:
            ends = {f"{name}_{end}": value[end] for end in ("low", "high")}
            initial |= {name: value["mode"], **ends}
            del rest[name]
        elif name in rest and not isinstance(value, dict):
            initial[name] = rest.pop(name)
    if set(rest.get("reliability", {})) <= set(RELIABILITY):
        initial |= rest.pop("reliability", {})
    initial |= lines_initial(rest, currency=currency)
    initial |= bill_initial(rest, currency=currency)
    return initial | {"extra": rest}


def model_initial(model: dict[str, Any]) -> dict[str, Any]:
    """The model object of SPEC as first values of its fields."""
    rest = dict(model)
    initial: dict[str, Any] = {
        name: short_count(float(rest.pop(name)))
        for name in ("params", "active_params")
        if name in rest
    }
    initial["recompute"] = rest.pop("recompute", "none")
    shape = {name: rest.pop(name) for name in SHAPE_NUMBERS if name in rest}
    for name, usual in (("gated_ffn", True), ("tied_embeddings", False)):
        if name in rest:
            value = rest.pop(name)
            shape[name] = "" if value is usual else str(value).lower()
    initial["model_way"] = SHAPE if shape or rest else COUNTS
    return initial | shape | {"model_extra": rest}
