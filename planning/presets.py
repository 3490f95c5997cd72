"""Named kickoff questions to start from: each is a document for `planning.spec`. Data only."""

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    # The source chapter's own example, with its arithmetic mended: 6 * 1e10 * 1e13 is 6.0e23 FLOP,
    # and the dense BF16 peak instead of the sparse FP8 one.
    "chapter-10b-moe": {
        "name": "10B-active mixture of experts, 10T tokens, 256 H100",
        "params": 64e9,
        "active_params": 10e9,
        "tokens": 10e12,
        "accelerator": "h100-sxm-80gb",
        "accelerators": 256,
        "precision": "bf16",
        "mfu": 0.55,
        "goodput": 1.0,
        "price_per_accelerator_h": "2.50",
        "currency": "USD",
        "host_factor": 1.5,
        "pue": 1.2,
        "g_per_kwh": 400,
    },
    "dense-8b": {
        "name": "8B dense, 15T tokens, 512 H100",
        "params": 8.03e9,
        "tokens": 15e12,
        "accelerator": "h100-sxm-80gb",
        "accelerators": 512,
        "precision": "bf16",
        "mfu": {"low": 0.30, "mode": 0.40, "high": 0.48},
        "goodput": {"low": 0.75, "mode": 0.9, "high": 0.97},
        "price_per_accelerator_h": "2.50",
        "currency": "USD",
        "host_factor": 1.5,
        "pue": 1.2,
        "g_per_kwh": 400,
    },
    "dense-70b": {
        "name": "70B dense, 15T tokens, 4,096 H100",
        "params": 70.6e9,
        "tokens": 15e12,
        "accelerator": "h100-sxm-80gb",
        "accelerators": 4096,
        "precision": "bf16",
        "mfu": {"low": 0.32, "mode": 0.41, "high": 0.47},
        "goodput": {"low": 0.7, "mode": 0.88, "high": 0.95},
        "price_per_accelerator_h": "2.50",
        "currency": "USD",
        "host_factor": 1.5,
        "pue": 1.2,
        "g_per_kwh": 400,
    },
}
