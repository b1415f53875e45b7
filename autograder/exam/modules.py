"""Class exercises: the student's module with drawn layers, compared with the reference module.

    mha = Loaded(student, draw, reference.PackedMHA, 10, 10, 10, 12, 3)
    mha.keeps(query, key, value, attn_mask=mask)

`Loaded` draws numbers for all layers of the reference module, builds the student's class of the same name with the same
arguments, and loads the numbers into it by name. A suite that needs something else overrides it in a small subclass.
"""

import inspect
from typing import Any, ClassVar, Self

import torch
from torch import nn
from torch.func import functional_call

from autograder.verdicts import require

from .answers import Raised
from .comparison import Cotangents, agree, agree_gradients
from .promises import Draw
from .proxy import Module, Student

Tensors = dict[str, torch.Tensor]


class ModuleFormula:
    """A reference module in evaluation mode as a formula of its inputs and its layers, which are given by name.

    A linear layer is one matrix here, its bias the last column. So the gradient of a key bias, which is nothing but
    rounding, is judged by the size of its layer's gradient. A norm is its weight and its bias, stacked along `norm_axis`.
    """

    norm_axis: ClassVar[int] = 0
    scale_counts_bias: ClassVar[bool] = False  # whether the bias counts as an input when the scale is chosen

    def __init__(self, kind: type[nn.Module], *sizes: Any, **options: Any):
        self.kind, self.sizes, self.options = kind, sizes, options
        self.__name__ = kind.__name__
        with torch.device("meta"):
            self.blank = kind(*sizes, **options).eval()
        self.inputs = tuple(inspect.signature(self.blank.forward).parameters)
        self.shapes = {name: tuple(weight.shape) for name, weight in self.blank.named_parameters()}
        self.layers = {name.removesuffix(".weight"): shape for name, shape in self.shapes.items() if "weight" in name}

    def key(self) -> Any:
        return (type(self), self.kind, self.sizes, tuple(self.options.items()))

    @property
    def shown_as(self) -> str:
        """How the module is built. A learner's card shows it in front of the inputs."""
        options = (f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.__name__}({', '.join((*map(repr, self.sizes), *options))})"

    def __call__(self, **given: Any) -> Any:
        layers = {name: given.pop(name) for name in self.layers}
        return functional_call(self.blank, self.parameters(layers), (), given)

    def drawn(self, draw: Draw, dtype: torch.dtype) -> Tensors:
        """Numbers for all layers. The weights of a norm are near 1, its biases near 0."""
        layers = {}
        for name, shape in self.layers.items():
            if len(shape) == 1:
                size = (2, *shape) if self.norm_axis == 0 else (*shape, 2)
                norm = draw(*size, scale=0.3)
                norm.select(self.norm_axis, 0).add_(1)
                layers[name] = norm.to(dtype)
            else:
                bias = f"{name}.bias" in self.shapes
                inputs = shape[1] + (bias and self.scale_counts_bias)
                layers[name] = draw(shape[0], shape[1] + bias, scale=inputs**-0.5, dtype=dtype)
        return layers

    def parameters(self, layers: Tensors) -> Tensors:
        """The layers as the parameters of the module."""
        named = {}
        for name, shape in self.layers.items():
            if len(shape) == 1:
                weight, bias = layers[name].unbind(self.norm_axis)
            else:
                weight, bias = layers[name].tensor_split((shape[1],), 1)
            named[f"{name}.weight"] = weight.contiguous()
            if f"{name}.bias" in self.shapes:
                named[f"{name}.bias"] = bias.flatten().contiguous()
        return named

    def gradients(self, named: dict[str, torch.Tensor | None]) -> list[torch.Tensor]:
        """The parameters' gradients put together like the layers. No gradient counts as a zero gradient."""
        found = {}
        for name, shape in self.shapes.items():
            gradient = named.get(name)
            found[name] = torch.zeros(shape, dtype=torch.float64) if gradient is None else gradient
            require(
                found[name].shape == shape,
                f"{self.__name__} → ∂/∂{name}: shape {list(found[name].shape)}, expected {list(shape)}",
                f"{self.__name__} → ∂/∂{name}：形状为 {list(found[name].shape)}，应为 {list(shape)}",
            )
        together = []
        for name, shape in self.layers.items():
            pair = [found[f"{name}.{half}"] for half in ("weight", "bias") if f"{name}.{half}" in found]
            together.append(torch.stack(pair, self.norm_axis) if len(shape) == 1 else torch.column_stack(pair))
        return together


_formulas: dict[Any, ModuleFormula] = {}


