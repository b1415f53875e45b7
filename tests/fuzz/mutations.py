"""Spoil data at random, always in the same way for the same seed."""

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


def spoiled_tree(tree, chance: random.Random):
    """A copy of a JSON value with one to three places changed, removed, doubled or exchanged."""
    tree = [copy.deepcopy(tree)]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(_places(tree))
        parent, key = chance.choice(places)
        deed = chance.randrange(6)
        if deed == 0 and parent is not tree:
            del parent[key]
        elif deed == 1:
            other, where = chance.choice(places)
            parent[key] = copy.deepcopy(other[where])
        elif deed == 2 and isinstance(parent, list):
            parent.insert(chance.randrange(len(parent) + 1), copy.deepcopy(parent[key]))
        elif deed == 3 and isinstance(parent, dict):
            parent[chance.choice(("value", "error", "counts", "source", "cell_type", "tensor", "x"))] = parent.pop(key)
        elif deed == 4 and isinstance(parent[key], list | dict) and chance.random() < 0.2:
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


def spoiled_bytes(data: bytes, chance: random.Random) -> bytes:
    """A copy with a few bytes changed, cut out, doubled or added."""
    data = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(data) + 1)
        deed = chance.randrange(5)
        if deed == 0 and at < len(data):
            data[at] = chance.randrange(256)
        elif deed == 1:
            del data[at : at + chance.randrange(1, 64)]
        elif deed == 2:
            data[at:at] = data[at : at + chance.randrange(1, 64)]
        elif deed == 3:
            data[at:at] = chance.randbytes(chance.randrange(1, 16))
        else:
            del data[at:]
    return bytes(data)


def spoiled_frame(frame: bytes, chance: random.Random) -> bytes:
    """A message spoiled in its bytes, in its structure, or in what it says of its own length."""
    lengths = struct.unpack_from(">II", frame)
    text, blob = frame[8 : 8 + lengths[0]], frame[8 + lengths[0] :]
    deed = chance.randrange(8)
    if deed == 0:
        return spoiled_bytes(frame, chance)
    if deed == 1:
        return struct.pack(">II", *(chance.choice((0, 1, n, 2 * n, 2**26, 2**32 - 1)) for n in lengths)) + text + blob
    if deed == 2 and blob:
        blob = spoiled_bytes(blob, chance)
    elif deed == 3:
        text = spoiled_bytes(text, chance)
    else:
        text = dumps(spoiled_tree(json.loads(text), chance))
    return struct.pack(">II", len(text), len(blob)) + text + blob


def dumps(tree) -> bytes:
    return json.dumps(tree).encode(errors="surrogatepass")
