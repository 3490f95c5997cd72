"""Configurations of published models, cut to the keys that matter; plain builders."""

from typing import Any


def make_llama_config(**keys: Any) -> dict[str, Any]:
    """Llama 3 8B."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "bos_token_id": 128000,
        "hidden_act": "silu",
        "hidden_size": 4096,
        "initializer_range": 0.02,
        "intermediate_size": 14336,
        "max_position_embeddings": 8192,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "rms_norm_eps": 1e-05,
        "rope_theta": 500000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": 128256,
    } | keys


def make_mixtral_config() -> dict[str, Any]:
    return make_llama_config(
        model_type="mixtral",
        vocab_size=32000,
        max_position_embeddings=32768,
        num_local_experts=8,
        num_experts_per_tok=2,
        router_aux_loss_coef=0.02,
        sliding_window=None,
    )


def make_deepseek_v3_config() -> dict[str, Any]:
    return {
        "model_type": "deepseek_v3",
        "first_k_dense_replace": 3,
        "hidden_act": "silu",
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "kv_lora_rank": 512,
        "max_position_embeddings": 163840,
        "moe_intermediate_size": 2048,
        "moe_layer_freq": 1,
        "n_group": 8,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "norm_topk_prob": True,
        "num_attention_heads": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 61,
        "num_key_value_heads": 128,
        "num_nextn_predict_layers": 1,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "quantization_config": {"quant_method": "fp8"},
        "rope_scaling": {"factor": 40, "original_max_position_embeddings": 4096, "type": "yarn"},
        "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid",
        "tie_word_embeddings": False,
        "topk_group": 4,
        "topk_method": "noaux_tc",
        "v_head_dim": 128,
        "vocab_size": 129280,
    }


def make_gpt2_config() -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "n_ctx": 1024,
        "n_embd": 768,
        "n_head": 12,
        "n_layer": 12,
        "n_positions": 1024,
        "resid_pdrop": 0.1,
        "summary_type": "cls_index",
        "task_specific_params": {"text-generation": {"do_sample": True}},
        "vocab_size": 50257,
    }


def make_gemma2_config() -> dict[str, Any]:
    """Gemma 2 9B."""
    return {
        "model_type": "gemma2",
        "attn_logit_softcapping": 50.0,
        "cache_implementation": "hybrid",
        "head_dim": 256,
        "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 3584,
        "intermediate_size": 14336,
        "max_position_embeddings": 8192,
        "num_attention_heads": 16,
        "num_hidden_layers": 42,
        "num_key_value_heads": 8,
        "query_pre_attn_scalar": 256,
        "sliding_window": 4096,
        "vocab_size": 256000,
    }


def make_gemma3_config() -> dict[str, Any]:
    """Gemma 3 4B, whose text part leaves sizes to its library."""
    return {
        "model_type": "gemma3",
        "mm_tokens_per_image": 256,
        "text_config": {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "model_type": "gemma3_text",
            "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        },
        "vision_config": {
            "hidden_size": 1152,
            "image_size": 896,
            "intermediate_size": 4304,
            "model_type": "siglip_vision_model",
            "num_attention_heads": 16,
            "num_hidden_layers": 27,
            "patch_size": 14,
            "vision_use_head": False,
        },
    }


def make_qwen2_config() -> dict[str, Any]:
    """Qwen2 7B."""
    return make_llama_config(
        model_type="qwen2",
        hidden_size=3584,
        intermediate_size=18944,
        num_attention_heads=28,
        num_hidden_layers=28,
        num_key_value_heads=4,
        max_position_embeddings=32768,
        max_window_layers=28,
        sliding_window=131072,
        use_sliding_window=False,
        vocab_size=152064,
    )


def make_qwen2_moe_config() -> dict[str, Any]:
    """Qwen1.5 MoE A2.7B."""
    return make_llama_config(
        model_type="qwen2_moe",
        decoder_sparse_step=1,
        hidden_size=2048,
        intermediate_size=5632,
        moe_intermediate_size=1408,
        num_attention_heads=16,
        num_experts=60,
        num_experts_per_tok=4,
        num_hidden_layers=24,
        num_key_value_heads=16,
        shared_expert_intermediate_size=5632,
        sliding_window=32768,
        use_sliding_window=False,
        vocab_size=151936,
    )


def make_qwen3_moe_config() -> dict[str, Any]:
    """Qwen3 30B A3B."""
    return make_llama_config(
        model_type="qwen3_moe",
        decoder_sparse_step=1,
        head_dim=128,
        hidden_size=2048,
        intermediate_size=6144,
        max_position_embeddings=40960,
        mlp_only_layers=[],
        moe_intermediate_size=768,
        num_attention_heads=32,
        num_experts=128,
        num_experts_per_tok=8,
        num_hidden_layers=48,
        num_key_value_heads=4,
        vocab_size=151936,
    )


def make_gpt_oss_config() -> dict[str, Any]:
    """gpt-oss 20B."""
    return {
        "model_type": "gpt_oss",
        "attention_bias": True,
        "experts_per_token": 4,
        "head_dim": 64,
        "hidden_act": "silu",
        "hidden_size": 2880,
        "initial_context_length": 4096,
        "intermediate_size": 2880,
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "max_position_embeddings": 131072,
        "num_attention_heads": 64,
        "num_experts_per_tok": 4,
        "num_hidden_layers": 24,
        "num_key_value_heads": 8,
        "num_local_experts": 32,
        "rope_scaling": {"original_max_position_embeddings": 4096, "rope_type": "yarn"},
        "sliding_window": 128,
        "swiglu_limit": 7.0,
        "tie_word_embeddings": False,
        "vocab_size": 201088,
    }


def make_llama4_config(**keys: Any) -> dict[str, Any]:
    """Llama 4 Maverick."""
    return {
        "model_type": "llama4",
        "text_config": {
            "attention_chunk_size": 8192,
            "head_dim": 128,
            "hidden_act": "silu",
            "hidden_size": 5120,
            "interleave_moe_layer_step": 2,
            "intermediate_size": 8192,
            "intermediate_size_mlp": 16384,
            "max_position_embeddings": 1048576,
            "model_type": "llama4_text",
            "no_rope_layers": [],
            "num_attention_heads": 40,
            "num_experts_per_tok": 1,
            "num_hidden_layers": 48,
            "num_key_value_heads": 8,
            "num_local_experts": 128,
            "use_qk_norm": False,
            "vocab_size": 202048,
        }
        | keys,
        "vision_config": {
            "hidden_size": 1408,
            "image_size": 336,
            "intermediate_size": 5632,
            "model_type": "llama4_vision_model",
            "num_attention_heads": 16,
            "num_hidden_layers": 34,
            "patch_size": 14,
            "pixel_shuffle_ratio": 0.5,
            "projector_input_dim": 4096,
            "projector_output_dim": 4096,
            "vision_output_dim": 4096,
        },
    }


def make_t5_config() -> dict[str, Any]:
    """T5 small."""
    return {
        "model_type": "t5",
        "d_ff": 2048,
        "d_kv": 64,
        "d_model": 512,
        "dropout_rate": 0.1,
        "feed_forward_proj": "relu",
        "is_encoder_decoder": True,
        "n_positions": 512,
        "num_heads": 8,
        "num_layers": 6,
        "relative_attention_num_buckets": 32,
        "vocab_size": 32128,
    }


def make_bart_config() -> dict[str, Any]:
    """BART large."""
    return {
        "model_type": "bart",
        "activation_function": "gelu",
        "d_model": 1024,
        "decoder_attention_heads": 16,
        "decoder_ffn_dim": 4096,
        "decoder_layers": 12,
        "encoder_attention_heads": 16,
        "encoder_ffn_dim": 4096,
        "encoder_layers": 12,
        "is_encoder_decoder": True,
        "max_position_embeddings": 1024,
        "num_hidden_layers": 12,
        "vocab_size": 50265,
    }


def make_qwen2_vl_config() -> dict[str, Any]:
    """Qwen2-VL 7B: text sizes at the top."""
    return make_qwen2_config() | {
        "model_type": "qwen2_vl",
        "vision_config": {
            "depth": 32,
            "embed_dim": 1280,
            "hidden_size": 3584,
            "in_chans": 3,
            "mlp_ratio": 4,
            "model_type": "qwen2_vl",
            "num_heads": 16,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
        },
    }


def make_llava_config() -> dict[str, Any]:
    """LLaVA 1.5 7B, whose text part leaves all sizes to its library."""
    return {
        "model_type": "llava",
        "image_token_index": 32000,
        "projector_hidden_act": "gelu",
        "text_config": {
            "_name_or_path": "vicuna-7b-v1.5",
            "max_position_embeddings": 4096,
            "model_type": "llama",
            "vocab_size": 32064,
        },
        "vision_config": {
            "hidden_size": 1024,
            "image_size": 336,
            "intermediate_size": 4096,
            "model_type": "clip_vision_model",
            "num_attention_heads": 16,
            "num_hidden_layers": 24,
            "patch_size": 14,
            "projection_dim": 768,
            "vocab_size": 32000,
        },
    }