def _formula(formula_class: type[ModuleFormula], kind: type[nn.Module], *sizes: Any, **options: Any) -> ModuleFormula:
    """The same formula for the same arguments, because building the module takes as long as a short test."""
    key = (formula_class, kind, sizes, tuple(options.items()))
    if key not in _formulas:
        _formulas[key] = formula_class(kind, *sizes, **options)
    return _formulas[key]


class Loaded:
    """The student's module with drawn layers, and what it must give.

    Inputs are positional. Masks are keywords and may have any dtype.
    """

    formula_class: ClassVar[type[ModuleFormula]] = ModuleFormula
    training: ClassVar[bool] = True  # the mode it is asked in

    def __init__(
        self,
        student: Student,
        draw: Draw,
        kind: type[nn.Module],
        *sizes: Any,
        dtype: torch.dtype = torch.float64,
        **options: Any,
    ):
        self.student, self.name = student, kind.__name__
        self.formula = _formula(self.formula_class, kind, *sizes, **options)
        self.layers = self.formula.drawn(draw, dtype)
        self.module = built(student, self.name, *sizes, **options).to(dtype)
        if not self.training:
            self.module.eval()
        self.load()

    def load(self) -> None:
        self.module.load(**self.formula.parameters(self.layers))

    def reload(self, **layers: torch.Tensor) -> Self:
        """With some layers replaced."""
        self.layers |= layers
        self.load()
        return self

    def has_bias(self, layer: str, draw: Draw) -> bool:
        """Whether a layer takes a bias when one is loaded."""
        bias = draw(self.formula.layers[layer][0])
        try:
            self.module.load(**{f"{layer}.bias": bias})
        except Raised:
            return False
        return True

    def keeps(self, *inputs: Any, **masks: Any) -> Any:
        """On these inputs it gives what the reference gives. Returns the student's value."""
        value = self.module(*inputs, **masks)
        self.agrees(value, *inputs, **masks)
        return value

    def agrees(self, value: Any, *inputs: Any, **masks: Any) -> None:
        """This is what the reference gives on these inputs."""
        agree(value, self.formula, **self._given(inputs, masks))

    def differentiates(self, *inputs: Any, cotangents: Cotangents, **masks: Any) -> None:
        """Values and gradients of the inputs and of all layers, by value."""
        found = self.module.vjp(*inputs, wrt=range(len(inputs)), cotangents=cotangents, **masks)
        self.agrees(found.value, *inputs, **masks)
        gradients = [*found.gradients, *self.formula.gradients(found.parameter_gradients)]
        wrt = (*self.formula.inputs[: len(inputs)], *self.formula.layers)
        agree_gradients(gradients, self.formula, **self._given(inputs, masks), wrt=wrt, cotangents=cotangents)

    def leaves_alone(self, *inputs: Any, **masks: Any) -> None:
        """The inputs stay as they were. The second answer, in evaluation mode, is as right as the first."""
        self.keeps(*inputs, **masks)
        require_inputs_unchanged(self.student, self.name)
        if self.training:
            self.module.eval()
        self.keeps(*inputs, **masks)

    def _given(self, inputs: tuple[Any, ...], masks: dict[str, Any]) -> dict[str, Any]:
        """Everything the formula needs. A mask becomes bool, because its dtype is no measure of precision."""
        seen = {name: mask != 0 if isinstance(mask, torch.Tensor) else mask for name, mask in masks.items()}
        return dict(zip(self.formula.inputs, inputs, strict=False)) | self.layers | seen


def built(student: Student, name: str, *sizes: Any, **options: Any) -> Module:
    """The student's module, with the numbers it began with."""
    module = getattr(student, name)(*sizes, **options)
    require(isinstance(module, Module), f"{name}: not an nn.Module", f"{name}：不是 nn.Module")
    found: Module = module
    return found


def require_inputs_unchanged(student: Student, name: str) -> None:
    """The last call left the tensors it was given as they were."""
    require(not student.changed_inputs(), f"{name}: the inputs were changed", f"{name}：输入被改动了")


def require_refused(
    student: Student,
    name: str,
    *sizes: Any,
    inputs: tuple[Any, ...],
    en: str,
    zh: str,
    train: bool = False,
    **options: Any,
) -> None:
    """The constructor, or at the latest the first call, raises ValueError. `en` and `zh` say what is refused.

    With `train` the module is set to training mode before the call.
    """
    try:
        module = built(student, name, *sizes, **options)
        (module.train() if train else module)(*inputs)
        refused = False
    except Raised as raised:
        refused = "ValueError" in raised.kinds
    require(refused, f"{name}: {en} must raise ValueError", f"{name}：{zh}时应抛出 ValueError")
