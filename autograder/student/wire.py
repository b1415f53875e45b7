"""The only message format that crosses the trust line: JSON for structure, safetensors for tensors.

Neither can carry code. A frame is two big-endian lengths, the JSON, then the tensors.
Nothing that the other side sends is trusted: sizes are checked before the data is read,
and a message that cannot be decoded raises `WireError`.
"""

import ctypes
import json
import math
import operator
import socket
import struct
import time
from numbers import Integral
from typing import Any

import safetensors
import torch
from safetensors import SafetensorError, serialize
from safetensors.torch import load as load_tensors

HEADER = struct.Struct(">II")
LARGEST_FRAME = 64 * 2**20
DEEPEST = 32
PIECE = 2**15  # bytes read at once

Request = dict[str, Any]  # "do", and what it needs
Answer = dict[str, Any]  # "value", or "error" when the student's code raised

NUMBER_TYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in NUMBER_TYPES}


class WireError(Exception):
    """A message that cannot be read, or a value that may not be sent."""


class Seeded:
    """A random generator. Only its seed is sent; the other side makes a new generator from it."""

    def __init__(self, seed: int):
        self.seed = seed

    def generator(self, device: str = "cpu") -> torch.Generator:
        return torch.Generator(device=device).manual_seed(self.seed)


class Handle:
    """The number of a module in the student's process."""

    def __init__(self, number: int):
        self.number = number


def encode(value: Any) -> bytes:
    """Pack `value` into one frame."""
    tensors: dict[str, torch.Tensor] = {}
    text = json.dumps(_lower(value, tensors, 0), allow_nan=False, separators=(",", ":")).encode()
    blob = serialize({name: _spec(tensor) for name, tensor in tensors.items()}) if tensors else b""
    if len(text) + len(blob) > LARGEST_FRAME:
        raise WireError(f"{len(text) + len(blob)} bytes do not fit in a message of {LARGEST_FRAME}")
    return HEADER.pack(len(text), len(blob)) + text + blob


def decode(text: bytes, blob: bytes, device: str = "cpu") -> Any:
    """Unpack the two halves of a frame."""
    try:
        tensors = load_tensors(blob) if blob else {}
        return _lift(json.loads(text), tensors, device)
    except (SafetensorError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as broken:
        raise WireError(f"a message that cannot be read: {type(broken).__name__}") from None


def _lower(value: Any, tensors: dict[str, torch.Tensor], depth: int) -> Any:
    if depth > DEEPEST:
        raise WireError("the value is nested too deeply")
    if value is None or type(value) in (bool, str):
        return value
    if isinstance(value, Integral):  # NumPy's integers too: many count with them
        whole = operator.index(value)
        return whole if abs(whole) < 2**63 else {"int": str(whole)}
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, torch.Tensor):
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            raise WireError(f"a {type(value).__name__} is not a plain tensor")
        plain = value.detach()
        if plain.layout is not torch.strided:
            raise WireError(f"a tensor of layout {plain.layout} is not a plain tensor")
        dtype = str(plain.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            raise WireError(f"a tensor of dtype {dtype} cannot be compared")
        if plain.numel() * plain.element_size() > LARGEST_FRAME:
            raise WireError(f"a tensor of shape {tuple(plain.shape)} is too large to hand in")
        name = str(len(tensors))
        tensors[name] = plain.cpu().contiguous()
        return {"tensor": name, "device": plain.device.type}
    if isinstance(value, torch.Size | tuple):
        return {"tuple": [_lower(item, tensors, depth + 1) for item in value]}
    if type(value) is list:
        return {"list": [_lower(item, tensors, depth + 1) for item in value]}
    if isinstance(value, dict):
        if not all(type(key) is str for key in value):
            raise WireError("a dict with keys that are not strings cannot cross")
        return {"dict": {key: _lower(item, tensors, depth + 1) for key, item in value.items()}}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, Seeded):
        return {"seed": value.seed}
    if isinstance(value, Handle):
        return {"handle": value.number}
    raise WireError(f"a value of type {type(value).__name__} is neither a tensor nor a plain number")


def _spec(tensor: torch.Tensor) -> Any:
    """A tensor as `serialize` wants it. From version 0.8 on, safetensors reads the bytes in place: keep the tensor alive."""
    dtype, shape = str(tensor.dtype).removeprefix("torch."), list(tensor.shape)
    size = tensor.numel() * tensor.element_size()
    if not hasattr(safetensors, "TensorSpec"):
        return {"dtype": dtype, "shape": shape, "data": ctypes.string_at(tensor.data_ptr(), size)}
    return safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=tensor.data_ptr(), data_len=size)


def _text(value: str) -> str:
    """The text with question marks for lone surrogates, which JSON allows but no file can hold."""
    return value if value.isascii() else value.encode(errors="replace").decode()


def _lift(value: Any, tensors: dict[str, torch.Tensor], device: str, depth: int = 0) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        raise WireError("a list without a kind")
    if not isinstance(value, dict):
        return value
    if depth > DEEPEST + 1:
        raise WireError("the value is nested too deeply")
    (kind, content), *rest = value.items()
    if kind == "tensor":
        tensor = tensors[content] if device == "cpu" else tensors[content].to(device)
        if rest and rest[0][1] != "cpu":
            tensor.came_from = str(rest[0][1])  # type: ignore[attr-defined]
        return tensor
    if kind == "tuple":
        return tuple(_lift(item, tensors, device, depth + 1) for item in content)
    if kind == "list":
        return [_lift(item, tensors, device, depth + 1) for item in content]
    if kind == "dict":
        return {_text(key): _lift(item, tensors, device, depth + 1) for key, item in content.items()}
    if kind == "float":
        return float(content)
    if kind == "int":
        return int(content)
    if kind == "dtype":
        return DTYPES[content]
    if kind == "seed":
        return Seeded(int(content))
    if kind == "handle":
        return Handle(int(content))
    raise WireError(f"unknown kind {kind!r}")


def decode_frame(frame: bytes) -> Any:
    split = HEADER.size + HEADER.unpack_from(frame)[0]
    return decode(frame[HEADER.size : split], frame[split:])


def send(connection: socket.socket, value: Any, deadline: float | None = None) -> None:
    _send_bytes(connection, encode(value), deadline)


def _send_bytes(connection: socket.socket, data: bytes, deadline: float | None) -> None:
    view = memoryview(data)
    while view:
        connection.settimeout(_remaining(deadline))
        view = view[connection.send(view) :]


def receive(connection: socket.socket, deadline: float | None = None, device: str = "cpu") -> Any:
    """Read one frame. `TimeoutError` past the deadline, `EOFError` when the other side is gone."""
    parts: list[bytes] = []
    size, wanted, lengths = 0, HEADER.size, (0, 0)
    while size < wanted:
        connection.settimeout(_remaining(deadline))
        part = connection.recv(PIECE)  # usually the whole frame, because each side sends only one at a time
        if not part:
            raise EOFError("the other side has closed the connection")
        parts.append(part)
        size += len(part)
        if wanted == HEADER.size <= size:
            parts = [b"".join(parts)]
            lengths = HEADER.unpack_from(parts[0])
            if sum(lengths) > LARGEST_FRAME:
                raise WireError(f"a message of {sum(lengths)} bytes; {LARGEST_FRAME} are allowed")
            wanted += sum(lengths)
    if size > wanted:
        raise WireError("more than was asked for")
    frame = b"".join(parts)
    split = HEADER.size + lengths[0]
    return decode(frame[HEADER.size : split], frame[split:], device)


def _remaining(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left
