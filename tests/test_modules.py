"""The harness for class exercises: the student's module with drawn layers, against the reference module."""

import pytest
import torch
from torch import nn

from autograder.catalogue import catalogue
from autograder.exam import Broken, Draw, Loaded, ModuleFormula, Student, require_refused
from autograder.exam.proxy import Local
from autograder.learner.check_part import check_part
from autograder.mistakes.ch11_self_cross_causal import NormalisesAfterAdding
from autograder.reference import ch11_self_cross_causal as blocks


class Sublayer(nn.Module):
    """The reference of these tests."""

    def __init__(self, width, bias=True):
        super().__init__()
        if width < 1:
            raise ValueError("no width")
        self.norm = nn.LayerNorm(width)
        self.proj = nn.Linear(width, width, bias=bias)

    def forward(self, x, mask=None):
        out = self.proj(self.norm(x))
        return out if mask is None else out.masked_fill(mask == 0, 0.0)


class ChangesItsInput(Sublayer):
    def forward(self, x, mask=None):
        out = super().forward(x, mask)
        x += 1
        return out


class DetachesTheNorm(Sublayer):
    def forward(self, x, mask=None):
        return self.proj(self.norm(x).detach())


class Columns(ModuleFormula):
    norm_axis = 1


class LoadedByColumns(Loaded):
    formula_class = Columns


def student_with(answer) -> Student:
    student = Student(Local({"Sublayer": answer}))
    student.begin(catalogue()["11_self_cross_causal"].parts[0])
    return student


def loaded(answer, kind=Loaded, **options) -> Loaded:
    return kind(student_with(answer), Draw("layers", ""), Sublayer, 4, **options)


@pytest.fixture
def x():
    return Draw("input", "")(2, 3, 4)


@pytest.mark.parametrize("kind", [Loaded, LoadedByColumns])
def test_a_right_module_is_right_in_every_way(kind, x):
    module = loaded(Sublayer, kind)
    module.keeps(x, mask=torch.tensor([1, 0, 1, 1]))
    module.differentiates(x, cotangents=(torch.ones_like(x),))
    module.leaves_alone(x)
    module.reload(proj=torch.zeros(4, 5, dtype=torch.float64)).keeps(x)


def test_a_module_that_changes_its_input_is_told_so(x):
    with pytest.raises(Broken, match="Sublayer: the inputs were changed"):
        loaded(ChangesItsInput).leaves_alone(x)


def test_gradients_are_named_by_input_and_by_layer(x):
    with pytest.raises(Broken, match="Sublayer → ∂/∂x"):
        loaded(DetachesTheNorm).differentiates(x, cotangents=(torch.ones_like(x),))


def test_a_bias_is_found_where_there_should_be_none():
    draw = Draw("bias", "")
    assert not loaded(Sublayer, bias=False).has_bias("proj", draw)
    assert loaded(lambda width, bias: Sublayer(width), bias=False).has_bias("proj", draw)


def test_what_is_no_module_is_told_so():
    with pytest.raises(Broken, match=r"Sublayer: not an nn\.Module"):
        loaded(lambda width: width)


def test_bad_sizes_must_be_refused():
    refusal = {"inputs": (torch.ones(1, 0),), "en": "no width", "zh": "没有宽度"}
    require_refused(student_with(Sublayer), "Sublayer", 0, **refusal)
    with pytest.raises(Broken, match="Sublayer: no width must raise ValueError"):
        require_refused(student_with(lambda width: nn.Identity()), "Sublayer", 0, **refusal)


def test_a_card_shows_the_shapes_of_inputs_and_layers():
    exercise = catalogue()["11_self_cross_causal"]
    right = {part.name: getattr(blocks, part.name) for part in exercise.parts}
    answers = right | {"EncoderBlock": NormalisesAfterAdding}
    shown = check_part(exercise, exercise.part("EncoderBlock"), answers).failure.inputs
    assert shown.startswith(
        "EncoderBlock(12, 3, 10)(x=tensor [2, 5, 12], norm1=tensor [12, 2], attn.q_proj=tensor [12, 13]"
    )


class InAList(Sublayer):
    """The same layer, registered first in a ModuleList and then by its name."""

    def __init__(self, width):
        nn.Module.__init__(self)
        whole = Sublayer(width)
        self.everything = nn.ModuleList(whole.children())
        for name, layer in whole.named_children():
            setattr(self, name, layer)


def test_a_layer_that_is_also_in_a_list_is_found_by_its_name():
    inputs = torch.ones(2, 3, 4, dtype=torch.float64)
    loaded(InAList).keeps(inputs)
