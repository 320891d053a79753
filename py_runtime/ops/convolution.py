"""Convolutions: 1-D and 2-D, grouped, dilated, transposed.

Routes, best first, each right for all it accepts:
    depthwise   one filter a channel, a strip of a row a thread
    register    barrier-free register tile, for adapters that run on the CPU
    tile        implicit GEMM with shared-memory tiles
    transposed  direct, one thread an output
    direct      one thread an output: everything else
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..dtypes import FLOAT32
from ..expression import Fused, fuse_after
from ..graph import Arg
from ..kernels import Binding, Dispatch, Target, linear_grid, read, write
from .registry import Call, operator


@dataclass(frozen=True)
class Convolution:
    """A convolution's sizes, checked and named once. Pairs are (y, x)."""

    x: int
    weight: int
    bias: int | None
    value: int  # the convolution's own result, before fused nodes
    out: int
    batch: int
    channels: int
    size: tuple[int, int]
    out_channels: int
    out_size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    transposed: bool
    clamp: tuple[Arg, Arg] | None

    @property
    def area(self) -> int:
        return self.out_size[0] * self.out_size[1]

    @property
    def count(self) -> int:
        return self.batch * self.out_channels * self.area

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]


def read_convolution(call: Call) -> Convolution:
    """Read and check the arguments; UnsupportedError for what no route does.

    x [N, C, *spatial] or [C, *spatial], weight [O, C/groups, *kernel] (transposed:
    [C, O/groups, *kernel]), bias [O] or None.
    """
    x, weight, bias = call.tensor(0), call.tensor(1), call.optional_id(2)
    dims = len(weight.shape) - 2
    transposed = bool(call.arg(6, False))
    groups = call.integer(8, 1)
    if dims not in (1, 2):
        raise call.unsupported(f"{dims}-D convolution; 1-D and 2-D are there")
    shape = x.shape if len(x.shape) == dims + 2 else (1, *x.shape)
    if len(shape) != dims + 2:
        raise call.unsupported("the input's rank does not fit the weight's")
    value = call.node.outputs[0]
    out = call.shape(value)
    out_channels = weight.shape[1] * groups if transposed else weight.shape[0]
    in_channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if shape[1] != in_channels or out_channels % groups or in_channels % groups:
        raise call.unsupported(f"{shape[1]} channels, {groups} groups and this weight do not fit together")

    def pair(values: tuple[int, ...], fill: int) -> tuple[int, int]:
        full = values * dims if len(values) == 1 else values
        return (fill, full[0]) if dims == 1 else (full[0], full[1])

    has_clamp = call.op == "et_vk.conv_with_clamp.default"
    return Convolution(
        x=call.tensor_id(0),
        weight=call.tensor_id(1),
        bias=bias,
        value=value,
        out=call.out,
        batch=shape[0],
        channels=shape[1],
        size=pair(shape[2:], 1),
        out_channels=out_channels,
        out_size=pair(out[-dims:], 1),
        kernel=pair(weight.shape[2:], 1),
        stride=pair(call.integers(3), 1),
        padding=pair(call.integers(4), 0),
        dilation=pair(call.integers(5), 1),
        groups=groups,
        transposed=transposed,
        clamp=(call.arg(9), call.arg(10)) if has_clamp else None,
    )


Route = tuple[str, Callable[[Convolution, Target], bool], Callable[[Call, Convolution], None]]


@operator("aten.convolution.default", "et_vk.conv_with_clamp.default")
def convolution(call: Call) -> None:
    """out [N, O, *out_spatial]; sums in f32. See `read_convolution` for the arguments."""
    conv = read_convolution(call)
    for _, fits, lower in ROUTES:
        if fits(conv, call.target):
            lower(call, conv)
            return


def is_depthwise(conv: Convolution, target: Target) -> bool:
    return (
        not conv.transposed
        and conv.groups == conv.channels == conv.out_channels
        and conv.channels > 1
        and conv.dilation[1] == 1
        and conv.kernel[1] <= 11
        and conv.stride[1] <= 4
    )


def is_ungrouped(conv: Convolution, target: Target) -> bool:
    return not conv.transposed and conv.groups == 1 and conv.out_channels > 1


def is_ungrouped_on_cpu(conv: Convolution, target: Target) -> bool:
    return target.software and is_ungrouped(conv, target)


def sizes(conv: Convolution) -> dict[str, int | float]:
    """The overrides that all convolution kernels share."""
    return {
        "C": conv.channels,
        "H": conv.size[0],
        "W": conv.size[1],
        "O": conv.out_channels,
        "OW": conv.out_size[1],
        "STRIDE_Y": conv.stride[0],
        "STRIDE_X": conv.stride[1],
        "PAD_Y": conv.padding[0],
        "PAD_X": conv.padding[1],
        "DILATION_Y": conv.dilation[0],
        "DILATION_X": conv.dilation[1],
    }


