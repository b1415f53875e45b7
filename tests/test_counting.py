"""Cost is counted, never timed: the largest tensor, the memory held at once, the work, forward and backward."""

import contextlib
import tracemalloc
import weakref

import numpy as np
import pytest
import torch

from autograder.catalogue import find
from autograder.checks.samples import hand_in, solution, with_answer
from autograder.exam.complexity import fits_in, grows_at_most, is_straight
from autograder.exam.proxy import Local, Student
from autograder.grading.grade import Conditions, grade_file
from autograder.verdicts import Broken

LENGTHS = (48, 96, 192)
TILE = 8


def student(**functions) -> Student:
    return Student(Local(functions))


def rows(n):
    return (torch.ones(n, 4, dtype=torch.float64),)


def growing(function, what, **asked):
    grows_at_most(student(f=function), "f", rows, lengths=LENGTHS, power=1, what=what, **asked)


def too_fast():
    return pytest.raises(Broken, match=r"grows as n\^(1\.9|2\.0); n\^1\.0 is required")


def dense(x):
    return (x @ x.T).softmax(-1) @ x


def tiles_kept(x):
    """The whole n × n table, in tiles that are too small to be noticed individually."""
    table = [[a @ b.T for b in x.split(TILE)] for a in x.split(TILE)]
    return torch.cat([sum(t @ b for t, b in zip(line, x.split(TILE), strict=True)) for line in table])


def tiles_freed(x):
    """All the work, but one tile at a time."""
    return torch.cat([sum((a @ b.T) @ b for b in x.split(TILE)) for a in x.split(TILE)])


def linear(x):
    return x @ (x.T @ x)


def one_row_at_a_time(x):
    return torch.stack([(x[i] * x[max(i - 2, 0) : i + 3]).sum(0) for i in range(len(x))])


def hidden_in_numpy(x):
    y = x.detach().numpy()
    return torch.from_numpy((y @ y.T) @ y)


def hidden_in_lists(x):
    column = x[:, 0].tolist()
    table = [[a * b for b in column] for a in column]
    return x * sum(map(sum, table))


@pytest.mark.parametrize("what", ["largest", "live", "flops", "elements"])
def test_a_dense_table_shows_in_every_count(what):
    growing(linear, what)
    with too_fast():
        growing(dense, what)


def test_tiles_that_are_kept_count_together():
    growing(tiles_kept, "largest")
    with too_fast():
        growing(tiles_kept, "live")


def test_tiles_that_are_freed_still_count_as_work():
    growing(tiles_freed, ("largest", "live"))
    with too_fast():
        growing(tiles_freed, "flops")


