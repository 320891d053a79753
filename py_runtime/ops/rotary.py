"""Rotary position embeddings, in their three layouts."""

from __future__ import annotations

from ..kernels import read
from .generated import emit_compute
from .registry import Call, operator


def emit_pairs(call: Call, x: int, out: int, cos: int, sin: int) -> None:
    """Rotate neighbours (2k, 2k + 1): x [B, S, H, D], cos and sin [S, D / 2] or [S, H, D / 2]."""
    elem, shape = call.lowering.elem, call.shape(x)
    length, heads, depth = shape[-3:]
    table = call.shape(cos)
    head = f"(i / {depth}u) % {heads}u" if len(table) == 3 and table[1] != 1 else "0u"
    per = table[1] if len(table) == 3 else 1
    body = (
        f"    let k = i % {depth}u;\n    let s = (i / {depth * heads}u) % {length}u;\n"
        f"    let at = (s * {per}u + {head}) * {depth // 2}u + k / 2u;\n"
        "    let c = f32(cos_table[cos_table_offset + at]);\n    let d = f32(sin_table[sin_table_offset + at]);\n"
        "    let own = f32(x[x_offset + i]);\n    let other = f32(x[x_offset + (i ^ 1u)]);\n"
        f"    return {elem(out)}(select(own * c + other * d, own * c - other * d, k % 2u == 0u));\n"
    )
    bindings = (read("x", x, elem(x)), read("cos_table", cos, elem(cos)), read("sin_table", sin, elem(sin)))
    emit_compute(call, body, bindings, out)


@operator("et_vk.apply_rotary_emb.default")
def apply_rotary_emb(call: Call) -> None:
    """Queries and keys [B, S, H, D]; cos and sin [S, D / 2]."""
    cos, sin = call.tensor_id(2), call.tensor_id(3)
    for x, out in zip((call.tensor_id(0), call.tensor_id(1)), call.node.outputs, strict=True):
        emit_pairs(call, x, out, cos, sin)


@operator("et_vk.apply_rotary_emb_hf.default")
def apply_rotary_emb_hf(call: Call) -> None:
    """Rotate halves: x [B, S, H, D], cos and sin [positions, R] with R <= D, from start_pos on.

    Channels from R on pass unchanged (partial rotary).
    """
    cos, sin = call.tensor_id(2), call.tensor_id(3)
    start, extra = call.scalar(4, "start")
    elem = call.lowering.elem
    width = call.shape(cos)[-1]
    for x, out in zip((call.tensor_id(0), call.tensor_id(1)), call.node.outputs, strict=True):
        length, heads, depth = call.shape(x)[-3:]
        body = (
            f"    let k = i % {depth}u;\n    let s = (i / {depth * heads}u) % {length}u + u32({start});\n"
            "    let own = f32(x[x_offset + i]);\n"
            f"    if (k >= {width}u) {{\n        return {elem(out)}(own);\n    }}\n"
            f"    let first = k < {width // 2}u;\n"
            f"    let other = f32(x[x_offset + select(i - {width // 2}u, i + {width // 2}u, first)]);\n"
            f"    let at = s * {width}u + k;\n"
            "    let rotated = select(other, -other, first);\n"
            f"    return {elem(out)}(own * f32(cos_table[cos_table_offset + at])"
            " + rotated * f32(sin_table[sin_table_offset + at]));\n"
        )
        bindings = (read("x", x, elem(x)), read("cos_table", cos, elem(cos)), read("sin_table", sin, elem(sin)))
        emit_compute(call, body, (*bindings, *extra), out)


@operator("et_vk.apply_rotary_emb_interleaved.default")
def apply_rotary_emb_interleaved(call: Call) -> None:
    """x [B, N, C] with (real, imaginary) neighbours; freqs [N, C] with (cos, sin) neighbours."""
    x, table = call.tensor_id(0), call.tensor_id(1)
    elem = call.lowering.elem
    size = call.tensor(0).shape[-1] * call.tensor(0).shape[-2]
    body = (
        f"    let pair = (i % {size}u) & ~1u;\n"
        "    let c = f32(freqs[freqs_offset + pair]);\n    let d = f32(freqs[freqs_offset + pair + 1u]);\n"
        "    let own = f32(x[x_offset + i]);\n    let other = f32(x[x_offset + (i ^ 1u)]);\n"
        f"    return {elem(call.out)}(select(own * c + other * d, own * c - other * d, i % 2u == 0u));\n"
    )
    emit_compute(call, body, (read("x", x, elem(x)), read("freqs", table, elem(table))))