def epilogue(call: Call, conv: Convolution) -> Fused:
    return fuse_after(call.node.fused, conv.value, conv.clamp, call.lowering.tensors, call.lowering.elem)


def emit(
    call: Call,
    conv: Convolution,
    shader: str,
    weight: Binding,
    grid: tuple[int, int, int],
    constants: dict[str, int | float],
    definitions: dict[str, str] | None = None,
    code: str = "",
    reads_x: bool = True,
) -> None:
    """One dispatch with x, the weight, the bias if there is one, and what the fused nodes read."""
    elem = call.lowering.elem
    after = epilogue(call, conv)
    bindings = [read("x", conv.x, elem(conv.x)), weight] if reads_x else [weight]
    bias = "0.0"
    if conv.bias is not None:
        bindings.append(read("bias", conv.bias, elem(conv.bias)))
        bias = "f32(bias[bias_offset + o])"
    call.emit(
        Dispatch(
            op=call.op,
            route=shader.removesuffix(".wgsl"),
            shader=shader,
            bindings=(*bindings, *after.bindings, write("out", conv.out, after.result)),
            grid=grid,
            constants=constants,
            definitions=definitions or {},
            code=f"fn bias_of(o: u32) -> f32 {{\n    return {bias};\n}}\n" + after.code + code,
        )
    )


def direct(call: Call, conv: Convolution) -> None:
    """One thread an output, transposed or not."""
    shader = "conv_transposed.wgsl" if conv.transposed else "conv_direct.wgsl"
    constants = {
        **sizes(conv),
        "C_GROUP": conv.channels // conv.groups,
        "O_GROUP": conv.out_channels // conv.groups,
        "OH": conv.out_size[0],
        "KH": conv.kernel[0],
        "KW": conv.kernel[1],
        "count": conv.count,
    }
    weight = read("weight", conv.weight, call.lowering.elem(conv.weight))
    emit(call, conv, shader, weight, linear_grid(conv.count, 64, call.target), constants)


