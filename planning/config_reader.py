"""Typed reading of a Hugging Face config.json, which remembers what was read; no model in it."""

import re
from typing import Any, Final

from django.utils.translation import gettext as _

_LARGEST: Final = 1_000_000_000
# Keys that change no FLOP: initialisation, dropout, tokens, generation, rotary positions, losses.
_NEUTRAL: Final = re.compile(
    r"""
    ^_|dropout|_prob$|_p$|drop$|pdrop|_eps$|epsilon|initializer|init_|_init|_range$|_std$|std_
    |_id$|_ids$|_index$|token_|_token$|tokens_per_second|_act$|^activation|hidden_activation
    |rope|rotary|position|theta|partial_|alibi|embedding_multiplier|_multiplier$|_scale$|scaling
    |softcap|_scalar$|logit|dtype|^architectures$|auto_map|transformers_version|use_cache
    |quantization|label|problem_type|aux_loss|_coef$|loss|norm_topk|topk_method|topk_group|n_group
    |num_expert_group|scoring_func|seq_aux|ep_size|pretraining_tp|name_or_path|return_dict|output_
    |gradient_checkpointing|^model_type$|^tokenizer|_implementation$|chunk_size_feed_forward
    |^task_|^prefix$|beam|^length_|repetition|temperature|top_p|^top_k$|sep_token|^pad_|^bos|^eos
    |summary_|^reorder|^scale_|use_parallel_residual|^parallel_attn$|tensor_parallel|normalization_function|layernorm_embedding|layer_norm
    |norm_type|query_pre_attn|^fc_names|select_layer|feature_layer|select_strategy|vision_use_head
    |^image_token|^video_token|spatial_patch_size|projection_dim|^is_decoder|^max_length|^clip_qkv
    |swiglu_limit|_kwargs$|^is_encoder_decoder$|^n_ctx$|^bias$|^use_bias|attention_bias
    |mlp_bias|qkv_bias|no_bias|tie_|^qk_|use_qk_norm|floor_scale|attn_temperature|jitter
    |^relative_attention_|^initial_context_length$|_act_fn$|^attn_impl$|^fc_type$|^ffn_type$
    |^moe_normalize
    """,
    re.VERBOSE,
)


class ConfigError(ValueError):
    """A config.json from which no model can be read; `key` is the key that is wrong or missing."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key}: {why}")
        self.key = key
        self.why = why


class ConfigReader:
    """One section of a config.json, with the values that its own library takes by default."""

    def __init__(self, config: object, *, where: str = "") -> None:
        """Hold a section; `where` is put before its keys in messages."""
        if not isinstance(config, dict):
            raise ConfigError(where.rstrip(".") or "config.json", _("is not a JSON object"))
        self._config: dict[str, Any] = config
        self._where = where
        self._defaults: dict[str, Any] = {}
        self._read: set[str] = set()
        self._parts: dict[str, ConfigReader] = {}
        self.assumed: list[str] = []

    def assume(self, defaults: dict[str, Any]) -> None:
        """Values to take, and to tell, where a key is absent."""
        self._defaults = defaults

    def value(self, *keys: str) -> Any:
        """The value of the first of these keys that is set; None when none is."""
        self._read.update(keys)
        for key in keys:
            if self._config.get(key) is not None:
                return self._config[key]
        for key in keys:
            if key in self._defaults:
                self.assumed.append(f"{self._where}{key} = {self._defaults[key]}")
                return self._defaults[key]
        return None

    def size(self, *keys: str, low: int = 1) -> int | None:
        """A whole number from `low` up; None when no key is set.

        Raises:
            ConfigError: it is something else.
        """
        value = self.value(*keys)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= _LARGEST or value != int(value):
            raise ConfigError(
                self.name(*keys),
                _("is %(value)s; it must be a whole number from %(low)s up")
                % {"value": repr(value)[:40], "low": low},
            )
        return int(value)

    def need(self, *keys: str, high: int = _LARGEST) -> int:
        """A whole number that must be there.

        Raises:
            ConfigError: it is missing, too large, or something else.
        """
        value = self.size(*keys)
        if value is not None and value > high:
            raise ConfigError(
                self.name(*keys),
                _("is %(value)s; it must be at most %(high)s") % {"value": value, "high": high},
            )
        if value is None:
            raise ConfigError(
                self.name(*keys), _("is missing; the model cannot be read without it")
            )
        return value

    def number(self, key: str, default: float) -> float:
        """A positive number.

        Raises:
            ConfigError: it is something else.
        """
        value = self.value(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
            raise ConfigError(
                self.name(key),
                _("is %(value)s; it must be a number above 0") % {"value": repr(value)[:40]},
            )
        return float(value)

    def flag(self, *keys: str, default: bool) -> bool:
        """Yes or no."""
        value = self.value(*keys)
        return default if value is None else bool(value)

    def text(self, *keys: str) -> str:
        """A text; empty when no key is set."""
        value = self.value(*keys)
        return value if isinstance(value, str) else ""

    def items(self, *keys: str) -> list[Any]:
        """A list; empty when no key is set."""
        value = self.value(*keys)
        return value if isinstance(value, list) else []

    def section(self, *keys: str) -> "ConfigReader | None":
        """A nested object; None when no key is set or it is empty."""
        self._read.update(keys)
        for key in keys:
            if self._config.get(key):
                return ConfigReader(self._config[key], where=f"{self._where}{key}.")
        return None

    def part(self, key: str) -> "ConfigReader | None":
        """A nested object whose keys belong to this section's; None when it is not set."""
        found = self._parts.get(key) or self.section(key)
        if found is not None:
            self._parts[key] = found
        return found

    def name(self, *keys: str) -> str:
        """The full name of the key that is set, or of the first."""
        found = next((key for key in keys if self._config.get(key) is not None), keys[0])
        return f"{self._where}{found}"

    def has(self, pattern: str) -> str | None:
        """The first key that matches a pattern and is set; None when there is none."""
        return next(
            (key for key, value in self._config.items() if value and re.search(pattern, key)), None
        )

    def unread(self) -> tuple[str, ...]:
        """Keys that are set, were not read, and might change the FLOP."""
        own = tuple(
            f"{self._where}{key}"
            for key, value in self._config.items()
            if key not in self._read
            and value not in (None, False, "", [], {})
            and not _NEUTRAL.search(key)
        )
        return own + tuple(key for part in self._parts.values() for key in part.unread())
