"""Mutate data at random, always in the same way for the same seed."""

import copy
import json
import random
import struct

ODD = (
    None, True, False, 0, -1, 1, 2**31, -(2**63), 2**70, 0.5, 1e308, "", "x", "\0", "\ud800", "NaN", "pass", "ValueError",
    [], {}, [[]], [None] * 3, {"": None}, {"tensor": "0"}, {"tensor": 0}, {"list": 1}, {"tuple": [1]}, {"dict": []},
    {"dict": {"value": None}}, {"int": "9" * 5000}, {"int": "1"}, {"float": "inf"}, {"float": "nan"}, {"float": []},
    {"handle": 0}, {"handle": -1}, {"handle": "x"}, {"seed": 2**80}, {"dtype": "float64"}, {"dtype": "object"},
    {"what": 1}, {"tensor": "0", "device": []},
)  # fmt: skip


def mutated_tree(tree, chance: random.Random):
    """A copy of a JSON value in which one to three places are changed, removed, duplicated or swapped."""
    tree = [copy.deepcopy(tree)]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(_places(tree))
        parent, key = chance.choice(places)
        kind = chance.randrange(6)
        if kind == 0 and parent is not tree:
            del parent[key]
        elif kind == 1:
            other, where = chance.choice(places)
            parent[key] = copy.deepcopy(other[where])
        elif kind == 2 and isinstance(parent, list):
            parent.insert(chance.randrange(len(parent) + 1), copy.deepcopy(parent[key]))
        elif kind == 3 and isinstance(parent, dict):
            parent[chance.choice(("value", "error", "counts", "source", "cell_type", "tensor", "x"))] = parent.pop(key)
        elif kind == 4 and isinstance(parent[key], list | dict) and chance.random() < 0.2:
            for _ in range(chance.choice((5, 40, 150))):
                parent[key] = [parent[key]] if chance.random() < 0.5 else {"list": [parent[key]]}
        else:
            parent[key] = copy.deepcopy(chance.choice(ODD))
    return tree[0]


def _places(tree):
    """Every (container, key) below `tree`."""
    keys = tree.keys() if isinstance(tree, dict) else range(len(tree))
    for key in list(keys):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def mutated_bytes(data: bytes, chance: random.Random) -> bytes:
    """A copy in which a few bytes are changed, removed, duplicated or added."""
    data = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0 and at < len(data):
            data[at] = chance.randrange(256)
        elif kind == 1:
            del data[at : at + chance.randrange(1, 64)]
        elif kind == 2:
            data[at:at] = data[at : at + chance.randrange(1, 64)]
        elif kind == 3:
            data[at:at] = chance.randbytes(chance.randrange(1, 16))
        else:
            del data[at:]
    return bytes(data)


def mutated_frame(frame: bytes, chance: random.Random) -> bytes:
    """A message with mutated bytes, a mutated structure, or false lengths."""
    lengths = struct.unpack_from(">II", frame)
    text, blob = frame[8 : 8 + lengths[0]], frame[8 + lengths[0] :]
    kind = chance.randrange(8)
    if kind == 0:
        return mutated_bytes(frame, chance)
    if kind == 1:
        return struct.pack(">II", *(chance.choice((0, 1, n, 2 * n, 2**26, 2**32 - 1)) for n in lengths)) + text + blob
    if kind == 2 and blob:
        blob = mutated_bytes(blob, chance)
    elif kind == 3:
        text = mutated_bytes(text, chance)
    else:
        text = dumps(mutated_tree(json.loads(text), chance))
    return struct.pack(">II", len(text), len(blob)) + text + blob


def dumps(tree) -> bytes:
    return json.dumps(tree).encode(errors="surrogatepass")
