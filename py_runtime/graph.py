"""A delegate's blob to a `Graph`: plain, immutable, in order of execution.

Format (ExecuTorch `backends/vulkan/serialization`), little endian:
    0   4 B  zero
    4   4 B  "VH00"
    8   u16  length of this header (30)
    10  u32  offset of the flatbuffer     14  u32  its size
    18  u32  offset of raw bytes          22  u64  their size
The flatbuffer is `schema.fbs`, identifier "VK00". Constants are named by the hash under
which the program's `named_data` lists them; older blobs keep them in the raw bytes.

The arguments of a node follow the operator's schema, keyword-only ones too; the last
one is the output, which a `Node` holds apart.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .container import AGAIN, Items, Region, broken_file, filled, text
from .dtypes import DType, from_vk_type
from .errors import ProgramError
from .schema import vulkan as vk

BACKEND = "VulkanBackend"
HEADER_MAGIC = b"VH00"
HEADER_BYTES = 30
NO_OFFSET = 2**64 - 1


@dataclass(frozen=True)
class Constant:
    """A tensor's bytes: by key in the program's named data, or at a place in a file.

    file: 0 for the program itself, then the `.ptd` files that it was loaded with.
    """

    key: str | None
    region: Region | None
    size: int
    file: int = 0


@dataclass(frozen=True)
class Tensor:
    """One tensor of a graph. shape is the upper bound where sizes are symbolic."""

    dtype: DType
    shape: tuple[int, ...]
    constant: Constant | None = None

    @property
    def count(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True)
class Ref:
    """An argument that is a tensor, by its id."""

    id: int


@dataclass(frozen=True)
class Symbol:
    """An argument that is a symbolic integer, by its id, and its upper bound."""

    id: int
    value: int


@dataclass(frozen=True)
class Element:
    """An integer that a run computes: one element of an integer tensor, times scale, plus offset.

    Operators that take it read it on the GPU (`Call.scalar`).
    """

    tensor: int
    index: int
    scale: int = 1
    offset: int = 0


Arg = Ref | Symbol | Element | int | float | bool | str | None | tuple["Arg", ...]


@dataclass(frozen=True)
class Node:
    """One operator call: its name as serialized, its arguments and its output tensors.

    fused holds the elementwise nodes that a pass folded into this one, in order.
    """

    op: str
    args: tuple[Arg, ...]
    outputs: tuple[int, ...]
    fused: tuple[Node, ...] = ()

    def tensors(self) -> tuple[int, ...]:
        """The ids of all tensors it reads, those of fused nodes too; not what it makes itself."""
        made = set(self.outputs)
        ids = list(_refs(self.args))
        for node in self.fused:
            ids.extend(_refs(node.args))
            made.update(node.outputs)
        if self.fused:
            made.update(self.fused[-1].outputs)
        return tuple(dict.fromkeys(i for i in ids if i not in made))

    @property
    def results(self) -> tuple[int, ...]:
        """The ids that others can read: of the last fused node, where there is one."""
        return self.fused[-1].outputs if self.fused else self.outputs


def _refs(args: tuple[Arg, ...]) -> list[int]:
    found: list[int] = []
    for arg in args:
        if isinstance(arg, Ref):
            found.append(arg.id)
        elif isinstance(arg, Element):
            found.append(arg.tensor)
        elif isinstance(arg, tuple):
            found.extend(_refs(arg))
    return found


def rename_tensors(node: Node, names: Mapping[int, int]) -> Node:
    """The node on other tensors and symbols; those that names does not list keep their ids."""

    def rename(arg: Arg) -> Arg:
        if isinstance(arg, Ref):
            return Ref(names.get(arg.id, arg.id))
        if isinstance(arg, Symbol):
            return Symbol(names.get(arg.id, arg.id), arg.value)
        if isinstance(arg, Element):
            return replace(arg, tensor=names.get(arg.tensor, arg.tensor))
        if isinstance(arg, tuple):
            return tuple(rename(item) for item in arg)
        return arg

    return replace(node, args=tuple(rename(a) for a in node.args), outputs=tuple(names.get(o, o) for o in node.outputs))


@dataclass(frozen=True)
class Graph:
    """Nodes in order of execution over tensors by id.

    older, states: what passes/mutations.py found: tensors that lie in the memory of another,
    which they are a newer version of; and tensors that keep their value from run to run,
    each with the constant that it starts as.
    """

    tensors: dict[int, Tensor]
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    symbols: dict[int, int] = field(default_factory=dict)
    older: dict[int, int] = field(default_factory=dict)
    states: dict[int, int] = field(default_factory=dict)

    def with_nodes(self, nodes: tuple[Node, ...] | list[Node]) -> Graph:
        return replace(self, nodes=tuple(nodes))


def parse_delegate(blob: bytes, base: int | None = None) -> Graph:
    """Parse one delegate blob.

    base: where the blob starts in the file, needed only for constants kept in the blob
    itself. Raises ProgramError for anything that does not fit together.
    """
    if len(blob) < HEADER_BYTES or blob[4:8] != HEADER_MAGIC:
        raise ProgramError(
            f"a delegate's data should have {HEADER_MAGIC!r} at byte 4 and has {blob[4:8]!r}: the file is damaged"
        )
    _, offset, size, raw_offset, raw_size = struct.unpack_from("<HIIIQ", blob, 8)
    if offset + size > len(blob) or raw_offset + raw_size > len(blob) or size < 8:
        raise ProgramError(
            f"a delegate of {len(blob):,} bytes announces a graph at {offset}+{size} and data at "
            f"{raw_offset}+{raw_size}: the file is damaged"
        )
    raw = None if base is None else Region(base + raw_offset, raw_size)
    with broken_file("delegate"):
        return _read_graph(blob[offset : offset + size], raw)


def _read_graph(data: bytes, raw: Region | None) -> Graph:
    root = vk.VkGraph.GetRootAs(data, 0)
    items = Items(len(data))
    values = [_Value(root.Values(i)) for i in range(items.checked(root.ValuesLength()))]
    constants = [_constant(root.Constants(i), raw) for i in range(items.checked(root.ConstantsLength()))]
    tensors = {i: _tensor(v.table, constants) for i, v in enumerate(values) if v.kind == vk.GraphTypes.VkTensor}
    symbols = {i: int(v.table.Value()) for i, v in enumerate(values) if v.kind == vk.GraphTypes.SymInt}
    reader = _Arguments(values, tensors, symbols, items)
    nodes = [reader.node(root.Chain(i)) for i in range(items.checked(root.ChainLength()))]
    inputs = tuple(int(root.InputIds(i)) for i in range(items.checked(root.InputIdsLength())))
    outputs = tuple(int(root.OutputIds(i)) for i in range(items.checked(root.OutputIdsLength())))
    for index in (*inputs, *outputs):
        if index not in tensors and index not in symbols:
            raise ProgramError(f"value {index} is an input or output of a delegate but no tensor")
    return Graph(tensors, tuple(nodes), inputs, outputs, symbols)


class _Value:
    """One VkValue: its kind and its table, whatever the union holds."""

    def __init__(self, value: Any) -> None:
        self.kind = value.ValueType()
        self.table: Any = filled(TABLES[self.kind](), value.Value()) if self.kind in TABLES else None


TABLES = {
    vk.GraphTypes.Int: vk.Int,
    vk.GraphTypes.Double: vk.Double,
    vk.GraphTypes.Bool: vk.Bool,
    vk.GraphTypes.VkTensor: vk.VkTensor,
    vk.GraphTypes.IntList: vk.IntList,
    vk.GraphTypes.DoubleList: vk.DoubleList,
    vk.GraphTypes.BoolList: vk.BoolList,
    vk.GraphTypes.ValueList: vk.ValueList,
    vk.GraphTypes.String: vk.String,
    vk.GraphTypes.SymInt: vk.SymInt,
}


def _constant(table: Any, raw: Region | None) -> Constant:
    size = int(table.Length())
    if table.NamedKey():
        return Constant(text(table.NamedKey()), None, size)
    if raw is None or table.Offset() + size > raw.size:
        raise ProgramError(f"a constant of {size:,} bytes has no name and is not in its delegate's data")
    return Constant(None, Region(raw.offset + int(table.Offset()), size), size)


def _tensor(table: Any, constants: list[Constant]) -> Tensor:
    if table.DimsLength() > 16:
        raise ProgramError(f"a tensor of {table.DimsLength()} dimensions is announced; 16 is the most")
    shape = tuple(int(table.Dims(i)) for i in range(table.DimsLength()))
    dtype = from_vk_type(table.Datatype())
    index = table.ConstantId()
    if index < 0:
        return Tensor(dtype, shape)
    if index >= len(constants):
        raise ProgramError(f"a tensor is constant {index}; the delegate lists {len(constants)}")
    tensor = Tensor(dtype, shape, constants[index])
    if tensor.count * dtype.size > constants[index].size:
        raise ProgramError(
            f"a constant {dtype.name}{list(shape)} needs {tensor.count * dtype.size:,} bytes; "
            f"{constants[index].size:,} are stored"
        )
    return tensor


class _Arguments:
    """Turns a node's value ids into Python arguments."""

    def __init__(self, values: list[_Value], tensors: dict[int, Tensor], symbols: dict[int, int], items: Items) -> None:
        self.values, self.tensors, self.symbols, self.items = values, tensors, symbols, items
        self.read: dict[int, Arg] = {}

    def node(self, call: Any) -> Node:
        name = text(call.Name())
        ids = [int(call.Args(i)) for i in range(self.items.checked(call.ArgsLength()))]
        if not ids:
            raise ProgramError(f"{name} has no arguments, not even an output")
        output = self.arg(ids[-1])
        outputs = output if isinstance(output, tuple) else (output,)
        results: list[int] = []
        for out in outputs:
            if not isinstance(out, Ref | Symbol):
                raise ProgramError(f"{name} writes to something that is no tensor")
            results.append(out.id)
        return Node(name, tuple(self.arg(i) for i in ids[:-1]), tuple(results))

    def arg(self, index: int, depth: int = 0) -> Arg:
        """A value by its id; each is read once, however many nodes name it."""
        if not 0 <= index < len(self.values):
            raise ProgramError(f"value {index} is named; the delegate has {len(self.values)}. {AGAIN}")
        if depth > 4:
            raise ProgramError(f"value {index} of a delegate is a list within four others. {AGAIN}")
        if index not in self.read:
            self.read[index] = self._read(index, depth)
        return self.read[index]

    def _read(self, index: int, depth: int) -> Arg:
        value = self.values[index]
        kind, table = value.kind, value.table
        if kind == vk.GraphTypes.VkTensor:
            return Ref(index)
        if kind == vk.GraphTypes.SymInt:
            return Symbol(index, self.symbols[index])
        if kind == vk.GraphTypes.ValueList:
            count = self.items.checked(table.ItemsLength())
            return tuple(self.arg(int(table.Items(i)), depth + 1) for i in range(count))
        if kind in LISTS:
            count = self.items.checked(table.ItemsLength())
            return tuple(LISTS[kind](table.Items(i)) for i in range(count))
        if kind in SCALARS:
            scalar: int | float | bool | str = SCALARS[kind](table)
            return scalar
        if kind == vk.GraphTypes.Null:
            return None
        raise ProgramError(f"value {index} of a delegate has kind {kind}, which is newer than this reader")


LISTS: dict[int, Any] = {
    vk.GraphTypes.IntList: int,
    vk.GraphTypes.DoubleList: float,
    vk.GraphTypes.BoolList: bool,
}
SCALARS: dict[int, Any] = {
    vk.GraphTypes.Int: lambda t: int(t.IntVal()),
    vk.GraphTypes.Double: lambda t: float(t.DoubleVal()),
    vk.GraphTypes.Bool: lambda t: bool(t.BoolVal()),
    vk.GraphTypes.String: lambda t: text(t.StringVal()),
}