def test_the_backward_pass_is_counted_too():
    class Sly(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return (x @ x.T) @ grad

    backward = {"wrt": (0,), "cotangents": rows}
    growing(Sly.apply, ("largest", "live"))
    for what in ("largest", "live"):
        growing(linear, what, **backward)
        growing(one_row_at_a_time, what, **backward)
        with pytest.raises(Broken, match=r"with the backward pass, .* grows as n\^(1\.9|2\.0)"):
            growing(Sly.apply, what, **backward)


def test_gathering_from_a_view_counts_what_is_read():
    def gathers(x):
        window = torch.arange(len(x))[:, None].expand(-1, 3)
        return x.T[:, None].expand(-1, len(x), -1).gather(-1, window.expand(4, -1, -1)).sum(-1)

    growing(gathers, ("largest", "live", "elements"))


def test_data_that_leaves_pytorch_is_counted():
    growing(lambda x: x * sum(x[:, 0].tolist()), "left")
    for leaves in (lambda x: x * np.asarray(x @ x.T).sum(), lambda x: x * sum(map(sum, (x @ x.T).tolist()))):
        with too_fast():
            growing(leaves, "left")


@pytest.mark.parametrize("function", [hidden_in_numpy, hidden_in_lists, dense])
def test_a_hidden_table_is_found_in_a_notebook_too(function):
    with pytest.raises(Broken, match=r"takes \d+ MB for inputs of 0\.0 MB; 4 are enough"):
        fits_in(student(f=function), "f", *rows(1000), megabytes=4)


@pytest.mark.parametrize("function", [linear, one_row_at_a_time])
def test_small_memory_fits(function):
    fits_in(student(f=function), "f", *rows(1000), megabytes=4)
    if function is linear:
        fits_in(student(f=function), "f", *rows(1000), megabytes=4, wrt=(0,), cotangents=rows(1000))


def test_a_storage_is_live_until_it_is_freed():
    def one_after_another(x):
        for _ in range(20):
            x = x + 1
        return x

    counts = student(f=one_after_another).measure("f", torch.ones(1000))
    assert 4000 <= counts["live"] <= 3 * 4000
    all_at_once = student(f=lambda x: sum([x + i for i in range(20)])).measure("f", torch.ones(1000))
    assert all_at_once["live"] >= 20 * 4000


def test_counting_keeps_no_tensor_alive():
    seen = []

    def remembers(x):
        y = x * 2
        seen.append(weakref.ref(y))
        return (y + 1).sum()

    student(f=remembers).measure("f", torch.ones(5))
    assert seen[0]() is None


OUTSIDE = {
    "ctypes": "buffer = (ctypes.c_double * n**2)()\n    ctypes.memset(buffer, 1, 8 * n**2)",
    "mmap": "buffer = mmap.mmap(-1, 8 * n**2)\n    buffer.write(bytes(8) * n**2)",
}


@pytest.mark.parametrize("way", OUTSIDE)
def test_memory_allocated_outside_pytorch_is_measured(tmp_path, way):
    exercise = find("05_softmax")
    answer = f"""
import ctypes, mmap, torch

def softmax_vjp(p, grad):
    n = p.shape[-1]
    {OUTSIDE[way]}
    return p * (grad - (p * grad).sum(-1, keepdim=True))
"""
    path = hand_in(tmp_path, "somebody", exercise, with_answer(solution(exercise), "softmax_vjp", answer))
    parts = grade_file("somebody", exercise.name, path, Conditions("salt", may_lack=None)).report.parts
    part = next(part for part in parts if part.id == "softmax_vjp")
    assert part.verdict == "wrong"
    assert "MB" in part.message.en


@pytest.mark.parametrize(
    ("function", "widest"),
    [
        (lambda x: x.sum(-1), 12),
        (lambda x: x.amax(0), 5),
        (lambda x: x.max(-1).values, 12),
        (lambda x: x.softmax(-1), 12),
        (lambda x: x.softmax(0), 5),
        (lambda x: x.cumsum(1), 12),
        (lambda x: x.logsumexp(-1), 12),
        (lambda x: x @ x.new_ones(12), 12),
        (lambda x: x.new_tensor(x.numpy().sum(-1)), 12),
        (lambda x: sum(part.sum(-1) for part in x.split(4, -1)), 4),
        (lambda x: torch.maximum(x[:, 0], x[:, 1]), 0),
        (lambda x: x if (x == 0).all() else x + 1, 0),
        (lambda x: x.clone(), 0),
    ],
)
def test_the_widest_reduction_is_counted(function, widest):
    assert student(f=function).measure("f", torch.rand(5, 12))["reduced"] == widest


def test_each_shape_is_counted_once_in_a_part():
    calls = []

    def f(x):
        calls.append(x.shape)
        return x + 1

    masks = find("06_masks")
    asked = student(f=f)
    for part, salt, times in (("causal_mask", 0.0, 1), ("causal_mask", 1.0, 1), ("padding_mask", 0.0, 2)):
        asked.begin(masks.part(part))
        counts = asked.measure("f", torch.full((3, 4), salt))
        assert counts["elements"] >= 12
        assert len(asked.exchanges) == 1  # as if it had been asked, because a diagnosis compares question by question
        assert len(calls) == times
    asked.measure("f", torch.zeros(3, 5))
    asked.measure("f", torch.zeros(3, 5), trace=True)
    assert len(calls) == 4


def test_stopping_the_memory_trace_is_detected():
    def stops(x):
        tracemalloc.stop()
        return x + 1

    with pytest.raises(Broken, match="switched off the watch"):
        fits_in(student(f=stops), "f", *rows(4), megabytes=1)


@pytest.mark.parametrize(
    ("counts", "straight"),
    [
        ([10, 20, 30], True),
        ([1000, 1010, 1020], True),
        ([5, 5, 5], True),
        ([1, 4, 9], False),
        ([1001, 1004, 1009], False),
    ],
)
def test_a_straight_line_differs_from_a_curve_whatever_the_offset(counts, straight):
    assert is_straight(counts) is straight


@pytest.mark.parametrize(("function", "lengths"), [(linear, [4, 8, 12]), (tiles_freed, [4, 8, 12, 48, 96])])
def test_long_lengths_are_tried_only_when_short_ones_are_not_straight(function, lengths):
    tried = []

    def f(x):
        tried.append(len(x))
        return function(x)

    with contextlib.suppress(Broken):
        grows_at_most(student(f=f), "f", rows, lengths=(48, 96), sooner=(4, 8, 12), power=1, what="flops")
    assert tried == lengths


@pytest.mark.parametrize("watched", ["flops", "reduced"])
def test_products_are_counted_under_inference_mode_too(watched):
    """There a product reaches the watcher whole, as `matmul`."""
    x = torch.ones(3, 5, 4)
    usual, inference = (student(f=mode()(dense)).measure("f", x[0]) for mode in (torch.no_grad, torch.inference_mode))
    assert inference[watched] == usual[watched] > 0
