"""Named kickoff questions to start from: each is a document for `planning.spec`. Data only."""

from typing import Any

# What the page of a new question shows first.
DEFAULT_PRESET = "dense-8b"
_USD_2_50 = {"amount": "2.50", "currency": "USD"}
_CHAPTER: dict[str, Any] = {
    "model": {"params": 64e9, "active_params": 10e9},
    "tokens": 10e12,
    "accelerator": "h100-sxm-80gb",
    "accelerator_count": 256,
    "step_mfu": 0.55,
    "goodput": 1.0,
    "price_per_accelerator_hour": _USD_2_50,
    "host_factor": 1.5,
    "pue": 1.15,
    "grid_g_per_kwh": 400,
}
PRESETS: dict[str, dict[str, Any]] = {
    # The source chapter's example as it is printed: 6e24 FLOP, the sparse FP8 peak, 126 days.
    "chapter-as-printed": {
        **_CHAPTER,
        "name": "Chapter example as printed (sparse peak, 6e24 FLOP)",
        "training_flop": 6e24,
        "precision": "fp8",
        "peak": "sparse",
        "sparse_reason": "as printed in the chapter; nothing is trained with 2:4 sparsity here",
    },
    # The same, with its arithmetic mended: 6 * 1e10 * 1e13 is 6.0e23 FLOP, over a dense peak.
    "chapter-10b-moe": {
        **_CHAPTER,
        "name": "Chapter example corrected: 10B-active mixture of experts, 10T tokens, 256 H100",
        "precision": "bf16",
    },
    "chapter-10b-moe-fp8": {
        **_CHAPTER,
        "name": "Chapter example corrected, at the dense FP8 peak",
        "precision": "fp8",
    },
    "dense-8b": {
        "name": "8B dense, 15T tokens, 512 H100",
        "model": {
            "layers": 32,
            "hidden": 4096,
            "heads": 32,
            "kv_heads": 8,
            "head_dim": 128,
            "ffn_hidden": 14336,
            "gated_ffn": True,
            "vocab": 128256,
            "tied_embeddings": False,
        },
        "tokens": 15e12,
        "seq_len": 8192,
        "accelerator": "h100-sxm-80gb",
        "accelerator_count": 512,
        "region": "aws:us-east-1",
    },
    "dense-70b": {
        "name": "70B dense, 15T tokens, 4,096 H100",
        "model": {
            "layers": 80,
            "hidden": 8192,
            "heads": 64,
            "kv_heads": 8,
            "head_dim": 128,
            "ffn_hidden": 28672,
            "gated_ffn": True,
            "vocab": 128256,
            "tied_embeddings": False,
        },
        "tokens": 15e12,
        "seq_len": 8192,
        "accelerator": "h100-sxm-80gb",
        "accelerator_count": 4096,
        "region": "aws:us-east-1",
    },
    "video-pipeline": {
        "name": "10B-active mixture of experts on 1M hours of 6-camera video",
        "model": {"params": 64e9, "active_params": 10e9},
        "tokens": 10e12,
        "accelerator": "h100-sxm-80gb",
        "accelerator_count": 256,
        "region": "aws:us-west-2",
        "storage": [
            {"tier": "hot", "terabytes": "200"},
            {"tier": "warm", "terabytes": "1350"},
            {"tier": "cold", "terabytes": "2000"},
        ],
        "requests": [
            {
                "verb": "get",
                "dataset_terabytes": "1350",
                "object_megabytes": "0.45",
                "epochs": 1,
            }
        ],
        "transfer": [{"kind": "nat", "dataset_terabytes": "1350", "epochs": 1}],
    },
}
