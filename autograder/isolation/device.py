"""Which device to run on."""

import torch

from autograder.errors import InputError


def resolve(name: str) -> str:
    """`auto` takes the fastest there is; a device that is not there is an error, said clearly."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next(device for device in ("cuda", "mps", "cpu") if there[device])
    if not there[name]:
        raise InputError(
            f"this machine has no device {name}; use --device cpu or --device auto",
            f"这台机器没有 {name} 设备；请用 --device cpu 或 --device auto",
        )
    return name
