"""Walk through nested lists, tuples and dicts. Both sides of the trust line use this module."""

from collections.abc import Callable, Iterator
from typing import Any

import torch

SEQUENCES = (tuple, list)


def leaves(value: Any) -> Iterator[Any]:
    """All values that are not containers, in order. A dict is walked in the order of its sorted keys."""
    if isinstance(value, SEQUENCES):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from leaves(value[key])
    else:
        yield value


def tensors(value: Any) -> list[torch.Tensor]:
    """All tensors among the leaves."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, SEQUENCES):
        return [tensor for item in value for tensor in tensors(item)]
    if isinstance(value, dict):
        return [tensor for key in sorted(value, key=str) for tensor in tensors(value[key])]
    return []


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same containers with `change(leaf)` in place of every leaf."""
    if isinstance(value, SEQUENCES):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return change(value)


def mapped_tensors(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The same containers with `change(tensor)` in place of every tensor."""
    return mapped(value, lambda leaf: change(leaf) if isinstance(leaf, torch.Tensor) else leaf)


def frozen(value: Any, key: Callable[[Any], Any]) -> Any:
    """A hashable copy. Two are equal if the containers and the `key(leaf)` of all leaves are equal."""
    if isinstance(value, SEQUENCES):
        return (type(value), *(frozen(item, key) for item in value))
    if isinstance(value, dict):
        return (dict, *((name, frozen(item, key)) for name, item in value.items()))
    return key(value)
