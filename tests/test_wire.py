"""Only data can cross the trust line."""

import socket
import struct
import threading
import time

import numpy as np
import pytest
import torch

from autograder.student import wire


def sent_and_received(value):
    return wire.decode_frame(wire.encode(value))


@pytest.mark.parametrize("value", [None, True, 3, -(2**70), 0.25, float("inf"), "文字", [1, (2, "a")], {"a": [None]}])
def test_plain_values_arrive_unchanged(value):
    assert sent_and_received(value) == value


def test_nan_arrives():
    assert sent_and_received(float("nan")) != sent_and_received(float("nan"))


@pytest.mark.parametrize("dtype", wire.DTYPES.values(), ids=str)
def test_tensors_of_every_dtype_arrive_bit_for_bit(dtype):
    tensor = torch.arange(6).reshape(2, 3).to(dtype)
    back = sent_and_received({"x": tensor.T})["x"]
    assert back.dtype == dtype
    assert torch.equal(back, tensor.T)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_scalars_and_empty_tensors_arrive(shape):
    assert sent_and_received(torch.zeros(shape)).shape == shape


class Impostor(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "value",
    [
        object(),
        print,
        {1: 2},
        torch.zeros(2).as_subclass(Impostor),
        torch.zeros(2, dtype=torch.complex64),
        torch.eye(2).to_sparse(),
    ],
    ids=["object", "function", "odd keys", "subclass", "complex", "sparse"],
)
def test_other_objects_are_refused(value):
    with pytest.raises(wire.WireError):
        wire.encode(value)


def test_deep_nesting_is_refused():
    value = 1
    for _ in range(100):
        value = [value]
    with pytest.raises(wire.WireError):
        wire.encode(value)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"{}", b'{"tensor":"9"}', b'{"what":1}', b'{"dtype":"pickle"}', b'{"tuple":3}', b'{"dict":[]}', b'{"float":"x"}',
     b"[" * 100_000, b'{"int":"' + b"9" * 10_000 + b'"}', b"\xff"],
)  # fmt: skip
def test_a_forged_message_is_a_wire_error(text):
    with pytest.raises(wire.WireError):
        wire.decode(text, b"")


@pytest.mark.parametrize("text", [b"[1, 2]", b'{"dict":{"value":[1]}}', b'{"list":[' * 60 + b"1" + b"]}" * 60])
def test_untagged_and_deeply_nested_lists_are_refused(text):
    with pytest.raises(wire.WireError):
        wire.decode(text, b"")


def test_a_lone_surrogate_is_replaced():
    text = wire.decode(b'{"dict":{"\\udc00":"\\ud800 \\u6587"}}', b"")
    assert text == {"?": "? 文"}


def test_forged_tensors_are_a_wire_error():
    with pytest.raises(wire.WireError):
        wire.decode(b'{"tensor":"0"}', b"\xff" * 64)


def test_a_message_with_a_huge_size_is_not_read():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(struct.pack(">II", 2**32 - 1, 2**32 - 1))
        with pytest.raises(wire.WireError, match="allowed"):
            wire.receive(ours, time.monotonic() + 5)


def test_silence_ends_at_the_deadline():
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        wire.receive(ours, time.monotonic() + 0.05)


def test_a_slow_trickle_ends_at_the_deadline_too():
    ours, theirs = socket.socketpair()
    stop = threading.Event()

    def trickle():
        while not stop.wait(0.01):
            theirs.send(b"\0")

    theirs.sendall(struct.pack(">II", 10_000, 0))
    feeder = threading.Thread(target=trickle)
    feeder.start()
    try:
        with pytest.raises(TimeoutError):
            wire.receive(ours, time.monotonic() + 0.2)
    finally:
        stop.set()
        feeder.join()
        ours.close()
        theirs.close()


def test_a_closed_connection_is_noticed():
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours, pytest.raises(EOFError):
        wire.receive(ours, time.monotonic() + 5)


def test_two_answers_to_one_question_are_refused():
    one, other = socket.socketpair()
    with one, other:
        other.sendall(wire.encode(1) + wire.encode(2))
        with pytest.raises(wire.WireError, match="more than was asked for"):
            wire.receive(one, time.monotonic() + 5)


def test_a_message_arrives_in_pieces():
    one, other = socket.socketpair()
    frame = wire.encode({"x": torch.arange(50_000)})
    with one, other:
        pieces = [frame[:3], frame[3:9], frame[9:40_000], frame[40_000:]]
        threading.Thread(target=lambda: [other.sendall(piece) for piece in pieces]).start()
        assert torch.equal(wire.receive(one, time.monotonic() + 5)["x"], torch.arange(50_000))


def test_whole_numbers_of_numpy_arrive_as_python_numbers():
    arrived = sent_and_received([np.int64(7), np.int32(-1), np.uint8(255)])
    assert arrived == [7, -1, 255]
    assert {type(number) for number in arrived} == {int}
