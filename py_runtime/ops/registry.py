"""The operator registry: a name in a graph to the function that lowers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..dtypes import DType
from ..errors import UnsupportedError
from ..graph import Arg, Element, Graph, Node, Ref, Tensor
from ..kernels import Binding, Dispatch, Target, read
from ..passes.views import Place, Placed

Lower = Callable[["Call"], None]

OPERATORS: dict[str, Lower] = {}


def operator(*names: str) -> Callable[[Lower], Lower]:
    """Register a lowering under the names that graphs use for it."""

    def register(lower: Lower) -> Lower:
        for name in names:
            OPERATORS[name] = lower
        return lower

    return register


@dataclass
class Lowering:
    """What lowering adds to: dispatches in order, and tensors that only kernels know.

    storages: WGSL element types of root tensors that differ from their dtype's own.
    """

    placed: Placed
    target: Target
    storages: dict[int, str] = field(default_factory=dict)
    dispatches: list[Dispatch] = field(default_factory=list)
    tensors: dict[int, Tensor] = field(default_factory=dict)
    packed: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tensors.update(self.placed.graph.tensors)

    @property
    def graph(self) -> Graph:
        return self.placed.graph

    def new_tensor(self, dtype: DType, shape: tuple[int, ...]) -> int:
        """A tensor for a kernel's own use; its id."""
        tensor = max(self.tensors, default=-1) + 1
        self.tensors[tensor] = Tensor(dtype, shape)
        return tensor

    def place(self, tensor: int) -> Place:
        return self.placed.place(tensor)

    def elem(self, tensor: int) -> str:
        """The WGSL type of an element of this tensor in memory on this device."""
        own = storage_type(self.tensors[tensor].dtype, self.target)
        return self.storages.get(self.place(tensor).root, own)


def storage_type(dtype: DType, target: Target) -> str:
    """The WGSL type in which elements of dtype lie in memory on this device."""
    return "f32" if dtype.storage == "f16" and not target.f16 else dtype.storage


@dataclass(frozen=True)
class Call:
    """One node while it is lowered, with its arguments checked on the way out."""

    node: Node
    lowering: Lowering

    @property
    def op(self) -> str:
        return self.node.op

    @property
    def target(self) -> Target:
        return self.lowering.target

    def emit(self, dispatch: Dispatch) -> None:
        self.lowering.dispatches.append(dispatch)

    def arg(self, index: int, default: Arg = None) -> Arg:
        """The argument at index, or default when the schema is older and shorter."""
        return self.node.args[index] if index < len(self.node.args) else default

    def tensor_id(self, index: int) -> int:
        arg = self.arg(index)
        if not isinstance(arg, Ref):
            raise self.unsupported(f"argument {index} is {arg!r}, a tensor is needed")
        return arg.id

    def tensor(self, index: int) -> Tensor:
        return self.lowering.tensors[self.tensor_id(index)]

    def optional_id(self, index: int) -> int | None:
        return None if self.arg(index) is None else self.tensor_id(index)

    def shape(self, tensor: int) -> tuple[int, ...]:
        return self.lowering.tensors[tensor].shape

    def integer(self, index: int, default: int | None = None) -> int:
        """An integer argument; whole numbers may be stored as doubles."""
        arg = self.arg(index, default)
        if arg is None:
            arg = default
        if isinstance(arg, float) and arg.is_integer():
            arg = int(arg)
        if not isinstance(arg, int):
            raise self.unsupported(f"argument {index} is {arg!r}, an integer is needed")
        return arg

    def scalar(self, index: int, name: str) -> tuple[str, tuple[Binding, ...]]:
        """An integer argument as WGSL of type i32, and the tensor it is read from where a run computes it."""
        arg = self.arg(index)
        if not isinstance(arg, Element):
            return f"{self.integer(index)}i", ()
        text = f"(i32({name}[{name}_offset + {arg.index}u]) * {arg.scale}i + {arg.offset}i)"
        return text, (read(name, arg.tensor, self.lowering.elem(arg.tensor)),)

    def number(self, index: int, default: float | None = None) -> float:
        arg = self.arg(index, default)
        if arg is None:
            arg = default
        if not isinstance(arg, int | float):
            raise self.unsupported(f"argument {index} is {arg!r}, a number is needed")
        return float(arg)

    def integers(self, index: int, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        arg = self.arg(index, default)
        if arg is None:
            arg = default
        if not isinstance(arg, tuple):
            raise self.unsupported(f"argument {index} is {arg!r}, a list of integers is needed")
        found = []
        for item in arg:
            if isinstance(item, float) and item.is_integer():
                item = int(item)
            if not isinstance(item, int):
                raise self.unsupported(f"argument {index} has {item!r} in it, integers are needed")
            found.append(item)
        return tuple(found)

    @property
    def out(self) -> int:
        """The output that others read: of the last fused node where there is one."""
        return self.node.results[0]

    def unsupported(self, why: str) -> UnsupportedError:
        shapes = [list(self.shape(t)) for t in self.node.tensors()]
        return UnsupportedError(f"{self.op} with tensors of shape {shapes}: {why}")