def depthwise(call: Call, conv: Convolution) -> None:
    strip = min(4, conv.out_size[1])
    strips = -(-conv.out_size[1] // strip)
    count = strips * conv.out_size[0] * conv.channels * conv.batch
    constants = sizes(conv)
    for name in ("O", "STRIDE_X", "DILATION_X"):
        del constants[name]
    constants |= {"OH": conv.out_size[0], "KH": conv.kernel[0], "strips": strips, "count": count}
    definitions = {
        "STRIP": f"{strip}i",
        "KW": f"{conv.kernel[1]}i",
        "STRIDE_X": f"{conv.stride[1]}i",
        "SPAN": f"{(strip - 1) * conv.stride[1] + conv.kernel[1]}i",
    }
    weight = read("weight", conv.weight, call.lowering.elem(conv.weight))
    grid = linear_grid(count, 64, call.target)
    emit(call, conv, "conv_depthwise.wgsl", weight, grid, constants, definitions)


def packed_weight(call: Call, conv: Convolution) -> Binding:
    """The weight as [KH*KW*C][O4]; packed once, whoever asks."""
    lowering = call.lowering
    key = ("conv", conv.weight)
    elem = lowering.elem(conv.weight)
    if key not in lowering.packed:
        padded = round_up(conv.out_channels, 4)
        count = conv.taps * conv.channels * padded
        packed = lowering.new_tensor(lowering.tensors[conv.weight].dtype, (conv.taps * conv.channels, padded))
        lowering.packed[key] = packed
        call.emit(
            Dispatch(
                op=call.op,
                route="pack_conv_weight",
                shader="pack_conv_weight.wgsl",
                bindings=(read("weight", conv.weight, elem), write("packed", packed, elem)),
                grid=linear_grid(count, 64, call.target),
                constants={"O": conv.out_channels, "C": conv.channels, "TAPS": conv.taps, "O4": padded},
                code=f"alias packed_elem = {elem};\n",
            )
        )
    return read("packed", lowering.packed[key], f"vec4<{elem}>")


def round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def register(call: Call, conv: Convolution) -> None:
    pixels = 4 if conv.area >= 4 else 1
    # wider is faster up to 16 channels (measured on SwiftShader: 9 % over 8 channels, 4 and 1 lose more)
    vectors = 4 if conv.out_channels >= 16 else 2 if conv.out_channels > 4 else 1
    quads, blocks = -(-conv.area // pixels), -(-conv.out_channels // (4 * vectors))
    count = quads * blocks * conv.batch
    constants = {
        **sizes(conv),
        "O4": round_up(conv.out_channels, 4),
        "area": conv.area,
        "KH": conv.kernel[0],
        "KW": conv.kernel[1],
        "quads": quads,
        "blocks": blocks,
        "count": count,
    }
    definitions = {"VECTORS": f"{vectors}u", "PIXELS": f"{pixels}u"}
    grid = linear_grid(count, 64, call.target)
    emit(call, conv, "conv_register.wgsl", packed_weight(call, conv), grid, constants, definitions)


@dataclass(frozen=True)
class Tile:
    """Sizes of a workgroup of conv_tile.wgsl; see there."""

    threads_x: int
    threads_y: int
    pixels: int
    vectors: int
    k: int = 16

    @property
    def pixel_tile(self) -> int:
        return self.threads_x * self.pixels

    @property
    def channel_tile(self) -> int:
        return self.threads_y * 4 * self.vectors


# Large tiles reuse more, small ones keep more of the GPU busy: take the largest that still
# gives enough workgroups, and cut the sum in pieces where even the smallest does not.
TILES = (
    Tile(16, 8, 4, 2),
    Tile(16, 16, 4, 1),
    Tile(16, 8, 4, 1),
    Tile(8, 8, 4, 1),
)
ENOUGH_WORKGROUPS = 256
SHORTEST_PIECE = 128  # of a sum; shorter ones cost more to add than they save
MOST_PIECES = 16


def tile_grid(conv: Convolution, tile: Tile) -> tuple[int, int]:
    return (-(-conv.area // tile.pixel_tile), -(-conv.out_channels // tile.channel_tile))


def pick_tile(conv: Convolution) -> Tile:
    for tile in TILES:
        x, y = tile_grid(conv, tile)
        wasted = tile.channel_tile >= 2 * round_up(conv.out_channels, 32)
        if x * y * conv.batch >= ENOUGH_WORKGROUPS and not wasted:
            return tile
    return TILES[-1]


def pick_pieces(conv: Convolution, tile: Tile) -> tuple[int, int]:
    """How many pieces to cut the sum over K in, and how long each is."""
    length = conv.taps * conv.channels
    x, y = tile_grid(conv, tile)
    wanted = min(-(-ENOUGH_WORKGROUPS // (x * y * conv.batch)), length // SHORTEST_PIECE, MOST_PIECES)
    piece = round_up(-(-length // max(wanted, 1)), tile.k)
    return -(-length // piece), piece


def tiled(call: Call, conv: Convolution) -> None:
    """Shared-memory tiles; one dispatch, or two when the sum is cut in pieces."""
    tile = pick_tile(conv)
    splits, piece = pick_pieces(conv, tile)
    x, y = tile_grid(conv, tile)
    constants: dict[str, int | float] = {
        **sizes(conv),
        "O4": round_up(conv.out_channels, 4),
        "area": conv.area,
        "K": conv.taps * conv.channels,
        "KW": conv.kernel[1],
        "K_PIECE": piece,
    }
    definitions = {
        "THREADS_X": f"{tile.threads_x}u",
        "THREADS_Y": f"{tile.threads_y}u",
        "PIXELS": f"{tile.pixels}u",
        "VECTORS": f"{tile.vectors}u",
        "K_TILE": f"{tile.k}u",
        "SPLITS": f"{splits}u",
    }
    weight = packed_weight(call, conv)
    grid = (x, y, conv.batch * splits)
    if splits == 1:
        store = "    out[out_offset + at] = fused(sum + bias_of(o), at);\n"
        emit(call, conv, "conv_tile.wgsl", weight, grid, constants, definitions, store_function(store))
        return
    partial = call.lowering.new_tensor(FLOAT32, (splits, conv.count))
    store = f"    partial[partial_offset + piece * {conv.count}u + at] = sum;\n"
    call.emit(
        Dispatch(
            op=call.op,
            route="conv_tile",
            shader="conv_tile.wgsl",
            bindings=(read("x", conv.x, call.lowering.elem(conv.x)), weight, write("partial", partial, "f32")),
            grid=grid,
            constants=constants,
            definitions=definitions,
            code=store_function(store),
        )
    )
    constants = {"SPLITS": splits, "O": conv.out_channels, "area": conv.area, "count": conv.count}
    grid = linear_grid(conv.count, 64, call.target)
    emit(call, conv, "conv_split_sum.wgsl", read("partial", partial, "f32"), grid, constants, reads_x=False)


def store_function(body: str) -> str:
    return f"fn store(sum: f32, piece: u32, o: u32, at: u32) {{\n{body}}}\n"


ROUTES: tuple[Route, ...] = (
    ("depthwise", is_depthwise, depthwise),
    ("register", is_ungrouped_on_cpu, register),
    ("tile", is_ungrouped, tiled),
    ("direct", lambda conv, target: True, direct),
)
