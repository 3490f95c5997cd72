"""A config.json is read as its model is built, and what is not understood is said."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from formulae.flop_terms import model_flop_per_token, train_flop_terms
from formulae.model_description import ModelDescription
from planning.model_config import ConfigError, ConfigRead, model_from_config
from planning.model_spec import ModelSpec, ModelSpecError
from tests.planning.configs import (
    make_bart_config,
    make_deepseek_v3_config,
    make_gemma2_config,
    make_gemma3_config,
    make_gpt2_config,
    make_gpt_oss_config,
    make_llama4_config,
    make_llama_config,
    make_llava_config,
    make_mixtral_config,
    make_qwen2_config,
    make_qwen2_moe_config,
    make_qwen2_vl_config,
    make_qwen3_moe_config,
    make_t5_config,
)


def described(config: dict[str, Any], **keys: Any) -> ModelDescription:
    return ModelSpec.model_validate(model_from_config(config).model | keys).description()


def notes_of(config: dict[str, Any]) -> str:
    return "\n".join(model_from_config(config).notes)


# Counts of the published weights; where they differ in the last digits, by sinks, gates, buckets.
@pytest.mark.parametrize(
    ("config", "total", "tolerance"),
    [
        (make_llama_config(), 8_030_261_248, 0),
        (make_mixtral_config(), 46_702_792_704, 0),
        (make_gpt2_config(), 124_439_808, 0),
        (make_gemma2_config(), 9_241_705_984, 0),
        (make_qwen2_config(), 7_615_616_512, 0),
        (make_qwen3_moe_config(), 30_532_122_624, 0),
        (make_deepseek_v3_config(), 671_026_419_200, 1e-7),
        (make_gpt_oss_config(), 20_914_757_184, 1e-6),
        (make_qwen2_moe_config(), 14_315_784_192, 1e-5),
        (make_llama4_config(), 401_583_781_376, 1e-5),
        (make_t5_config(), 60_506_624, 1e-5),
        (make_bart_config(), 406_291_456, 2e-5),
        (make_gemma3_config(), 4_300_079_472, 1e-4),
        (make_qwen2_vl_config(), 8_291_375_616, 1e-5),
        (make_llava_config(), 7_063_427_072, 1e-4),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else None,
)
def test_a_config_counts_to_the_published_parameters(
    config: dict[str, Any], total: int, tolerance: float
) -> None:
    assert described(config).counted_params == pytest.approx(total, rel=tolerance or 1e-15)


@pytest.mark.parametrize(
    ("config", "active"),
    [
        (make_mixtral_config(), 12.88e9),
        (make_qwen2_moe_config(), 2.69e9),
        (make_qwen3_moe_config(), 3.35e9),
        (make_llama4_config(), 17.18e9),
        (make_deepseek_v3_config(), 37.55e9),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else None,
)
def test_a_mixture_of_experts_has_its_published_active_parameters(
    config: dict[str, Any], active: float
) -> None:
    assert described(config).active_params == pytest.approx(active, rel=1e-3)


# Windows


def test_mistral_has_its_window_in_every_layer() -> None:
    model = model_from_config(make_llama_config(model_type="mistral", sliding_window=4096)).model
    assert (model["window"], model["windowed_layers"]) == (4096, 32)


def test_a_window_that_is_switched_off_is_none() -> None:
    assert "window" not in model_from_config(make_qwen2_config()).model


def test_qwen_windows_begin_at_max_window_layers() -> None:
    config = make_qwen2_config() | {"use_sliding_window": True, "max_window_layers": 20}
    assert model_from_config(config).model["windowed_layers"] == 8


def test_gemma_2_has_a_window_in_every_other_layer() -> None:
    model = model_from_config(make_gemma2_config()).model
    assert (model["window"], model["windowed_layers"]) == (4096, 21)


def test_gemma_3_sees_all_in_every_sixth_layer() -> None:
    model = model_from_config(make_gemma3_config()).model
    assert (model["window"], model["windowed_layers"]) == (1024, 29)


def test_listed_layer_types_are_counted() -> None:
    model = model_from_config(make_gpt_oss_config()).model
    assert (model["window"], model["windowed_layers"]) == (128, 12)


def test_llama_4_attends_in_chunks_but_for_every_fourth_layer() -> None:
    model = model_from_config(make_llama4_config()).model
    assert (model["window"], model["windowed_layers"], model["chunked_window"]) == (8192, 36, True)


def test_a_kind_of_layer_that_is_not_known_is_told() -> None:
    config = make_llama_config(layer_types=["linear_attention"] * 24 + ["full_attention"] * 8)
    assert "24 layers of kind “linear_attention”" in notes_of(config)


# Experts


def test_llama_4_alternates_experts_with_wider_dense_layers() -> None:
    model = model_from_config(make_llama4_config()).model
    assert (model["moe_layers"], model["ffn_hidden"], model["expert_ffn_hidden"]) == (
        24,
        16384,
        8192,
    )
    assert model["shared_experts"] == 1


def test_deepseek_v3_has_three_dense_layers_and_one_prediction_depth() -> None:
    read = model_from_config(make_deepseek_v3_config())
    assert (read.model["moe_layers"], read.model["mtp_depth"]) == (58, 1)
    assert (read.model["head_dim"], read.model["kv_heads"]) == (128, 128)
    assert read.seq_len == 4096


def test_sparse_steps_and_listed_dense_layers_are_left_out() -> None:
    config = make_qwen3_moe_config() | {"decoder_sparse_step": 2, "mlp_only_layers": [1, 3]}
    assert model_from_config(config).model["moe_layers"] == 22


def test_experts_without_top_k_are_refused() -> None:
    with pytest.raises(ConfigError, match="num_experts_per_tok: is missing"):
        model_from_config(make_llama_config(num_local_experts=8))


# Shapes


def test_older_decoders_have_plain_feed_forward_layers_four_times_as_wide() -> None:
    model = model_from_config(make_gpt2_config()).model
    assert (model["ffn_hidden"], model["gated_ffn"]) == (3072, False)


@pytest.mark.parametrize(
    ("keys", "heads"),
    [
        ({"multi_query": True, "num_kv_heads": 71, "new_decoder_architecture": False}, 1),
        ({"multi_query": True, "num_kv_heads": 8, "new_decoder_architecture": True}, 8),
    ],
)
def test_falcon_shares_keys_by_its_generation(keys: dict[str, Any], heads: int) -> None:
    config = {
        "model_type": "falcon",
        "hidden_size": 4544,
        "num_hidden_layers": 32,
        "num_attention_heads": 71,
        "vocab_size": 65024,
    } | keys
    assert model_from_config(config).model["kv_heads"] == heads


def test_t5_has_two_stacks_and_says_how_it_divides_the_tokens() -> None:
    read = model_from_config(make_t5_config())
    assert read.model["encoder"]["layers"] == read.model["layers"] == 6
    assert read.model["source_fraction"] == 0.5
    assert "source_fraction" in " ".join(read.notes)


def test_a_gated_t5_is_read_as_gated() -> None:
    config = make_t5_config() | {"feed_forward_proj": "gated-gelu"}
    assert model_from_config(config).model["gated_ffn"] is True


def test_a_vision_tower_is_read_with_its_merging_and_asks_for_its_share() -> None:
    read = model_from_config(make_qwen2_vl_config())
    assert (read.model["vision"]["hidden"], read.model["vision"]["ffn_hidden"]) == (1280, 5120)
    assert read.model["vision"]["patches_per_token"] == 4
    assert "vision.visual_token_fraction" in " ".join(read.notes)


def test_pictures_cost_nothing_until_their_share_is_given_and_then_they_do() -> None:
    config = make_llava_config()
    alone = described(config)
    vision = model_from_config(config).model["vision"] | {"visual_token_fraction": 0.5}
    seen = described(config, vision=vision)
    costs = [model_flop_per_token(train_flop_terms(model, seq_len=4096)) for model in (alone, seen)]
    # Half the tokens bring a tower of 303 million, a projector of 21, and scores of 576 patches.
    expected = 0.5 * (6 * 324e6 + 12 * 24 * 1024 * 576)
    assert costs[1] - costs[0] == pytest.approx(expected, rel=0.002)


@pytest.mark.parametrize(
    ("config", "merging"),
    [(make_gemma3_config(), 16), (make_llama4_config(), 4), (make_llava_config(), 1)],
    ids=["gemma3", "llama4", "llava"],
)
def test_patches_are_merged_as_the_type_does(config: dict[str, Any], merging: int) -> None:
    assert model_from_config(config).model["vision"]["patches_per_token"] == merging


def test_a_vision_transformer_alone_counts_its_patches_as_tokens() -> None:
    config = {"model_type": "vit", "image_size": 224, "patch_size": 16, "hidden_size": 768}
    read = model_from_config(config)
    assert read.seq_len == 196
    assert described(config).counted_params == pytest.approx(86e6, rel=0.01)


# What is assumed


def test_values_of_the_library_are_told() -> None:
    assert "text_config.num_attention_heads = 8" in notes_of(make_gemma3_config())


def test_a_known_config_leaves_nothing_unsaid() -> None:
    for config in (make_llama_config(), make_deepseek_v3_config(), make_qwen2_vl_config()):
        assert "Not understood" not in notes_of(config)


def test_a_key_that_is_not_understood_is_named() -> None:
    config = make_llama_config(moe_latent_width=512)
    assert "Not understood, and left out of the FLOP: moe_latent_width." in notes_of(config)


def test_an_unknown_type_is_read_by_the_usual_keys_and_named() -> None:
    config = make_llama_config(model_type="brandnew")
    assert described(config).counted_params == pytest.approx(8.03e9, rel=0.07)
    assert "“brandnew” is not known here" in notes_of(config)
    assert "gated" in notes_of(config)


@pytest.mark.parametrize(
    ("keys", "seq_len"),
    [
        ({}, 8192),
        ({"max_position_embeddings": 131072}, None),
        (
            {
                "max_position_embeddings": 131072,
                "rope_scaling": {"original_max_position_embeddings": 8192},
            },
            8192,
        ),
    ],
)
def test_the_context_is_what_was_trained_with_and_not_what_can_be_asked(
    keys: dict[str, Any], seq_len: int | None
) -> None:
    read = model_from_config(make_llama_config(**keys))
    assert read.seq_len == seq_len
    assert any("seq_len" in note for note in read.notes)


# Refusals


@pytest.mark.parametrize(
    "key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"]
)
def test_a_missing_essential_is_refused_by_its_key(key: str) -> None:
    config = make_mixtral_config()
    del config[key]
    with pytest.raises(ConfigError, match=f"^{key}: is missing"):
        model_from_config(config)


@pytest.mark.parametrize("value", ["4096", True, -1, 0, 1.5, float("nan"), [1], 10**12])
def test_a_size_that_is_none_is_refused_by_its_key(value: object) -> None:
    with pytest.raises(ConfigError, match=r"^hidden_size: "):
        model_from_config(make_llama_config(hidden_size=value))


@pytest.mark.parametrize("config", [[], "llama", None, {"text_config": [1]}])
def test_what_is_no_object_is_refused(config: object) -> None:
    with pytest.raises(ConfigError, match="not a JSON object"):
        model_from_config(config)


@pytest.mark.parametrize(
    "keys", [{"model_type": "mamba"}, {"model_type": "new", "mamba_d_state": 128}]
)
def test_layers_that_are_not_attention_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Enter params"):
        model_from_config(make_llama_config(**keys))


def test_a_list_of_layers_of_another_length_is_refused() -> None:
    with pytest.raises(ConfigError, match="layer_types: lists 2 layers; the model has 32"):
        model_from_config(make_llama_config(layer_types=["full_attention"] * 2))


def test_a_config_error_is_a_value_error() -> None:
    assert issubclass(ConfigError, ValueError)
    assert isinstance(model_from_config(make_llama_config()), ConfigRead)


JUNK: list[Any] = [
    None, True, False, "x", "", -1, 0, 1, 2.5, 10**9, float("inf"), [], [1], ["x"], [[1], "x"],
    {}, {"x": 1}, [[["global"], 10**9]],
]  # fmt: skip


@given(
    config=st.sampled_from(
        [
            make_llama4_config()["text_config"],
            make_qwen2_vl_config(),
            make_deepseek_v3_config(),
            make_t5_config(),
            make_gemma3_config(),
            make_bart_config(),
        ]
    ),
    data=st.data(),
)
def test_no_junk_in_a_config_ends_in_anything_but_a_named_refusal(
    config: dict[str, Any], data: st.DataObject
) -> None:
    extra = ["moe_layers", "moe_layer_freq", "attention_types", "layer_types", "mlp_only_layers"]
    keys = data.draw(st.sets(st.sampled_from([*config, *extra]), min_size=1, max_size=3))
    junk = config | {key: data.draw(st.sampled_from(JUNK)) for key in sorted(keys)}
    with suppress(ConfigError, ValidationError, ModelSpecError):
        ModelSpec.model_validate(model_from_config(junk).model).description()


# The model object itself


def test_counts_alone_describe_a_model() -> None:
    model = ModelSpec(params=46.7e9, active_params=12.9e9).description()
    assert (model.total_params, model.active_params) == (46.7e9, 12.9e9)
    assert model.is_mixture_of_experts


def test_the_example_of_the_specification_is_a_full_architecture() -> None:
    keys: dict[str, Any] = {
        "params": 8.03e9, "active_params": None, "layers": 32, "hidden": 4096, "heads": 32,
        "kv_heads": 8, "head_dim": 128, "ffn_hidden": 14336, "gated_ffn": True, "vocab": 128256,
        "tied_embeddings": False, "experts": None, "top_k": None, "shared_experts": None,
    }  # fmt: skip
    model = ModelSpec.model_validate(keys).description()
    assert model.architecture is not None
    assert model.count_difference_fraction == pytest.approx(0, abs=1e-4)


def test_layers_and_width_without_the_rest_are_an_outline() -> None:
    model = ModelSpec(params=7e9, layers=32, hidden=4096, heads=32).description()
    assert model.architecture is None
    assert (model.layers, model.hidden) == (32, 4096)
    assert model.outline is not None
    assert model.outline.attention_width == 4096


def test_the_decoder_attends_to_the_width_of_its_encoder() -> None:
    shape = {"layers": 2, "hidden": 64, "heads": 4, "ffn_hidden": 256}
    spec = ModelSpec.model_validate(shape | {"vocab": 100, "encoder": shape | {"hidden": 128}})
    model = spec.description()
    assert model.architecture is not None
    assert model.architecture.cross_attention_hidden == 128


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({}, "params"),
        ({"layers": 32, "hidden": 4096}, "params"),
        ({"params": 1e9, "experts": 8}, "active_params"),
        ({"params": 1e9, "mtp_depth": 1}, "mtp_depth"),
        ({"params": 1e9, "kv_lora_rank": 512}, "kv_lora_rank"),
        ({"params": 1e9, "active_params": 2e9}, "active_params"),
        ({"params": 1e9, "vision": {"layers": 2}}, "vision.hidden"),
        ({"params": 1e9, "hidden": 100, "heads": 3}, "head_dim"),
        (
            {"layers": 2, "hidden": 64, "heads": 4, "ffn_hidden": 99, "vocab": 9, "kv_heads": 3},
            "kv_heads",
        ),
        (
            {"layers": 2, "hidden": 64, "heads": 4, "ffn_hidden": 99, "vocab": 9, "experts": 4},
            "top_k",
        ),
    ],
)
def test_a_model_that_cannot_be_described_names_its_key(keys: dict[str, Any], field: str) -> None:
    with pytest.raises(ModelSpecError) as refused:
        ModelSpec.model_validate(keys).description()
    assert refused.value.field == field


def test_a_key_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValidationError, match="hiden"):
        ModelSpec.model_validate({"hiden": 4096})


# Keys that stand elsewhere than usual


def test_the_experts_of_dbrx_stand_in_its_ffn_config() -> None:
    dbrx = {
        "model_type": "dbrx",
        "d_model": 6144,
        "n_layers": 40,
        "n_heads": 48,
        "vocab_size": 100_352,
        "max_seq_len": 32_768,
        "attn_config": {"kv_n_heads": 8, "clip_qkv": 8, "rope_theta": 500_000},
        "ffn_config": {"ffn_hidden_size": 10_752, "moe_num_experts": 16, "moe_top_k": 4},
    }
    model = described(dbrx)
    assert model.counted_params == pytest.approx(131_596_523_520, rel=1e-5)
    assert model.active_params == pytest.approx(36.5e9, rel=0.01)


def test_a_nested_section_that_is_not_understood_is_said() -> None:
    config = make_llama_config(model_type="new", ffn_config={"ffn_hidden_size": 8, "odd_width": 3})
    assert "ffn_config.odd_width" in notes_of(config)


def test_bloom_calls_its_width_n_embed() -> None:
    bloom = {
        "model_type": "bloom",
        "n_embed": 14_336,
        "n_layer": 70,
        "num_attention_heads": 112,
        "vocab_size": 250_880,
        "seq_length": 2048,
    }
    assert described(bloom).counted_params == pytest.approx(176_247_271_424, rel=1e-6)


def test_chatglm_is_gated_whatever_its_config_leaves_out() -> None:
    glm_4_9b = {
        "model_type": "chatglm",
        "hidden_size": 4096,
        "ffn_hidden_size": 13_696,
        "num_layers": 40,
        "num_attention_heads": 32,
        "multi_query_attention": True,
        "multi_query_group_num": 2,
        "kv_channels": 128,
        "padded_vocab_size": 151_552,
        "add_qkv_bias": True,
        "seq_length": 131_072,
    }
    assert described(glm_4_9b).counted_params == pytest.approx(9_399_951_360, rel=1e-5)
