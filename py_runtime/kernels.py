"""What an operator lowers to: dispatches of WGSL kernels over tensors.

A kernel is a file in `shaders/`. Its text is preceded by a prelude that is made here
from the dispatch: one `var` for each binding, an element offset for each (a view is an
address), constants that must be known when the text is parsed, and generated functions.
Scalar sizes are `override` constants of the file itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from .errors import LimitError

SHADERS = Path(__file__).resolve().parent.parent / "shaders"

Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Target:
    """What a plan may assume of the device; plain data, so that plans compare without one.

    software: the adapter runs on the CPU, where workgroup barriers are dear.
    f16: the device has `shader-f16`, so f16 tensors stay f16 in memory.
    """

    software: bool = False
    f16: bool = False
    max_workgroups: int = 65535
    max_workgroup_size: int = 256
    max_workgroup_storage: int = 16384
    max_binding_size: int = 128 << 20
    max_buffer_size: int = 256 << 20
    max_storage_buffers: int = 8
    offset_alignment: int = 256


@dataclass(frozen=True)
class Binding:
    """A tensor as a kernel sees it: under a name, as an array of elem.

    part: the elements (first, count) that are bound where a kernel takes a part of a tensor that
    is larger than a device binds at once; else all.
    """

    name: str
    tensor: int
    elem: str
    write: bool = False
    part: tuple[int, int] | None = None


@dataclass(frozen=True)
class Dispatch:
    """One kernel call.

    shader: file name in `shaders/`. constants: its overrides. definitions: `const`s set
    before its text. code: generated functions set before its text. grid: workgroups.
    op: the operator it serves; route: which way of doing it, both for reports.
    """

    op: str
    route: str
    shader: str
    bindings: tuple[Binding, ...]
    grid: Grid
    constants: dict[str, int | float] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
    code: str = ""

    @property
    def reads(self) -> tuple[int, ...]:
        return tuple(b.tensor for b in self.bindings if not b.write)

    @property
    def writes(self) -> tuple[int, ...]:
        return tuple(b.tensor for b in self.bindings if b.write)


def read(name: str, tensor: int, elem: str) -> Binding:
    return Binding(name, tensor, elem)


def write(name: str, tensor: int, elem: str) -> Binding:
    return Binding(name, tensor, elem, write=True)


def linear_grid(count: int, workgroup: int, target: Target) -> Grid:
    """Workgroups for `count` threads in a row, folded into y when x would be too many.

    The kernel finds its thread by `flat_index` of the prelude.
    """
    groups = -(-count // workgroup)
    if groups <= target.max_workgroups:
        return (groups, 1, 1)
    rows = -(-groups // target.max_workgroups)
    if rows > target.max_workgroups:
        raise LimitError(f"{count:,} elements are more than one dispatch can reach on this device")
    return (-(-groups // rows), rows, 1)


PRELUDE = """\
fn flat_index(id: vec3<u32>, groups: vec3<u32>, workgroup: u32) -> u32 {
    return id.y * groups.x * workgroup + id.x;
}
// x != x would do, were comparisons with NaN not left open; the bits are sure.
fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
"""


@cache
def shader_text(name: str) -> str:
    """The text of a file in `shaders/`."""
    return (SHADERS / name).read_text(encoding="utf-8")


def assemble(dispatch: Dispatch, offsets: tuple[int, ...]) -> str:
    """The whole WGSL text of a dispatch; offsets: the first element of each binding."""
    lines = []
    if any("f16" in text for text in (*(b.elem for b in dispatch.bindings), dispatch.code)):
        lines.append("enable f16;")
    for index, (binding, offset) in enumerate(zip(dispatch.bindings, offsets, strict=True)):
        access = "read_write" if binding.write else "read"
        lines.append(f"@group(0) @binding({index}) var<storage, {access}> {binding.name}: array<{binding.elem}>;")
        lines.append(f"const {binding.name}_offset = {offset}u;")
    lines.extend(f"const {name} = {value};" for name, value in dispatch.definitions.items())
    return "\n".join([*lines, PRELUDE + dispatch.code, shader_text(dispatch.shader)])
