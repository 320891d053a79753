"""A `.pte` of one operator, written by hand: what the exporter would make of one call.

Exporting a case takes seconds, writing it a millisecond, so hundreds of cases can run. The
delegate lies inline in a program without an extended header, both of which old files have.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np

from py_runtime.schema import program as fb
from py_runtime.schema import vulkan as vk

VK_TYPES = {"bool": 0, "uint8": 1, "int8": 2, "int32": 3, "float16": 4, "float32": 5}
SCALAR_TYPES = {"uint8": 0, "int8": 1, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "bool": 11}


@dataclass(frozen=True)
class Symbol:
    """An integer argument that a `sym_size.int` of an input gives: input number and dimension."""

    input: int
    dim: int


@dataclass(frozen=True)
class Picked:
    """An integer argument that is an element of an input: `et_vk.select_as_symint` of it."""

    values: np.ndarray
    index: int

    def __str__(self) -> str:
        return f"picked({self.values[self.index]})"


@dataclass(frozen=True)
class Spec:
    """dtype and shape of an output."""

    dtype: str
    shape: tuple[int, ...]


class Writer:
    """A flatbuffer in the making, with tables by name and fields by keyword."""

    def __init__(self, module: Any) -> None:
        self.module, self.builder = module, flatbuffers.Builder(1024)

    def table(self, name: str, **fields: Any) -> int:
        getattr(self.module, f"{name}Start")(self.builder)
        for field, value in fields.items():
            getattr(self.module, f"{name}Add{field}")(self.builder, value)
        return int(getattr(self.module, f"{name}End")(self.builder))

    def vector(self, table: str, field: str, values: Sequence[Any], kind: str) -> int:
        """A vector of "Int32", "Int64", "Uint32", "Bool", "Float64", "Byte" or "UOffsetTRelative"."""
        getattr(self.module, f"{table}Start{field}Vector")(self.builder, len(values))
        for value in reversed(values):
            getattr(self.builder, f"Prepend{kind}")(value)
        return int(self.builder.EndVector())

    def text(self, text: str) -> int:
        return int(self.builder.CreateString(text))

    def finish(self, root: int, identifier: bytes) -> bytes:
        self.builder.Finish(root, file_identifier=identifier)
        return bytes(self.builder.Output())


class GraphWriter:
    """The delegate: values in the order in which they are added."""

    def __init__(self) -> None:
        self.writer = Writer(vk)
        self.values: list[int] = []
        self.inputs: list[int] = []
        self.calls: list[int] = []

    def value(self, kind: str, **fields: Any) -> int:
        table = self.writer.table(kind, **fields)
        code = getattr(vk.GraphTypes, kind)
        self.values.append(self.writer.table("VkValue", ValueType=code, Value=table))
        return len(self.values) - 1

    def tensor(self, dtype: str, shape: Sequence[int]) -> int:
        dims = self.writer.vector("VkTensor", "Dims", list(shape), "Uint32")
        return self.value("VkTensor", Datatype=VK_TYPES[dtype], Dims=dims, ConstantId=-1, MemObjId=-1)

    def argument(self, arg: Any) -> int:
        """A Python argument as a value; arrays become inputs."""
        if isinstance(arg, np.ndarray):
            dtype = "int32" if arg.dtype == np.int64 else arg.dtype.name
            self.inputs.append(self.tensor(dtype, arg.shape))
            return self.inputs[-1]
        if isinstance(arg, Symbol):
            symbol = self.value("SymInt", Value=0)
            self.call("sym_size.int", [self.inputs[arg.input], self.argument(arg.dim), symbol])
            return symbol
        if isinstance(arg, Picked):
            symbol = self.value("SymInt", Value=0)
            given = [self.argument(a) for a in (arg.values, 0, arg.index)]
            self.call("et_vk.select_as_symint.default", [*given, symbol])
            return symbol
        if arg is None:
            return self.value("Null")
        if isinstance(arg, bool):
            return self.value("Bool", BoolVal=arg)
        if isinstance(arg, int):
            return self.value("Int", IntVal=arg)
        if isinstance(arg, float):
            return self.value("Double", DoubleVal=arg)
        if isinstance(arg, str):
            return self.value("String", StringVal=self.writer.text(arg))
        return self.list(list(arg))

    def list(self, items: list[Any]) -> int:
        if any(isinstance(item, np.ndarray | Symbol) or item is None for item in items):
            ids = [self.argument(item) for item in items]
            return self.value("ValueList", Items=self.writer.vector("ValueList", "Items", ids, "Int32"))
        kind, prepend = ("DoubleList", "Float64") if any(isinstance(i, float) for i in items) else ("IntList", "Int64")
        return self.value(kind, Items=self.writer.vector(kind, "Items", items, prepend))

    def call(self, op: str, args: list[int]) -> None:
        name = self.writer.text(op)
        ids = self.writer.vector("OperatorCall", "Args", args, "Int32")
        self.calls.append(self.writer.table("OperatorCall", Name=name, Args=ids))

    def finish(self, outputs: list[int]) -> bytes:
        w = self.writer
        fields = {
            "Chain": w.vector("VkGraph", "Chain", self.calls, "UOffsetTRelative"),
            "Values": w.vector("VkGraph", "Values", self.values, "UOffsetTRelative"),
            "InputIds": w.vector("VkGraph", "InputIds", self.inputs, "Uint32"),
            "OutputIds": w.vector("VkGraph", "OutputIds", outputs, "Uint32"),
        }
        body = w.finish(w.table("VkGraph", **fields), b"VK00")
        return struct.pack("<4x4sHIIIQ2x", b"VH00", 30, 32, len(body), 32 + len(body), 0) + body


def write_program(
    op: str, args: Sequence[Any], outputs: Sequence[Spec], written: Sequence[int] = ()
) -> tuple[bytes, list[np.ndarray]]:
    """A program that calls `op`; and its inputs, the arrays among the arguments in order.

    Several outputs are written as a list, as operators of several results have them.
    written: arguments that the operator writes; they are outputs of the program, after its own.
    """
    graph = GraphWriter()
    ids = [graph.argument(arg) for arg in args]
    again = [Spec(args[i].dtype.name, args[i].shape) for i in written]
    results = [graph.tensor(spec.dtype, spec.shape) for spec in outputs]
    last = results[0]
    if len(results) > 1:
        last = graph.value("ValueList", Items=graph.writer.vector("ValueList", "Items", results, "Int32"))
    graph.call(op, [*ids, last])
    inputs = list(flatten(args))
    return wrap(graph.finish([*results, *(ids[i] for i in written)]), inputs, [*outputs, *again]), inputs


def flatten(args: Any) -> Any:
    for arg in args:
        if isinstance(arg, np.ndarray):
            yield arg
        elif isinstance(arg, Picked):
            yield arg.values
        elif isinstance(arg, list | tuple):
            yield from flatten(arg)


def wrap(blob: bytes, inputs: Sequence[np.ndarray], outputs: Sequence[Spec]) -> bytes:
    """A program of one method that calls the delegate on its inputs and gives its outputs."""
    w = Writer(fb)
    values = []
    for dtype, shape in [*((a.dtype.name, a.shape) for a in inputs), *((s.dtype, s.shape) for s in outputs)]:
        sizes = w.vector("Tensor", "Sizes", list(shape), "Int32")
        tensor = w.table("Tensor", ScalarType=SCALAR_TYPES[dtype], Sizes=sizes)
        values.append(w.table("EValue", ValType=fb.KernelTypes.Tensor, Val=tensor))
    every = list(range(len(values)))
    call = w.table("DelegateCall", DelegateIndex=0, Args=w.vector("DelegateCall", "Args", every, "Int32"))
    step = w.table("Instruction", InstrArgsType=fb.InstructionArguments.DelegateCall, InstrArgs=call)
    chain = w.table("Chain", Instructions=w.vector("Chain", "Instructions", [step], "UOffsetTRelative"))
    backend = w.text("VulkanBackend")
    processed = w.table("BackendDelegateDataReference", Location=fb.DataLocation.INLINE, Index=0)
    delegate = w.table("BackendDelegate", Id=backend, Processed=processed)
    name = w.text("forward")
    fields = {
        "Values": w.vector("ExecutionPlan", "Values", values, "UOffsetTRelative"),
        "Inputs": w.vector("ExecutionPlan", "Inputs", every[: len(inputs)], "Int32"),
        "Outputs": w.vector("ExecutionPlan", "Outputs", every[len(inputs) :], "Int32"),
        "Chains": w.vector("ExecutionPlan", "Chains", [chain], "UOffsetTRelative"),
        "Delegates": w.vector("ExecutionPlan", "Delegates", [delegate], "UOffsetTRelative"),
    }
    plan = w.table("ExecutionPlan", Name=name, **fields)
    data = w.vector("BackendDelegateInlineData", "Data", blob, "Byte")
    inline = w.table("BackendDelegateInlineData", Data=data)
    fields = {
        "ExecutionPlan": w.vector("Program", "ExecutionPlan", [plan], "UOffsetTRelative"),
        "BackendDelegateData": w.vector("Program", "BackendDelegateData", [inline], "UOffsetTRelative"),
    }
    return w.finish(w.table("Program", **fields), b"ET12")
