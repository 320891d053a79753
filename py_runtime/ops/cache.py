"""Key-value caches: writing new rows in place, and attention over what a cache holds.

The position may be a number of the graph or an element that a run computes. Rows that would
lie behind the cache's end are not written.
"""

from __future__ import annotations

import math

from ..expression import broadcast_index, literal
from ..kernels import Dispatch, linear_grid, read, write
from .registry import Call, operator

WORKGROUP = 64


def emit_update(call: Call, value: int, cache: int, written: int, position: int) -> None:
    """value [B, S, H, D] into cache [B, C, H, D] from a position on; written: the cache's new version."""
    elem, shape = call.lowering.elem, call.shape(value)
    rows, capacity, row = shape[1], call.shape(cache)[1], math.prod(shape[2:])
    if call.shape(cache)[2:] != shape[2:] or call.shape(cache)[0] != shape[0]:
        raise call.unsupported(f"a cache of {list(call.shape(cache))} can't take {list(shape)}")
    start, extra = call.scalar(position, "start")
    code = (
        f"alias out_elem = {elem(written)};\n"
        f"fn target_row(i: u32) -> i32 {{\n    return {start} + i32((i / {row}u) % {rows}u);\n}}\n"
    )
    call.emit(
        Dispatch(
            op=call.op,
            route="cache_update",
            shader="cache_update.wgsl",
            bindings=(read("x", value, elem(value)), *extra, write("out", written, elem(written))),
            grid=linear_grid(math.prod(shape), WORKGROUP, call.target),
            constants={"count": math.prod(shape), "ROW": row, "ROWS": rows, "CAPACITY": capacity},
            code=code,
        )
    )


def emit_attention(call: Call, q: int, caches: tuple[int, int], out: int, *, position: int, mask: int) -> None:
    """q [B, S, H, D] over the first position + S rows of caches [B, C, G, D]; H is a multiple of G.

    Arguments from mask on: mask (broadcast to [S, C or less]) or None, dropout, is_causal, scale or None.
    """
    elem = call.lowering.elem
    batch, rows, heads, depth = call.shape(q)
    capacity, groups = call.shape(caches[0])[1:3]
    if heads % groups:
        raise call.unsupported(f"{heads} heads of queries can't share {groups} heads of keys")
    start, extra = call.scalar(position, "start")
    masked = call.optional_id(mask)
    bias, bindings = "0.0", [read("q", q, elem(q)), *(read(n, c, elem(c)) for n, c in zip("kv", caches, strict=True))]
    if masked is not None:
        bindings.append(read("mask", masked, elem(masked)))
        bias = masked_bias(call, masked, rows)
    bindings += [*extra, write("out", out, elem(out))]
    causal = bool(call.arg(mask + 2, False)) and masked is None
    code = (
        f"alias out_elem = {elem(out)};\n"
        f"fn start_position() -> i32 {{\n    return {start};\n}}\n"
        f"fn bias(row: u32, column: u32) -> f32 {{\n    return {bias};\n}}\n"
    )
    call.emit(
        Dispatch(
            op=call.op,
            route="cache_attention",
            shader="cache_attention.wgsl",
            bindings=tuple(bindings),
            grid=linear_grid(batch * rows * heads, 1, call.target),
            constants={
                "count": batch * rows * heads,
                "ROWS": rows,
                "HEADS": heads,
                "SHARED": heads // groups,
                "CAPACITY": capacity,
                "DEPTH": depth,
                "CAUSAL": int(causal),
                "SCALE": call.number(mask + 3, 1 / math.sqrt(depth)),
            },
            definitions={"OWN": f"{-(-depth // WORKGROUP)}u"},
            code=code,
        )
    )


def masked_bias(call: Call, mask: int, rows: int) -> str:
    """WGSL for what a mask adds at (row, column)."""
    shape = call.shape(mask)
    at = broadcast_index(shape, (rows, shape[-1]), f"(row * {shape[-1]}u + column)")
    if call.lowering.tensors[mask].dtype.is_float:
        return f"f32(mask[mask_offset + {at}])"
    return f"select({literal(-math.inf, 'f32')}, 0.0, mask[mask_offset + {at}] != 0u)"


@operator("update_cache.default", "llama.update_cache.default")
def update_cache(call: Call) -> None:
    """Arguments: value, cache, position."""
    emit_update(call, call.tensor_id(0), call.tensor_id(1), call.node.outputs[0], 2)


@operator("sdpa_with_kv_cache.default", "llama.sdpa_with_kv_cache.default")
def sdpa_with_kv_cache(call: Call) -> None:
    """Arguments: q, k, v, the two caches, position, sequence length (unused), mask, dropout, is_causal, scale."""
    keys, values, out = call.node.outputs
    emit_update(call, call.tensor_id(1), call.tensor_id(3), keys, 5)
    emit_update(call, call.tensor_id(2), call.tensor_id(4), values, 5)
    emit_attention(call, call.tensor_id(0), (keys, values), out, position=5, mask=7)


@operator("custom_sdpa.default", "llama.custom_sdpa.default")
def custom_sdpa(call: Call) -> None:
    """Arguments: q, the two caches (written before), position, mask, dropout, is_causal, scale."""
    caches = (call.tensor_id(1), call.tensor_id(2))
    emit_attention(call, call.tensor_id(0), caches, call.out, position=3, mask=4)
