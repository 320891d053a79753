"""The program inside a `.pte`: its flatbuffer (ExecuTorch `schema/program.fbs`) to a `Program`.

Only the flatbuffer is read here; segments are named by their place in the file, and
whoever needs one fetches it. Every offset, size and index is checked before use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .container import HEAD_BYTES, Header, Items, Region, broken_file, filled, parse_header, text
from .dtypes import DType, from_scalar_type
from .errors import ProgramError, TruncatedProgramError
from .schema import program as fb

MAX_RANK = 16


@dataclass(frozen=True)
class TensorValue:
    """A tensor of the program: its dtype, upper-bound shape and where its data is.

    data_index: 0 for activations, else the constant's index.
    arena: (memory id, byte offset) of a planned activation, else None.
    external_name: the key in a `.ptd` file, else None.
    """

    dtype: DType
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]
    data_index: int
    arena: tuple[int, int] | None
    dynamic: bool
    external_name: str | None = None


@dataclass(frozen=True)
class ListValue:
    """A list of other values, by index; -1 stands for None."""

    items: tuple[int, ...]


Value = TensorValue | ListValue | int | float | bool | str | tuple[int, ...] | tuple[float, ...] | None


@dataclass(frozen=True)
class KernelCall:
    """Call a CPU operator, by the name of its out-variant, on values."""

    operator: str
    args: tuple[int, ...]


@dataclass(frozen=True)
class DelegateCall:
    """Call a delegate: its inputs in its own order, then its outputs."""

    delegate: int
    args: tuple[int, ...]


@dataclass(frozen=True)
class MoveCall:
    source: int
    target: int


@dataclass(frozen=True)
class JumpFalseCall:
    condition: int
    target: int


@dataclass(frozen=True)
class FreeCall:
    value: int


Instruction = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall


@dataclass(frozen=True)
class Delegate:
    """A lowered subgraph: the backend's name and its blob, in the file or inline."""

    backend: str
    region: Region | None
    inline: bytes | None


