"""Counts and FLOP terms reproduce published models and hold what their equations promise."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulae.architecture import Architecture, count_params, matmul_weights
from formulae.compute import training_steps
from formulae.flop_attention import mean_context_tokens
from formulae.flop_terms import (
    FLOP_TERM_KEYS,
    FlopTerm,
    ModelDescription,
    StackOutline,
    VisionEncoder,
    hardware_flop_per_token,
    model_flop_per_token,
    train_flop_terms,
)
from formulae.flop_vision import patches_of_image, video_tokens, visual_token_fraction
from formulae.units import QuantityError
from tests.formulae.architectures import (
    make_architecture,
    make_deepseek_v3,
    make_gpt2,
    make_llama,
    make_llama_70b,
    make_mixtral,
    make_t5_small,
)


def terms_of(
    architecture: Architecture | None = None, *, seq_len: int | None = None, **fields: object
) -> dict[str, FlopTerm]:
    """The terms of a model by key."""
    model = ModelDescription(architecture=architecture, **fields)  # type: ignore[arg-type]
    return {term.key: term for term in train_flop_terms(model, seq_len=seq_len)}


def flop_of(architecture: Architecture | None = None, **fields: object) -> float:
    """Model FLOP of one token."""
    return model_flop_per_token(terms_of(architecture, **fields).values())  # type: ignore[arg-type]


# Counts


@pytest.mark.parametrize(
    ("architecture", "total"),
    [
        (make_llama(), 8_030_261_248),
        (make_llama_70b(), 70_553_706_496),
        (make_mixtral(), 46_702_792_704),
        (make_gpt2(), 124_439_808),
        (make_llama(vocab=32000, kv_heads=32, ffn_hidden=11008), 6_738_415_616),
    ],
    ids=["Llama 3 8B", "Llama 3 70B", "Mixtral 8x7B", "GPT-2 small", "Llama 2 7B"],
)
def test_parameters_are_counted_to_the_last_one(architecture: Architecture, total: int) -> None:
    assert count_params(architecture).total == total


def test_mixtral_uses_12_88_billion_parameters_for_a_token() -> None:
    assert count_params(make_mixtral()).active == 12_879_925_248


def test_deepseek_v3_stores_671_billion_and_uses_37_billion() -> None:
    counts = count_params(make_deepseek_v3())
    assert counts.total == pytest.approx(671e9, rel=0.001)
    # 37 billion rounds 36.7; the embedding, of which a token reads one row, is in `active` only.
    assert counts.matmul_active == pytest.approx(36.7e9, rel=0.01)
    assert counts.active - counts.embedding == pytest.approx(36.7e9, rel=0.01)
    # 11.5 billion of their own, and copies of embedding and head.
    assert counts.multi_token_prediction == pytest.approx(11.5e9, rel=0.02)


def test_t5_small_counts_60_5_million_with_cross_attention() -> None:
    encoder, decoder = make_t5_small()
    model = ModelDescription(architecture=decoder, encoder=encoder)
    # The two tables of relative positions (2 x 32 buckets x 8 heads) are left out.
    assert model.counted_params == 60_506_624 - 512


def test_the_output_head_of_llama_3_8b_is_6_5_percent() -> None:
    counts = count_params(make_llama())
    assert counts.embedding / counts.total == pytest.approx(0.065, abs=0.0005)


def test_a_tied_head_is_counted_once_and_computed_once() -> None:
    untied, tied = make_architecture(), make_architecture(tied_embeddings=True)
    assert count_params(untied).total - count_params(tied).total == 64 * 1000
    assert flop_of(untied) == flop_of(tied)


def test_the_difference_to_a_stated_count_is_exposed() -> None:
    model = ModelDescription(architecture=make_llama(), stated_params=8.5e9)
    assert model.count_difference_fraction == pytest.approx(8_030_261_248 / 8.5e9 - 1)
    assert ModelDescription(stated_params=8e9).count_difference_fraction is None


# Golden figures


def test_ten_billion_parameters_and_ten_trillion_tokens_are_6e23_flop() -> None:
    assert flop_of(stated_params=1e11, stated_active_params=1e10) * 1e13 == pytest.approx(6e23)


def test_that_run_takes_2384186_steps_and_a_batch_in_tokens_is_refused() -> None:
    assert training_steps(tokens=1e13, batch_sequences=1024, seq_len=4096) == 2_384_186
    with pytest.raises(QuantityError, match="1024 sequences"):
        training_steps(tokens=1e13, batch_sequences=4 * 2**20, seq_len=4096)


def test_a_short_run_of_normal_batches_is_admitted() -> None:
    assert training_steps(tokens=1e8, batch_sequences=64, seq_len=4096) == 382


@pytest.mark.parametrize(
    ("architecture", "seq_len", "share"),
    [
        (make_llama(vocab=32000, kv_heads=32, ffn_hidden=11008), 4096, 0.16),
        (make_llama(), 8192, 0.27),
        (make_llama_70b(), 8192, 0.15),
    ],
    ids=["7B at 4k", "8B at 8k", "70B at 8k"],
)
def test_attention_weighs_what_published_tables_say(
    architecture: Architecture, seq_len: int, share: float
) -> None:
    scores = terms_of(replace(architecture, causal=False), seq_len=seq_len)["attention_scores"]
    six_n = 6 * count_params(architecture).total
    assert scores.flop_per_token / six_n == pytest.approx(share, abs=0.005)


def test_causal_attention_is_half_and_its_formula_says_so() -> None:
    causal = terms_of(make_llama(), seq_len=8192)["attention_scores"]
    full = terms_of(make_llama(causal=False), seq_len=8192)["attention_scores"]
    assert full.flop_per_token == 2 * causal.flop_per_token == 12 * 32 * 4096 * 8192
    assert "a = 0.5: causal" in causal.formula
    assert "a = 1: not causal" in full.formula


def test_the_sum_is_the_closed_form_of_megatron() -> None:
    layers, h, seq_len, vocab = 105, 20480, 2048, 51200
    gpt_530b = make_architecture(
        layers=layers,
        hidden=h,
        heads=128,
        kv_heads=128,
        head_dim=160,
        ffn_hidden=4 * h,
        vocab=vocab,
        gated_ffn=False,
        tied_embeddings=True,
        causal=False,
    )
    closed = 72 * layers * h**2 * (1 + seq_len / (6 * h) + vocab / (12 * layers * h))
    assert flop_of(gpt_530b, seq_len=seq_len) == pytest.approx(closed, rel=1e-12)


def test_full_recompute_makes_hfu_four_thirds_of_mfu() -> None:
    terms = terms_of(make_llama_70b(), seq_len=8192, recompute="full").values()
    ratio = hardware_flop_per_token(terms) / model_flop_per_token(terms)
    assert ratio == pytest.approx(4 / 3)
    # 530B on 2240 A100: 42.1 % MFU with full recompute are 56.1 % HFU.
    assert 0.421 * ratio == pytest.approx(0.561, abs=0.0005)


def test_selective_recompute_adds_the_scores_once_more() -> None:
    terms = terms_of(make_llama(), seq_len=8192, recompute="selective")
    assert terms["recompute"].flop_per_token * 3 == terms["attention_scores"].flop_per_token
    assert not terms["recompute"].is_model_flop


def test_recompute_is_no_model_flop() -> None:
    assert flop_of(make_llama(), seq_len=8192, recompute="full") == flop_of(
        make_llama(), seq_len=8192
    )


def test_prediction_of_one_more_token_adds_about_4_percent_to_deepseek_v3() -> None:
    without = flop_of(make_deepseek_v3(mtp_depth=0))
    assert flop_of(make_deepseek_v3()) / without - 1 == pytest.approx(0.044, abs=0.001)


def test_movie_gen_at_73k_tokens_computes_more_attention_than_weights() -> None:
    outline = StackOutline(layers=48, hidden=6144, causal=False)
    terms = terms_of(stated_params=30e9, outline=outline, seq_len=73_728)
    ratio = terms["attention_scores"].flop_per_token / terms["parameters"].flop_per_token
    assert ratio == pytest.approx(1.45, abs=0.01)


# What is known


def test_counts_alone_are_six_n_active() -> None:
    terms = terms_of(stated_params=46.7e9, stated_active_params=12.9e9, seq_len=8192)
    assert {key: term.flop_per_token for key, term in terms.items()} == {"parameters": 6 * 12.9e9}


def test_counts_with_layers_and_width_have_an_attention_term_that_says_hidden() -> None:
    terms = terms_of(
        stated_params=8.03e9, outline=StackOutline(layers=32, hidden=4096), seq_len=8192
    )
    assert terms["attention_scores"].flop_per_token == 6 * 32 * 4096 * 8192
    assert "L * H * S" in terms["attention_scores"].formula
    assert terms["parameters"].flop_per_token == 6 * 8.03e9


def test_the_input_embedding_is_left_out_where_its_size_is_known() -> None:
    outline = StackOutline(layers=32, hidden=4096, vocab=128256)
    counted = flop_of(stated_params=8_030_261_248, outline=outline, seq_len=8192)
    # What is left are the norms.
    assert counted == pytest.approx(flop_of(make_llama(), seq_len=8192), rel=1e-4)
    tied = replace(outline, tied_embeddings=True)
    assert terms_of(stated_params=8e9, outline=tied)["parameters"].flop_per_token == 6 * 8e9


def test_without_a_sequence_length_there_is_no_attention_term() -> None:
    assert "attention_scores" not in terms_of(make_llama())


# Parts


def test_grouped_queries_shrink_the_projections_and_not_the_scores() -> None:
    full, grouped = make_architecture(), make_architecture(kv_heads=1)
    a, b = terms_of(full, seq_len=512), terms_of(grouped, seq_len=512)
    assert a["attention_scores"] == b["attention_scores"]
    saved = a["attention_projections"].flop_per_token - b["attention_projections"].flop_per_token
    assert saved == 6 * 4 * 2 * 64 * (64 - 16)


def test_latent_attention_scores_are_as_wide_as_query_and_value_heads() -> None:
    scores = terms_of(make_deepseek_v3(mtp_depth=0), seq_len=4096)["attention_scores"]
    assert scores.flop_per_token == 6 * 61 * 128 * (192 + 128) * 4096 / 2
    assert "h * (d + r + v) / 2" in scores.formula


def test_leading_dense_layers_have_the_dense_ffn_and_no_router() -> None:
    terms = terms_of(make_deepseek_v3())
    assert terms["dense_ffn"].flop_per_token == 6 * 3 * 3 * 7168 * 18432
    assert terms["router"].flop_per_token == 6 * 58 * 7168 * 256
    assert terms["shared_experts"].flop_per_token == 6 * 58 * 3 * 7168 * 2048


def test_alternating_experts_count_in_half_the_layers() -> None:
    shape = {"experts": 4, "top_k": 1, "expert_ffn_hidden": 128}
    half = terms_of(make_architecture(**shape, moe_layers=2))
    whole = terms_of(make_architecture(**shape))
    assert 2 * half["routed_experts"].flop_per_token == whole["routed_experts"].flop_per_token
    assert "dense_ffn" not in whole
    assert half["dense_ffn"].flop_per_token == 6 * 2 * 3 * 64 * 256


def test_a_windowed_layer_sees_w_less_w_squared_over_2s() -> None:
    terms = terms_of(make_architecture(window=100, windowed_layers=3), seq_len=1000)
    assert terms["windowed_attention_scores"].flop_per_token == 12 * 3 * 64 * 95
    assert terms["attention_scores"].flop_per_token == 6 * 1 * 64 * 1000


def test_the_mean_context_of_a_window_is_that_of_counting_every_token() -> None:
    seq_len, window = 20_000, 700
    counted = sum(min(position + 0.5, window) for position in range(seq_len)) / seq_len
    assert mean_context_tokens(seq_len, window=window) == pytest.approx(counted, rel=1e-9)


def test_chunks_see_half_a_chunk() -> None:
    assert mean_context_tokens(65_536, window=8192, chunked=True) == 4096
    assert mean_context_tokens(4096, window=8192, chunked=True) == 2048


def test_a_token_of_an_encoder_decoder_crosses_one_stack() -> None:
    encoder, decoder = make_t5_small()
    n_enc, n_dec = matmul_weights(encoder).total, matmul_weights(decoder)
    flop = flop_of(decoder, encoder=encoder, source_fraction=0.75)
    # Keys and values of the cross attention are made from source tokens.
    target = n_dec.total - n_dec.cross_memory
    assert flop == pytest.approx(6 * (0.75 * (n_enc + n_dec.cross_memory) + 0.25 * target))


def test_the_target_of_an_encoder_decoder_attends_to_the_whole_source() -> None:
    encoder, decoder = make_t5_small()
    terms = terms_of(decoder, encoder=encoder, source_fraction=0.8, seq_len=512)
    assert terms["cross_attention_scores"].flop_per_token == pytest.approx(0.2 * 12 * 6 * 512 * 512)
    assert terms["encoder_attention_scores"].flop_per_token == pytest.approx(
        0.8 * 12 * 6 * 512 * 512
    )
    assert terms["attention_scores"].flop_per_token == pytest.approx(0.2 * 6 * 6 * 512 * 128)


def test_an_encoder_decoder_of_counts_crosses_half_its_parameters() -> None:
    assert flop_of(stated_params=20e9, encoder_params=10e9) == 6 * 10e9


def test_a_frozen_tower_costs_a_third_of_a_trained_one() -> None:
    tower = VisionEncoder(
        architecture=make_architecture(vocab=0, causal=False),
        visual_token_fraction=0.25,
        patches_per_token=4,
        patches_per_image=576,
    )
    alone = flop_of(make_llama())
    trained = flop_of(make_llama(), vision=tower) - alone
    frozen = flop_of(make_llama(), vision=replace(tower, is_frozen=True)) - alone
    assert trained == pytest.approx(3 * frozen)
    weights = matmul_weights(make_architecture(vocab=0)).total
    assert trained == pytest.approx(6 * weights + 12 * 4 * 64 * 576)


def test_a_frozen_tower_is_not_recomputed() -> None:
    tower = VisionEncoder(params=1e9, is_frozen=True, visual_token_fraction=0.5)
    terms = terms_of(stated_params=9e9, vision=tower, recompute="full")
    assert terms["vision_encoder"].flop_per_token == 0.5 * 2 * 1e9
    assert terms["recompute"].flop_per_token == 2 * 8e9


def test_video_tokens_and_their_share() -> None:
    assert patches_of_image(224, 224, patch_px=14) == 256
    assert video_tokens(64, 144) == 9216
    assert visual_token_fraction(text_tokens=3, visual_tokens=1) == 0.25


def test_an_online_teacher_adds_twice_its_parameters() -> None:
    terms = terms_of(stated_params=1e9, teacher_params=7e9)
    assert terms["teacher"].flop_per_token == 14e9


def test_a_frozen_base_with_adapters_costs_4n_and_6_of_the_adapters() -> None:
    terms = terms_of(make_llama(), adapter_params=2e7, seq_len=8192)
    weights = matmul_weights(make_llama()).total
    total = model_flop_per_token(terms.values()) - terms["attention_scores"].flop_per_token
    assert total == pytest.approx(4 * weights + 6 * 2e7)
    # Scores hold no weights: gradients pass them in full.
    assert terms["attention_scores"].flop_per_token == 6 * 32 * 4096 * 8192


def test_frozen_parts_cost_2n_or_4n_by_whether_gradients_pass() -> None:
    frozen = {"stated_params": 8e9, "frozen_params": 6e9}
    assert flop_of(**frozen) == pytest.approx(6 * 2e9 + 2 * 6e9)
    passing = flop_of(**frozen, frozen_passes_gradients=True)
    assert passing == pytest.approx(6 * 2e9 + 4 * 6e9)


def test_networks_that_only_run_cost_2n() -> None:
    terms = terms_of(stated_params=3e9, forward_only_params=4.7e9)
    assert terms["forward_only"].flop_per_token == 9.4e9


# Refusals


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"kv_heads": 3}, "kv_heads"),
        ({"layers": 0}, "layers"),
        ({"experts": 8}, "top_k"),
        ({"experts": 2, "top_k": 3}, "top_k"),
        ({"moe_layers": 2}, "experts"),
        ({"experts": 8, "top_k": 2, "moe_layers": 5}, "moe_layers"),
        ({"windowed_layers": 2}, "window"),
        ({"kv_lora_rank": 512}, "qk_rope_head_dim"),
    ],
)
def test_a_shape_that_cannot_be_built_is_refused_by_field(
    fields: dict[str, int], field: str
) -> None:
    with pytest.raises(QuantityError, match=field):
        make_architecture(**fields)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "params"),
        ({"stated_params": 1e9, "stated_active_params": 2e9}, "active_params"),
        ({"stated_params": 1e9, "frozen_params": 2e9}, "frozen_params"),
        ({"stated_params": 1e9, "encoder": make_t5_small()[0]}, "encoder"),
        ({"stated_params": 1e9, "adapter_params": 1e6, "frozen_params": 1e9}, "frozen_params"),
        ({"stated_params": 1e9, "encoder_params": 5e8, "source_fraction": 1}, "source_fraction"),
    ],
)
def test_a_model_that_cannot_be_meant_is_refused_by_field(
    fields: dict[str, object], field: str
) -> None:
    with pytest.raises(QuantityError, match=field):
        terms_of(**fields)


# Properties

small = st.integers(min_value=1, max_value=6)
models = st.builds(
    lambda layers, heads, groups, window, gated, causal: make_architecture(
        layers=layers,
        heads=heads * groups,
        kv_heads=heads,
        window=window,
        gated_ffn=gated,
        causal=causal,
    ),
    small,
    small,
    small,
    st.none() | st.integers(min_value=1, max_value=5000),
    st.booleans(),
    st.booleans(),
)
sequences = st.integers(min_value=1, max_value=200_000)


@given(architecture=models, seq_len=sequences, recompute=st.sampled_from(["none", "full"]))
def test_every_term_is_positive_named_and_written_out(
    architecture: Architecture, seq_len: int, recompute: str
) -> None:
    for term in terms_of(architecture, seq_len=seq_len, recompute=recompute).values():
        assert term.flop_per_token > 0
        assert term.key in FLOP_TERM_KEYS
        assert " = " in term.formula


@given(architecture=models, seq_len=sequences)
def test_recompute_in_full_is_always_a_third_more(architecture: Architecture, seq_len: int) -> None:
    terms = terms_of(architecture, seq_len=seq_len, recompute="full").values()
    assert hardware_flop_per_token(terms) == pytest.approx(model_flop_per_token(terms) * 4 / 3)


@given(experts=st.integers(min_value=1, max_value=64), width=st.integers(min_value=1, max_value=99))
def test_all_experts_at_once_are_one_dense_ffn_and_a_router(experts: int, width: int) -> None:
    sparse = make_architecture(experts=experts, top_k=experts, expert_ffn_hidden=width)
    dense = make_architecture(ffn_hidden=experts * width)
    router = terms_of(sparse)["router"].flop_per_token
    assert flop_of(sparse) - router == pytest.approx(flop_of(dense))
    counts = count_params(sparse)
    assert counts.total == counts.active


@given(seq_len=sequences, beyond=st.integers(min_value=0, max_value=1000), causal=st.booleans())
def test_a_window_as_long_as_the_sequence_is_none(seq_len: int, beyond: int, causal: bool) -> None:
    none = mean_context_tokens(seq_len, causal=causal)
    assert mean_context_tokens(seq_len, causal=causal, window=seq_len + beyond) == none


@given(seq_len=sequences, window=st.integers(min_value=1, max_value=200_000))
def test_a_window_never_adds_context(seq_len: int, window: int) -> None:
    assert mean_context_tokens(seq_len, window=window) <= mean_context_tokens(seq_len)
    assert mean_context_tokens(seq_len, window=window) <= window


@given(seq_len=sequences, factor=st.integers(min_value=1, max_value=9))
def test_scores_grow_with_the_sequence_and_weights_do_not(seq_len: int, factor: int) -> None:
    one = terms_of(make_architecture(), seq_len=seq_len)
    more = terms_of(make_architecture(), seq_len=factor * seq_len)
    assert more["attention_scores"].flop_per_token == pytest.approx(
        factor * one["attention_scores"].flop_per_token
    )
    assert more["dense_ffn"] == one["dense_ffn"]


@given(params=st.floats(min_value=1e6, max_value=1e13), factor=st.floats(0.1, 10))
def test_flop_of_counts_is_linear_in_parameters(params: float, factor: float) -> None:
    assert flop_of(stated_params=params * factor) == pytest.approx(
        factor * flop_of(stated_params=params)
    )
