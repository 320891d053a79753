"""Pooling over windows of the last two dimensions."""

from __future__ import annotations

from ..kernels import Dispatch, linear_grid, read, write
from .registry import Call, operator

Pair = tuple[int, int]


def pair(values: tuple[int, ...], default: Pair | None = None) -> Pair:
    """(y, x) of a list of one or two; an empty one means the default."""
    if not values and default is not None:
        return default
    return (values[0], values[-1])


def windows(call: Call, kernel: Pair, stride: Pair, padding: Pair) -> dict[str, int | float]:
    x, out = call.tensor(0).shape, call.lowering.tensors[call.node.outputs[0]]
    if len(x) not in (3, 4):
        raise call.unsupported("pooling takes [N, C, H, W] or [C, H, W]")
    return {
        "H": x[-2],
        "W": x[-1],
        "OH": out.shape[-2],
        "OW": out.shape[-1],
        "KH": kernel[0],
        "KW": kernel[1],
        "STRIDE_Y": stride[0],
        "STRIDE_X": stride[1],
        "PAD_Y": padding[0],
        "PAD_X": padding[1],
        "count": out.count,
    }


@operator("aten.max_pool2d_with_indices.default", "aten.max_pool2d.default")
def max_pool2d(call: Call) -> None:
    """out [.., OH, OW], and int32 indices into each plane for the form that has them."""
    kernel = pair(call.integers(1))
    stride = pair(call.integers(2, ()), kernel)
    padding = pair(call.integers(3, (0, 0)), (0, 0))
    dilation = pair(call.integers(4, (1, 1)), (1, 1))
    elem = call.lowering.elem(call.tensor_id(0))
    constants = windows(call, kernel, stride, padding)
    constants |= {"DILATION_Y": dilation[0], "DILATION_X": dilation[1]}
    out, *indices = call.node.outputs
    bindings = [read("x", call.tensor_id(0), elem), write("out", out, call.lowering.elem(out))]
    store = ""
    if indices:
        bindings.append(write("indices", indices[0], "i32"))
        store = "    indices[indices_offset + i] = winner;\n"
    call.emit(
        Dispatch(
            op=call.op,
            route="max_pool2d",
            shader="max_pool2d.wgsl",
            bindings=tuple(bindings),
            grid=linear_grid(int(constants["count"]), 64, call.target),
            constants=constants,
            code=f"alias out_elem = {call.lowering.elem(out)};\nfn store_index(i: u32, winner: i32) {{\n{store}}}\n",
        )
    )


@operator("aten.avg_pool2d.default")
def avg_pool2d(call: Call) -> None:
    kernel = pair(call.integers(1))
    stride = pair(call.integers(2, ()), kernel)
    padding = pair(call.integers(3, (0, 0)), (0, 0))
    count_pad = call.arg(5, True)
    divisor = call.arg(6)
    elem = call.lowering.elem(call.tensor_id(0))
    constants = windows(call, kernel, stride, padding)
    constants |= {
        "COUNT_PAD": int(count_pad is None or bool(count_pad)),
        "DIVISOR": 0 if divisor is None else call.integer(6),
    }
    call.emit(
        Dispatch(
            op=call.op,
            route="avg_pool2d",
            shader="avg_pool2d.wgsl",
            bindings=(read("x", call.tensor_id(0), elem), write("out", call.out, call.lowering.elem(call.out))),
            grid=linear_grid(int(constants["count"]), 64, call.target),
            constants=constants,
            code=f"alias out_elem = {call.lowering.elem(call.out)};\n",
        )
    )