@dataclass(frozen=True)
class MethodPlan:
    """One entry point of the program."""

    name: str
    values: tuple[Value, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    chains: tuple[tuple[Instruction, ...], ...]
    delegates: tuple[Delegate, ...]
    arena_sizes: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A parsed `.pte`: methods by name, and where the data lies in the file."""

    methods: dict[str, MethodPlan]
    segments: tuple[Region, ...]
    named_data: dict[str, Region]
    constants: tuple[Region, ...]
    mutable_constants: tuple[tuple[Region, ...], ...]


def parse_program(data: bytes, file_size: int) -> Program:
    """Parse the program at the head of a `.pte`.

    data: the file from its start, at least `Header.program_size` bytes of it.
    file_size: bytes of the whole file, against which segments are checked.
    Raises ProgramError or TruncatedProgramError.
    """
    header = parse_header(data[: max(HEAD_BYTES, 64)], file_size)
    if len(data) < header.program_size:
        raise TruncatedProgramError(
            f"the program needs {header.program_size:,} bytes at the file's start; {len(data):,} are there"
        )
    with broken_file("program"):
        return _Reader(data, header, file_size).program()


class _Reader:
    """Reads one program flatbuffer, with the checks the bindings do not make."""

    def __init__(self, data: bytes, header: Header, file_size: int) -> None:
        self.data, self.header, self.file_size = data, header, file_size
        self.items = Items(header.program_size)
        root = fb.Program.GetRootAs(data, 0)
        self.root = root
        self.segments = tuple(self._segment(s) for s in self.each(root.SegmentsLength, root.Segments))

    def each(self, length: Callable[[], int], item: Callable[[int], Any]) -> Iterator[Any]:
        """The items of a flatbuffer vector, once its length is seen to fit in the file."""
        return (item(i) for i in range(self.items.checked(length())))

    def ints(self, length: Callable[[], int], item: Callable[[int], int]) -> tuple[int, ...]:
        return tuple(int(x) for x in self.each(length, item))

    def _segment(self, segment: Any) -> Region:
        offset, size = self.header.segment_base + segment.Offset(), segment.Size()
        if offset + size > self.file_size:
            raise TruncatedProgramError(
                f"a segment ends at byte {offset + size:,}; the file has {self.file_size:,}. Fetch it again."
            )
        return Region(offset, size)

    def segment(self, index: int) -> Region:
        if not 0 <= index < len(self.segments):
            raise ProgramError(f"segment {index} is asked for; the file has {len(self.segments)}")
        return self.segments[index]

    def program(self) -> Program:
        root = self.root
        named = {text(n.Key()): self.segment(n.SegmentIndex()) for n in self.each(root.NamedDataLength, root.NamedData)}
        plans = [self.method(p) for p in self.each(root.ExecutionPlanLength, root.ExecutionPlan)]
        if not plans:
            raise ProgramError("the program has no method to run")
        constant_segment = root.ConstantSegment()
        return Program(
            methods={plan.name: plan for plan in plans},
            segments=self.segments,
            named_data=named,
            constants=self.subsegments(constant_segment) if constant_segment else self.inline_constants(),
            mutable_constants=tuple(
                self.subsegments(s) for s in self.each(root.MutableDataSegmentsLength, root.MutableDataSegments)
            ),
        )

    def subsegments(self, table: Any) -> tuple[Region, ...]:
        """Constants in one segment: each reaches to the segment's end, its tensor says how far it goes."""
        offsets = self.ints(table.OffsetsLength, table.Offsets)
        if not offsets:
            return ()
        segment = self.segment(table.SegmentIndex())
        if any(offset > segment.size for offset in offsets):
            raise ProgramError("a constant starts behind the end of its segment")
        return tuple(Region(segment.offset + o, segment.size - o) for o in offsets)

    def inline_constants(self) -> tuple[Region, ...]:
        """Constants of files older than segments: they lie in the flatbuffer."""
        root = self.root
        return tuple(
            self.inline(b, b.StorageLength()) for b in self.each(root.ConstantBufferLength, root.ConstantBuffer)
        )

    def inline(self, table: Any, size: int) -> Region:
        """Where a table's one byte vector lies in the file."""
        if not size:
            return Region(0, 0)
        field = table._tab.Offset(4)
        offset = table._tab.Vector(field)
        if offset + size > len(self.data):
            raise ProgramError("inline data reaches behind the program's end")
        return Region(offset, size)

    def method(self, plan: Any) -> MethodPlan:
        values = tuple(self.value(v) for v in self.each(plan.ValuesLength, plan.Values))
        operators = tuple(self.operator(o) for o in self.each(plan.OperatorsLength, plan.Operators))
        delegates = tuple(self.delegate(d) for d in self.each(plan.DelegatesLength, plan.Delegates))
        method = MethodPlan(
            name=text(plan.Name()),
            values=values,
            inputs=self.ints(plan.InputsLength, plan.Inputs),
            outputs=self.ints(plan.OutputsLength, plan.Outputs),
            chains=tuple(
                tuple(
                    self.instruction(i, operators, len(delegates))
                    for i in self.each(c.InstructionsLength, c.Instructions)
                )
                for c in self.each(plan.ChainsLength, plan.Chains)
            ),
            delegates=delegates,
            arena_sizes=self.ints(plan.NonConstBufferSizesLength, plan.NonConstBufferSizes),
        )
        check_indices(method)
        return method

    def operator(self, operator: Any) -> str:
        overload = text(operator.Overload()) if operator.Overload() else ""
        return text(operator.Name()) + (f".{overload}" if overload else "")

    def delegate(self, delegate: Any) -> Delegate:
        reference = delegate.Processed()
        if reference is None:
            raise ProgramError("a delegate has no data")
        backend = text(delegate.Id())
        if reference.Location() == fb.DataLocation.SEGMENT:
            return Delegate(backend, self.segment(reference.Index()), None)
        if reference.Index() >= self.root.BackendDelegateDataLength():
            raise ProgramError(f"delegate data {reference.Index()} is not in the file")
        data = self.root.BackendDelegateData(reference.Index())
        region = self.inline(data, data.DataLength())
        return Delegate(backend, None, self.data[region.offset : region.offset + region.size])

    def value(self, value: Any) -> Value:
        kind = value.ValType()
        if kind in (0, fb.KernelTypes.Null):
            return None
        if kind not in VALUE_KINDS:
            raise ProgramError(f"a value of kind {kind} is newer than this reader")
        table, read = VALUE_KINDS[kind]
        return read(self, filled(table(), value.Val()))

    def tensor(self, tensor: Any) -> TensorValue:
        if max(tensor.SizesLength(), tensor.DimOrderLength()) > MAX_RANK:
            raise ProgramError(f"a tensor of {tensor.SizesLength():,} dimensions is announced; {MAX_RANK} is the most")
        shape = self.ints(tensor.SizesLength, tensor.Sizes)
        if any(size < 0 for size in shape):
            raise ProgramError(f"a tensor has the impossible shape {list(shape)}")
        allocation, extra = tensor.AllocationInfo(), tensor.ExtraTensorInfo()
        external = extra is not None and extra.Location() == fb.TensorDataLocation.EXTERNAL
        return TensorValue(
            dtype=from_scalar_type(tensor.ScalarType()),
            shape=shape,
            dim_order=self.ints(tensor.DimOrderLength, tensor.DimOrder) or tuple(range(len(shape))),
            data_index=tensor.DataBufferIdx(),
            arena=None
            if allocation is None
            else (
                allocation.MemoryId(),
                allocation.MemoryOffsetLow() | allocation.MemoryOffsetHigh() << 32,
            ),
            dynamic=tensor.ShapeDynamism() != fb.TensorShapeDynamism.STATIC,
            external_name=text(extra.FullyQualifiedName()) if external else None,
        )

    def instruction(self, instruction: Any, operators: tuple[str, ...], delegates: int) -> Instruction:
        kind = instruction.InstrArgsType()
        if kind not in INSTRUCTION_KINDS:
            raise ProgramError(f"an instruction of kind {kind} is newer than this reader")
        table, build = INSTRUCTION_KINDS[kind]
        built = build(self, filled(table(), instruction.InstrArgs()), operators)
        if isinstance(built, DelegateCall) and not 0 <= built.delegate < delegates:
            raise ProgramError(f"delegate {built.delegate} is called; the method has {delegates}")
        return built

    def kernel_call(self, call: Any, operators: tuple[str, ...]) -> KernelCall:
        if not 0 <= call.OpIndex() < len(operators):
            raise ProgramError(f"operator {call.OpIndex()} is called; the method lists {len(operators)}")
        return KernelCall(operators[call.OpIndex()], self.ints(call.ArgsLength, call.Args))


VALUE_KINDS: dict[int, tuple[Any, Callable[[_Reader, Any], Value]]] = {
    fb.KernelTypes.Int: (fb.Int, lambda r, v: int(v.IntVal())),
    fb.KernelTypes.Bool: (fb.Bool, lambda r, v: bool(v.BoolVal())),
    fb.KernelTypes.Double: (fb.Double, lambda r, v: float(v.DoubleVal())),
    fb.KernelTypes.Tensor: (fb.Tensor, _Reader.tensor),
    fb.KernelTypes.String: (fb.String, lambda r, v: text(v.StringVal())),
    fb.KernelTypes.IntList: (fb.IntList, lambda r, v: ListValue(r.ints(v.ItemsLength, v.Items))),
    fb.KernelTypes.DoubleList: (
        fb.DoubleList,
        lambda r, v: tuple(float(x) for x in r.each(v.ItemsLength, v.Items)),
    ),
    fb.KernelTypes.BoolList: (fb.BoolList, lambda r, v: tuple(bool(x) for x in r.each(v.ItemsLength, v.Items))),
    fb.KernelTypes.TensorList: (fb.TensorList, lambda r, v: ListValue(r.ints(v.ItemsLength, v.Items))),
    fb.KernelTypes.OptionalTensorList: (
        fb.OptionalTensorList,
        lambda r, v: ListValue(r.ints(v.ItemsLength, v.Items)),
    ),
}

INSTRUCTION_KINDS: dict[int, tuple[Any, Callable[[_Reader, Any, tuple[str, ...]], Instruction]]] = {
    fb.InstructionArguments.KernelCall: (fb.KernelCall, _Reader.kernel_call),
    fb.InstructionArguments.DelegateCall: (
        fb.DelegateCall,
        lambda r, c, ops: DelegateCall(c.DelegateIndex(), r.ints(c.ArgsLength, c.Args)),
    ),
    fb.InstructionArguments.MoveCall: (fb.MoveCall, lambda r, c, ops: MoveCall(c.MoveFrom(), c.MoveTo())),
    fb.InstructionArguments.JumpFalseCall: (
        fb.JumpFalseCall,
        lambda r, c, ops: JumpFalseCall(c.CondValueIndex(), c.DestinationInstruction()),
    ),
    fb.InstructionArguments.FreeCall: (fb.FreeCall, lambda r, c, ops: FreeCall(c.ValueIndex())),
}


def check_indices(method: MethodPlan) -> None:
    """Every value that the method's lists and instructions name must exist."""
    used = [*method.inputs, *method.outputs]
    for value in method.values:
        if isinstance(value, ListValue):
            used.extend(i for i in value.items if i != -1)
    for chain in method.chains:
        for step in chain:
            if isinstance(step, KernelCall | DelegateCall):
                used.extend(step.args)
            elif isinstance(step, MoveCall):
                used.extend((step.source, step.target))
            elif isinstance(step, JumpFalseCall):
                used.append(step.condition)
                if not 0 <= step.target <= len(chain):
                    raise ProgramError(f"{method.name} jumps to instruction {step.target} of {len(chain)}")
            else:
                used.append(step.value)
    for index in used:
        if not 0 <= index < len(method.values):
            raise ProgramError(f"{method.name} names value {index}; it has {len(method.values)}")
