"""A method that is not one graph: its steps one after another, over NumPy arrays and tensors left on the GPU.

Values live where the exporter planned them (merge.slot_of), so what it left out as mere
views is found again. What a later graph reads stays on the GPU; what an operator on the CPU
reads is read back, only then. A method that is whole on the GPU does not come here (runtime.py).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import byte_array, from_storage, numpy_dtype, to_javascript, to_storage
from .container import Region
from .device import GpuTensor
from .errors import ProgramError, PteronError, UnsupportedError
from .fallback import KERNELS, call_kernel
from .fallback.registry import Array, Kernel
from .merge import GpuStep, Located, Slot, slot_of
from .method import NUMBERS, given_values
from .program import ListValue, MethodPlan, Program, TensorValue
from .stage import Output, Stage
from .steps import CpuStep, JumpStep, MethodSteps, MoveStep, Step

ReadRegion = Callable[[int, Region], Awaitable[bytes]]


def file_array(data: bytes, kind: TensorValue) -> Array:
    """A tensor of a file: bytes in its dimension order, bfloat16 as float32."""
    order = kind.dim_order
    stored = from_storage(np.frombuffer(data, np.uint8), kind.dtype.name)
    return stored.reshape([kind.shape[d] for d in order]).transpose(np.argsort(order))


@dataclass
class Constants:
    """The tensors of a program that the CPU reads, and what its states start as; read when they are first asked for."""

    program: Program
    method: MethodPlan
    data: Mapping[str, Located]
    read: ReadRegion
    held: dict[int, Array] = field(default_factory=dict)

    def where(self, kind: TensorValue) -> Located:
        """The bytes of a constant, or of what a planned tensor starts as."""
        size = math.prod(kind.shape) * kind.dtype.size
        if kind.external_name is not None:
            if kind.external_name not in self.data:
                raise ProgramError(
                    f"{kind.external_name} is kept in a .ptd file; give it too: loadProgram(url, {{ data: [...] }})."
                )
            found = self.data[kind.external_name]
        else:
            table = self.program.constants
            if kind.arena is not None:
                table = self.program.mutable_constants[0] if self.program.mutable_constants else ()
            if kind.data_index >= len(table):
                raise ProgramError(f"constant {kind.data_index} is read; the program has {len(table)}")
            found = Located(0, table[kind.data_index])
        if found.region.size < size:
            raise ProgramError(f"a constant {kind.dtype.name}{list(kind.shape)} is longer than its segment")
        return Located(found.file, Region(found.region.offset, size))

    async def get(self, value: int) -> Array | None:
        """The constant, or the start of the state, that a value is; None if it is neither."""
        kind = self.method.values[value]
        if not isinstance(kind, TensorValue) or not (kind.data_index > 0 or kind.external_name is not None):
            return None
        if value not in self.held:
            found = self.where(kind)
            self.held[value] = file_array(await self.read(found.file, found.region), kind)
        return self.held[value]

    async def rows(self, value: int, indices: Array) -> tuple[Array, Array]:
        """Some rows of a constant, which is not read as a whole: (rows, the indices among them)."""
        kind = self.method.values[value]
        assert isinstance(kind, TensorValue)
        found = self.where(kind)
        size = found.region.size // max(kind.shape[0], 1)
        wanted, among = np.unique(indices, return_inverse=True)
        if wanted.size and not 0 <= wanted[0] <= wanted[-1] < kind.shape[0]:
            raise ProgramError(f"row {wanted[-1]} of a table of {kind.shape[0]:,} rows is asked for")
        part = TensorValue(kind.dtype, (1, *kind.shape[1:]), kind.dim_order, 0, None, False)
        rows = [
            file_array(await self.read(found.file, Region(found.region.offset + int(row) * size, size)), part)
            for row in wanted
        ]
        return np.concatenate(rows) if rows else np.zeros((0, *kind.shape[1:])), among.reshape(indices.shape)


#: Tables larger than this are read by the row where only rows are needed.
LARGE_TABLE_BYTES = 16 << 20


class Machine:
    """Runs the steps of one method; between runs it keeps the method's states."""

    def __init__(
        self, code: MethodSteps, method: MethodPlan, stages: Mapping[int, Stage], constants: Constants
    ) -> None:
        self.code, self.method, self.stages, self.constants = code, method, stages, constants
        self.state_slots = {slot_of(method, value): value for value in code.states}
        self.states: dict[Slot, Any] = {}
        self.known: dict[Slot, Any] = {}
        self.made: list[GpuTensor] = []  # in this run
        self.turn = asyncio.Lock()  # one run at a time
        self.closed: PteronError | None = None  # why no step is done any more

    async def execute(self, inputs: Sequence[Array]) -> list[Array]:
        """Run on arrays as a caller gives and takes them: bfloat16 as its bits."""
        given, taken = given_values(self.method), self.method.outputs
        async with self.turn:
            try:
                outputs = await self.run([self._computable(v, a) for v, a in zip(given, inputs, strict=True)])
            finally:
                if self.closed is not None:
                    self._forget()
        return [self._outside(v, a) for v, a in zip(taken, outputs, strict=True)]

    def _computable(self, value: int, array: Array) -> Array:
        kind = self.method.values[value]
        if isinstance(kind, TensorValue) and kind.dtype.name == "bfloat16":
            return from_storage(np.ascontiguousarray(array).reshape(-1).view(np.uint8), "bfloat16").reshape(array.shape)
        return array

    def _outside(self, value: int, array: Array) -> Array:
        kind = self.method.values[value]
        return to_storage(array, kind.dtype.name) if isinstance(kind, TensorValue) else array

    async def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run on arrays, one for each input that a caller gives. The states change only if it succeeds."""
        self.known = dict(self.states)
        self.made = []
        for value, array in zip(given_values(self.method), inputs, strict=True):
            kind = self.method.values[value]
            self.known[slot_of(self.method, value)] = array if isinstance(kind, TensorValue) else array.item()
        try:
            at = 0
            while at < len(self.code.steps):
                at = await self.step(at, self.code.steps[at])
            outputs = [_as_array(await self.array(value)) for value in self.method.outputs]
        except BaseException:
            self._drop(keep=self.states)
            raise
        kept = {slot: self.known[slot] for slot in self.state_slots if slot in self.known}
        self.made.extend(value for value in self.states.values() if isinstance(value, GpuTensor))
        self.states = kept
        self._drop(keep=kept)
        return outputs

    def _drop(self, keep: Mapping[Slot, Any]) -> None:
        """Give back the tensors on the GPU that nothing keeps."""
        kept = {id(value.js) for value in keep.values() if isinstance(value, GpuTensor)}
        for tensor in self.made:
            if id(tensor.js) not in kept:
                tensor.destroy()
        self.known, self.made = {}, []

    async def reset(self) -> None:
        """Set the states to what the program starts them as, once the runs under way are done."""
        async with self.turn:
            self._forget()

    def close(self, reason: PteronError) -> None:
        """Give all back; a run under way raises this error."""
        self.closed = reason
        if not self.turn.locked():
            self._forget()

    def _forget(self) -> None:
        self.made = [value for value in self.states.values() if isinstance(value, GpuTensor)]
        self.states = {}
        self._drop(keep={})

    async def step(self, at: int, step: Step) -> int:
        """One step; the number of the next one."""
        if self.closed is not None:
            raise self.closed
        if isinstance(step, GpuStep):
            await self.gpu(step, self.stages[at])
        elif isinstance(step, CpuStep):
            await self.cpu(step)
        elif isinstance(step, MoveStep):
            self.known[slot_of(self.method, step.target)] = await self.value(step.source)
        elif isinstance(step, JumpStep) and not np.all(await self.array(step.condition)):
            return step.target
        return at + 1

    async def gpu(self, step: GpuStep, stage: Stage) -> None:
        given = [await self.value(v) for v in step.inputs]
        numbers = {symbol: int(await self.value(v)) for symbol, v in step.numbers}
        for element in step.elements:
            array = await self.array(step.inputs[element.input])
            numbers[element.symbol] = int(np.reshape(array, -1)[element.index])
        shapes = tuple(tuple(value.shape) for value in given)
        sent = [
            value if isinstance(value, GpuTensor) else to_storage(value, port.dtype.name)
            for value, port in zip(given, step.joined.inputs, strict=True)
        ]
        outputs, symbols = await stage.run_keeping(to_javascript(sent), shapes, numbers, step.read, step.keep)
        for value, output in zip(step.outputs, outputs, strict=True):
            self.known[slot_of(self.method, value)] = self._kept(value, output)
        for symbol, value in step.results:
            if symbol not in symbols:
                raise UnsupportedError(
                    f"{self.method.name} takes a number that a delegate computes from data; export that part "
                    "outside of the delegate, or with a fixed size"
                )
            self.known[slot_of(self.method, value)] = symbols[symbol]

    def _kept(self, value: int, output: Output) -> Any:
        """An output of a graph: on the GPU, with its elements if they were read too; else as an array."""
        if output.tensor is not None:
            self.made.append(output.tensor)
        if output.typed is None:
            return output.tensor
        kind = self.method.values[value]
        assert isinstance(kind, TensorValue)
        array = from_storage(byte_array(output.typed), kind.dtype.name).reshape(output.shape)
        if output.tensor is None:
            return array
        output.tensor.array = array
        return output.tensor

    async def cpu(self, step: CpuStep) -> None:
        """Call a CPU operator and store its results in the dtypes and shapes of its outputs."""
        kernel = KERNELS[step.operator]
        args = await self._arguments(step, kernel)
        results = call_kernel(kernel, args)
        targets = [*step.args[kernel.inputs :][: kernel.outputs], *(step.args[i] for i in kernel.writes)]
        if not kernel.outputs:  # what is changed in place is also the result
            targets.extend(step.args[kernel.inputs : kernel.inputs + 1])
            results = results * 2
        for value, result in zip(targets, results, strict=False):
            if result is not None:
                self._store(step.operator, value, result)

    async def _arguments(self, step: CpuStep, kernel: Kernel) -> list[Any]:
        if kernel.shape_only:
            return [tuple((await self.value(step.args[0])).shape), *[await self.array(v) for v in step.args[1:2]]]
        if step.operator == "aten::embedding.out" and self._is_large_table(step.args[0]):
            indices = await self.array(step.args[1])
            return [*await self.constants.rows(step.args[0], indices), *[None] * (kernel.inputs - 2)]
        return [await self.array(v) for v in step.args[: kernel.inputs]]

    def _is_large_table(self, value: int) -> bool:
        kind = self.method.values[value]
        return (
            isinstance(kind, TensorValue)
            and kind.arena is None
            and (kind.data_index > 0 or kind.external_name is not None)
            and kind.dim_order == tuple(range(len(kind.shape)))
            and math.prod(kind.shape) * kind.dtype.size > LARGE_TABLE_BYTES
        )

    def _store(self, operator: str, value: int, result: Any) -> None:
        kind = self.method.values[value]
        if isinstance(kind, ListValue):
            for item, part in zip(kind.items, result, strict=True):
                self._store(operator, item, part)
        elif isinstance(kind, TensorValue):
            stored = np.asarray(result).astype(numpy_dtype(kind.dtype.name), copy=False)
            if not kind.dynamic:
                if stored.size != math.prod(kind.shape):
                    raise ProgramError(
                        f"{operator} gives {list(stored.shape)}; the program keeps {list(kind.shape)} for it"
                    )
                stored = stored.reshape(kind.shape)
            self.known[slot_of(self.method, value)] = stored
        elif isinstance(result, bool | int | float):
            self.known[value] = result
        else:
            raise ProgramError(f"{operator} writes a tensor to {kind!r}")

    async def value(self, value: int) -> Any:
        """A value of the method: an array or tensor on the GPU, a number, a string, None, or a list of them."""
        if value == -1:
            return None
        kind = self.method.values[value]
        slot = slot_of(self.method, value)
        if slot in self.known:
            found = self.known[slot]
            if isinstance(kind, TensorValue) and not kind.dynamic and tuple(found.shape) != kind.shape:
                found = found.reshape(kind.shape)
            return found
        if isinstance(kind, ListValue):
            return [await self.value(item) for item in kind.items]
        if not isinstance(kind, TensorValue):
            return list(kind) if isinstance(kind, tuple) else kind
        constant = await self.constants.get(value)
        if constant is not None:
            return constant
        if slot in self.state_slots or 0 in kind.shape:
            return np.zeros(kind.shape, numpy_dtype(kind.dtype.name))
        raise ProgramError(f"{self.method.name} reads tensor {value} before anything wrote it")

    async def array(self, value: int) -> Any:
        """A value with its elements here: what is on the GPU is read back."""
        found = await self.value(value)
        if isinstance(found, GpuTensor):
            return await read_back(found)
        if isinstance(found, list):
            return [await read_back(item) if isinstance(item, GpuTensor) else item for item in found]
        return found


def _as_array(result: Any) -> Array:
    """A result for the caller; numbers in the dtypes that method.metadata_of gives, of 64 bits on wasm32 too."""
    return np.asarray(result, NUMBERS.get(type(result)))


async def read_back(tensor: GpuTensor) -> Array:
    """The elements of a tensor on the GPU; read once."""
    if tensor.array is None:
        tensor.array = from_storage(await tensor.read(), tensor.dtype).reshape(tensor.shape)
    return tensor.array
