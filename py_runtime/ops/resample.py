"""Operators that rearrange or resize planes: upsample, pixel shuffle."""

from __future__ import annotations

from ..kernels import Dispatch, linear_grid, read, write
from .copies import copy, strided_index
from .registry import Call, operator


def scale(call: Call, dim: int, align: bool) -> float:
    """Input pixels an output pixel, for dimension -2 + dim.

    PyTorch uses the scale factor that the caller gave, where one was given, and not the
    ratio of the sizes (`area_pixel_compute_scale`).
    """
    x, out = call.tensor(0).shape[-2 + dim], call.shape(call.out)[-2 + dim]
    if align:
        return (x - 1) / (out - 1) if out > 1 else 0.0
    factors = call.arg(call.node.args.__len__() - 1)
    if isinstance(factors, tuple) and len(factors) == 2:
        factor = factors[dim]
        if isinstance(factor, int | float) and factor > 0:
            return 1.0 / factor
    return x / out


@operator("aten.upsample_bilinear2d.vec")
def upsample_bilinear2d(call: Call) -> None:
    """x [N, C, H, W] to [N, C, OH, OW]; arguments: x, size, align_corners, scale factors."""
    align = bool(call.arg(2, False))
    x, out = call.tensor(0).shape, call.lowering.tensors[call.out]
    elem = call.lowering.elem(call.tensor_id(0))
    call.emit(
        Dispatch(
            op=call.op,
            route="upsample_bilinear2d",
            shader="upsample_bilinear2d.wgsl",
            bindings=(read("x", call.tensor_id(0), elem), write("out", call.out, call.lowering.elem(call.out))),
            grid=linear_grid(out.count, 64, call.target),
            constants={
                "H": x[-2],
                "W": x[-1],
                "OH": out.shape[-2],
                "OW": out.shape[-1],
                "SCALE_Y": scale(call, 0, align),
                "SCALE_X": scale(call, 1, align),
                "ALIGN": int(align),
                "count": out.count,
            },
            code=f"alias out_elem = {call.lowering.elem(call.out)};\n",
        )
    )


@operator("aten.upsample_nearest2d.vec")
def upsample_nearest2d(call: Call) -> None:
    """x [N, C, H, W] to [N, C, OH, OW]: out(o) = x(min(floor(o * scale), size - 1)), as ATen."""
    x, out = call.tensor(0).shape, call.lowering.tensors[call.out]
    (height, width), (out_height, out_width) = x[-2:], out.shape[-2:]

    def source(o: str, size: int, scale: float, out_size: int) -> str:
        if out_size % size == 0 and scale == size / out_size:
            return f"({o} / {out_size // size}u)"  # whole factors need no float
        return f"min(u32(floor(f32({o}) * f32({scale!r}))), {size - 1}u)"

    y = source(f"((i / {out_width}u) % {out_height}u)", height, scale(call, 0, False), out_height)
    column = source(f"(i % {out_width}u)", width, scale(call, 1, False), out_width)
    index = f"((i / {out_width * out_height}u) * {height}u + {y}) * {width}u + {column}"
    copy(call, call.tensor_id(0), call.out, out.count, index)


@operator("aten.pixel_shuffle.default")
def pixel_shuffle(call: Call) -> None:
    """x [.., C r r, H, W] to [.., C, H r, W r]."""
    x, out = call.tensor(0).shape, call.lowering.tensors[call.out]
    r = call.integer(1)
    height, width = x[-2:]
    channels = out.shape[-3]
    batch = out.count // (channels * height * width * r * r)
    # out [batch, C, H, r, W, r] row by row; x is [batch, C, r, r, H, W]
    shape = (batch, channels, height, r, width, r)
    plane = height * width
    steps = (channels * r * r * plane, r * r * plane, width, r * plane, 1, plane)
    copy(call, call.tensor_id(0), call.out, out.count, strided_index(shape, steps))


@operator("aten.grid_sampler_2d.default")
def grid_sampler(call: Call) -> None:
    """x [N, C, H, W] at grid [N, OH, OW, 2]; arguments: interpolation (0 or 1), padding (0 to 2), align_corners."""
    x, grid = call.tensor_id(0), call.tensor_id(1)
    mode, padding = call.integer(2), call.integer(3)
    if mode not in (0, 1) or padding not in (0, 1, 2):
        raise call.unsupported(f"interpolation {mode} and padding {padding}; bilinear and nearest are there")
    elem = call.lowering.elem
    _, channels, height, width = call.tensor(0).shape
    out = call.lowering.tensors[call.out]
    call.emit(
        Dispatch(
            op=call.op,
            route="grid_sampler_2d",
            shader="grid_sampler_2d.wgsl",
            bindings=(read("x", x, elem(x)), read("grid", grid, elem(grid)), write("out", call.out, elem(call.out))),
            grid=linear_grid(out.count, 64, call.target),
            constants={
                "C": channels,
                "H": height,
                "W": width,
                "area": out.shape[-1] * out.shape[-2],
                "MODE": mode,
                "PADDING": padding,
                "ALIGN": int(bool(call.arg(4, False))),
                "count": out.count,
            },
            code=f"alias out_elem = {elem(call.out)};\n",
        )
    )
