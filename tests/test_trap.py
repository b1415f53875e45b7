"""A forbidden operator raises wherever it is called from, and works again afterwards."""

import threading

import pytest
import torch
import torch.nn.functional as F

from autograder.student.trap import Trap

FUSED = "scaled_dot_product_attention"
x = torch.ones(1, 2, 3)


def fused():
    return F.scaled_dot_product_attention(x, x, x)


def in_a_thread():
    caught = []

    def work():
        try:
            fused()
        except RuntimeError as refused:
            caught.append(refused)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    if caught:
        raise caught[0]


def behind_disabled_modes():
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunctionSubclass():
        fused()


@pytest.fixture
def trap():
    trap = Trap(stays=True)
    yield trap
    trap.set(())


@pytest.mark.parametrize("call", [fused, in_a_thread, behind_disabled_modes], ids=lambda call: call.__name__)
def test_a_forbidden_operator_raises_and_is_recorded(trap, call):
    with pytest.raises(RuntimeError, match="write it by hand"), trap.waiting_for([FUSED]):
        call()
    assert trap.sprung == {FUSED}


@pytest.mark.parametrize("stays", [True, False])
def test_the_trap_stays_set_only_when_asked(trap, stays):
    trap.stays = stays
    with trap.waiting_for([FUSED]):
        pass
    assert trap.names == ({FUSED} if stays else set())
    if not stays:
        assert fused().shape == x.shape


def test_only_the_currently_forbidden_operators_raise(trap):
    trap.set([FUSED])
    assert torch.softmax(x, -1).sum() == 2
    trap.set(["softmax"])
    with pytest.raises(RuntimeError, match="softmax"):
        torch.softmax(x, -1)
    trap.set(())
    assert torch.softmax(x, -1).sum() == 2
    assert fused().shape == x.shape


def test_a_python_function_cannot_be_trapped_as_an_operator(trap):
    trap.set(["multi_head_attention_forward"])
    assert fused().shape == x.shape
