"""Which device to run on."""

import torch

from autograder.errors import InputError


def resolve(name: str) -> str:
    """The device to use: `auto` takes the fastest that exists. Raises `InputError` for a device that does not exist."""
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next(device for device in ("cuda", "mps", "cpu") if available[device])
    if not available[name]:
        raise InputError(
            f"this machine has no device {name}; use --device cpu or --device auto",
            f"这台机器没有 {name} 设备；请用 --device cpu 或 --device auto",
        )
    return name
