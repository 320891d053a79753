"""Constants as kernels want them: which must be rewritten on the GPU, and how."""

from __future__ import annotations

from .dtypes import STORAGE_SIZE, DType
from .errors import LimitError
from .graph import Tensor
from .kernels import Dispatch, Target, linear_grid, read, write
from .ops.registry import Lowering, storage_type


def raw_storage(dtype: DType) -> str:
    """How a constant's elements lie in the file, for an output that is a constant itself."""
    return dtype.name


def needs_widening(tensor: Tensor, target: Target) -> bool:
    """Whether a constant's bytes in the file differ from what kernels read on this device."""
    if tensor.constant is None:
        return False
    return tensor.dtype.size != STORAGE_SIZE[storage_type(tensor.dtype, target)]


WIDEN = {
    # dtype: (shader, type of the words read, elements a thread)
    "float16": ("widen_f16.wgsl", "u32", 2),
    "bool": ("widen_bytes.wgsl", "u32", 1),
    "uint8": ("widen_bytes.wgsl", "u32", 1),
    "int8": ("widen_bytes.wgsl", "u32", 1),
    "int64": ("narrow_i64.wgsl", "i32", 1),
}


def widen(source: int, target: int, lowering: Lowering) -> Dispatch:
    """The dispatch that rewrites a constant into 32-bit elements."""
    tensor = lowering.tensors[source]
    if tensor.dtype.name not in WIDEN:
        raise LimitError(f"constants of {tensor.dtype.name} can't be read on a GPU; export the model in float32")
    shader, word, per_thread = WIDEN[tensor.dtype.name]
    code = f"alias source_elem = {tensor.dtype.storage};\n" if shader == "widen_bytes.wgsl" else ""
    return Dispatch(
        op="constant",
        route=shader.removesuffix(".wgsl"),
        shader=shader,
        bindings=(read("x", source, word), write("out", target, lowering.elem(target))),
        grid=linear_grid(-(-tensor.count // per_thread), 64, lowering.target),
        constants={"count": tensor.count},
        code=code,
    )


def start_state(state: int, constant: int, lowering: Lowering) -> Dispatch:
    """The dispatch that sets a state to the constant it starts as."""
    if needs_widening(lowering.tensors[constant], lowering.target):
        return widen(constant, state, lowering)
    count, elem = lowering.tensors[state].count, lowering.elem(state)
    code = f"fn compute(i: u32) -> {elem} {{\n    return x[x_offset + i];\n}}\n"
    return Dispatch(
        op="state",
        route="elementwise",
        shader="elementwise.wgsl",
        bindings=(read("x", constant, lowering.elem(constant)), write("out", state, elem)),
        grid=linear_grid(count, 64, lowering.target),
        constants={"count": count},
        code=code,
    )
