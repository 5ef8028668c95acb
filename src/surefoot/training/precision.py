"""Which number format to compute in: never one that the hardware only emulates, many times slower than float32."""

from __future__ import annotations

import torch

from .arguments import check_values

NAMES = {"float32": "no", "bf16": "bf16", "fp16": "fp16"}  # accelerate's


def choose_precision(precision: str, device: torch.device) -> tuple[str, str]:
    """The format, and why. "auto" takes bf16 or fp16 only where the hardware has units for it."""
    check_values({"precision": precision})
    if precision != "auto":
        return precision, "as given"
    if device.type == "cpu":
        if has_bf16_units():
            return "bf16", "this CPU has units for it"
        return "float32", "this CPU has no units for bf16, which would be many times slower"
    if device.type == "cuda":
        major, _ = torch.cuda.get_device_capability(device)
        if major >= 8:
            return "bf16", "this GPU has units for it"
        return ("fp16", "this GPU has units for fp16 only") if major == 7 else ("float32", "this GPU is older than its formats")
    return "float32", f"mixed precision on {device.type} is not tested"


def has_bf16_units() -> bool:
    """Whether the CPU multiplies bf16 itself (AVX-512 BF16 or AMX); emulation does not count."""
    capabilities = torch.backends.cpu.get_cpu_capability()
    asks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return "AVX512" in capabilities and any(getattr(torch.cpu, ask, lambda: False)() for ask in asks)
