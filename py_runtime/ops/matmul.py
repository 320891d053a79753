"""Matrix products: linear, addmm, mm, bmm, and attention made of them.

Routes: tile (shared memory) where the output fills workgroups on a GPU, else direct.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..dtypes import FLOAT32
from ..expression import broadcast_index, fuse_after, literal
from ..kernels import Binding, Dispatch, linear_grid, read, write
from .registry import Call, operator
from .rows import emit_softmax

TILE = 64
SMALLEST_TILED = 32  # rows and columns below which tiles would be mostly empty


@dataclass(frozen=True)
class Product:
    """out [batch, rows, columns] = a [batch, rows, k] times b, by tensor ids.

    transposed: b is [batch, columns, k] and not [batch, k, columns]. shared_b: one b for
    all batches. epilogue: WGSL `fn fused(value: f32, i: u32)` and what it reads.
    """

    a: int
    b: int
    out: int
    batch: int
    rows: int
    columns: int
    k: int
    transposed: bool
    code: str
    extra: tuple[Binding, ...]
    out_elem: str
    shared_b: bool = False


def emit_product(call: Call, product: Product) -> None:
    elem = call.lowering.elem
    constants: dict[str, int | float] = {
        "ROWS": product.rows,
        "COLUMNS": product.columns,
        "K": product.k,
        "A_BATCH": product.rows * product.k,
        "B_BATCH": 0 if product.shared_b else product.k * product.columns,
        "B_TRANSPOSED": int(product.transposed),
    }
    count = product.batch * product.rows * product.columns
    tiles = (-(-product.columns // TILE), -(-product.rows // TILE), product.batch)
    tiled = (
        not call.target.software
        and min(product.rows, product.columns) >= SMALLEST_TILED
        and max(tiles) <= call.target.max_workgroups
    )
    if not tiled:
        constants["count"] = count
    name = "matmul_tile" if tiled else "matmul_direct"
    call.emit(
        Dispatch(
            op=call.op,
            route=name,
            shader=f"{name}.wgsl",
            bindings=(
                read("a", product.a, elem(product.a)),
                read("b", product.b, elem(product.b)),
                *product.extra,
                write("out", product.out, product.out_elem),
            ),
            grid=tiles if tiled else linear_grid(count, 64, call.target),
            constants=constants,
            code=product.code,
        )
    )


def biased(
    call: Call, bias: str, extra: tuple[Binding, ...], scale: str = "value"
) -> tuple[str, tuple[Binding, ...], str]:
    """`fused` that adds a bias (WGSL in i) and then applies the node's fused chain: code, bindings, stored type."""
    lowering = call.lowering
    after = fuse_after(call.node.fused, call.node.outputs[0], None, lowering.tensors, lowering.elem)
    chain = after.code.replace("fn fused(", "fn finish(")
    code = f"{chain}fn fused(value: f32, i: u32) -> {after.result} {{\n    return finish({scale} + {bias}, i);\n}}\n"
    return code, (*extra, *after.bindings), after.result


@operator("aten.linear.default")
def linear(call: Call) -> None:
    """x [.., K], weight [N, K], bias [N] or None; out [.., N]."""
    columns, k = call.tensor(1).shape
    bias, text = call.optional_id(2), "0.0"
    extra: tuple[Binding, ...] = ()
    if bias is not None:
        extra = (read("bias", bias, call.lowering.elem(bias)),)
        text = f"f32(bias[bias_offset + i % {columns}u])"
    code, bindings, elem = biased(call, text, extra)
    rows = call.tensor(0).count // k if k else math.prod(call.shape(call.out)[:-1])
    emit_product(
        call,
        Product(call.tensor_id(0), call.tensor_id(1), call.out, 1, rows, columns, k, True, code, bindings, elem),
    )


@operator("aten.mm.default", "aten.bmm.default")
def matrix_product(call: Call) -> None:
    """[.., M, K] times [.., K, N]."""
    *batch, rows, k = call.tensor(0).shape
    columns = call.tensor(1).shape[-1]
    code, bindings, elem = biased(call, "0.0", ())
    product = Product(
        call.tensor_id(0), call.tensor_id(1), call.out, math.prod(batch), rows, columns, k, False, code, bindings, elem
    )
    emit_product(call, product)


@operator("aten.addmm.default")
def addmm(call: Call) -> None:
    """beta * bias + alpha * (a [M, K] times b [K, N]); bias broadcasts to [M, N]."""
    rows, k = call.tensor(1).shape
    columns = call.tensor(2).shape[-1]
    beta, alpha = literal(call.number(3, 1), "f32"), literal(call.number(4, 1), "f32")
    bias = call.tensor_id(0)
    at = broadcast_index(call.tensor(0).shape, (rows, columns), "i")
    text = f"{beta} * f32(bias[bias_offset + {at}])"
    code, bindings, elem = biased(call, text, (read("bias", bias, call.lowering.elem(bias)),), f"{alpha} * value")
    product = Product(call.tensor_id(1), call.tensor_id(2), call.out, 1, rows, columns, k, False, code, bindings, elem)
    emit_product(call, product)


@operator("et_vk.sdpa.default")
def attention(call: Call) -> None:
    """softmax(q kᵀ * scale + mask) v; q [B, H, S, D], k and v [B, H, T, D], mask broadcast to [B, H, S, T].

    Three dispatches: scores in f32, their softmax, and the product with v.
    """
    *batch, rows, depth = call.tensor(0).shape
    columns, width = call.tensor(1).shape[-2], call.tensor(2).shape[-1]
    count = math.prod(batch)
    lowering = call.lowering
    scale = literal(call.number(4, 1 / math.sqrt(depth)), "f32")
    mask, text = call.optional_id(3), ""
    extra: tuple[Binding, ...] = ()
    if mask is not None:
        extra = (read("mask", mask, lowering.elem(mask)),)
        at = broadcast_index(call.shape(mask), (*batch, rows, columns), "i")
        text = f" + f32(mask[mask_offset + {at}])"
    scores = lowering.new_tensor(FLOAT32, (count, rows, columns))
    weights = lowering.new_tensor(FLOAT32, (count, rows, columns))
    code = f"fn fused(value: f32, i: u32) -> f32 {{\n    return value * {scale}{text};\n}}\n"
    q, k, v = (call.tensor_id(i) for i in range(3))
    emit_product(call, Product(q, k, scores, count, rows, columns, depth, True, code, extra, "f32"))
    emit_softmax(call, scores, weights, size=columns, inner=1)
    elem = lowering.elem(call.out)
    code = f"fn fused(value: f32, i: u32) -> {elem} {{\n    return {elem}(value);\n}}\n"
    emit_product(call, Product(weights, v, call.out, count, rows, width, columns, False, code, (), elem))
