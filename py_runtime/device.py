"""The one module that touches JavaScript: the device, open files and bound plans.

The page's worker registers the JavaScript modules beside this file as `pteron_js`
(`registerJsModule`), because a strict CSP allows no `eval`. Off the browser this module
imports, and using it raises WebGPUUnavailableError.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from . import errors
from .errors import PteronError, WebGPUUnavailableError
from .kernels import Target
from .plan import Plan

try:
    import pteron_js  # type: ignore[import-not-found]
    import pyodide_js
    from pyodide.ffi import JsException, create_proxy, to_js
except ImportError:  # CPython, or Pyodide without the worker
    pteron_js = None

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class DeviceInfo:
    """The adapter, as `runtime.info` gives it."""

    vendor: str
    architecture: str
    description: str
    software: bool
    features: tuple[str, ...]
    limits: dict[str, int]


class Device:
    """A WebGPU device and its queue of work. Make one with `await Device.create()`.

    generation: how many devices there were before this one, which all went away.
    """

    def __init__(self, device: Any, info: DeviceInfo, queue: Any) -> None:
        self.js, self.info, self.queue = device, info, queue
        self.generation = 0
        self._turn = asyncio.Lock()

    @classmethod
    async def create(cls) -> Device:
        """The best adapter's device, the one that the worker already asked for if it did."""
        if pteron_js is None:
            raise WebGPUUnavailableError(
                "this Python runs outside Pteron's worker, where there is no WebGPU. Parsing and planning "
                "work here; running needs the browser: see docs/design.md."
            )
        return cls(*await _request())

    @property
    def lost(self) -> bool:
        """Whether the device has gone away: the GPU's process ended, its driver was replaced, …"""
        return pteron_js.lostDevice(self.js) is not None

    async def renew(self) -> None:
        """Get another device if this one is lost; nothing made on the old one is of use then."""
        async with self._turn:
            if self.lost:
                self.js, self.info, self.queue = await _request()
                self.generation += 1

    def target(self) -> Target:
        """What plans may assume of this device."""
        limits = self.info.limits
        return Target(
            software=self.info.software,
            f16="shader-f16" in self.info.features,
            max_workgroups=limits["maxComputeWorkgroupsPerDimension"],
            max_workgroup_size=limits["maxComputeInvocationsPerWorkgroup"],
            max_workgroup_storage=limits["maxComputeWorkgroupStorageSize"],
            max_binding_size=limits["maxStorageBufferBindingSize"],
            max_buffer_size=limits["maxBufferSize"],
            max_storage_buffers=limits["maxStorageBuffersPerShaderStage"],
            offset_alignment=limits["minStorageBufferOffsetAlignment"],
        )

    def close(self) -> None:
        self.js.destroy()


async def _request() -> tuple[Any, DeviceInfo, Any]:
    """The best adapter's device, what is known of it, and a queue for its work."""
    with translated():
        got = await pteron_js.requestDevice()
        return got.device, DeviceInfo(**_info(got.info.to_py())), pteron_js.Queue.new()


def _info(raw: dict[str, Any]) -> dict[str, Any]:
    limits = {name: int(value) for name, value in raw["limits"].items()}
    return {**raw, "features": tuple(raw["features"]), "limits": limits}


class Files:
    """A program's open files: heads in memory, weights on the GPU."""

    def __init__(self, files: Any) -> None:
        self.js = files

    @classmethod
    async def open(cls, device: Device, sources: Sequence[Any]) -> Files:
        """Open a `.pte` and its `.ptd`s: URLs, bytes, or Blobs and ArrayBuffers from JavaScript. Weights come later."""
        with translated():
            given = [to_js(s) if isinstance(s, bytes | bytearray | memoryview) else s for s in sources]
            return cls(await pteron_js.openFiles(device.js, to_js(given)))

    async def load(self, progress: Progress | None) -> None:
        """Send the weights to the GPU. progress(done, total) in bytes of the files."""
        with translated(), _callback(progress) as report:
            await self.js.load(report)

    async def reload(self, device: Device) -> None:
        """Send the weights to another device; nothing that was bound before is any more."""
        with translated():
            await self.js.reload(device.js)

    @contextmanager
    def held(self) -> Any:
        """Within the block no weight is given back, whoever has no use for it."""
        token = to_js([])  # an object like no other
        self.js.hold(token)
        try:
            yield
        finally:
            self.js.release(token)

    @property
    def origin(self) -> dict[str, Any]:
        """Where the weights came from: "cache" (kept, full, none or memory), and bytes "fetched" and "cached"."""
        found: dict[str, Any] = self.js.origin.to_py()
        return found

    @property
    def count(self) -> int:
        """The `.pte` and its `.ptd` files."""
        return int(self.js.files.length)

    def head(self, index: int = 0) -> tuple[bytes, int]:
        """The head of a file, as far as it was kept, and the whole file's size in bytes."""
        file = self.js.get(index)
        return file.head.to_py().tobytes(), int(file.size)

    async def read(self, index: int, offset: int, size: int) -> bytes:
        with translated():
            got = await self.js.get(index).read(offset, size)
            return bytes(got.to_py())

    @property
    def bytes(self) -> int:
        return int(self.js.bytes)

    def close(self) -> None:
        self.js.close()


@dataclass
class GpuTensor:
    """A tensor that a run left on the GPU. array: its elements, once they have been read."""

    js: Any
    dtype: str
    shape: tuple[int, ...]
    array: Any = None

    def reshape(self, shape: Sequence[int]) -> GpuTensor:
        """The same memory in another shape."""
        array = None if self.array is None else self.array.reshape(shape)
        return GpuTensor(self.js, self.dtype, tuple(shape), array)

    async def read(self) -> Any:
        """Its bytes, flat, as a NumPy array of uint8."""
        from .arrays import byte_array

        with translated():
            return byte_array(await self.js.read())

    def destroy(self) -> None:
        self.js.destroy()


class StateBuffers:
    """GPU buffers that keep their values between runs, shared by all plans of one graph."""

    def __init__(self) -> None:
        self.js = to_js([])

    @property
    def bytes(self) -> int:
        return sum(int(buffer.size) for buffer in self.js)

    def close(self) -> None:
        for buffer in self.js:
            buffer.destroy()
        self.js = to_js([])


class BoundPlan:
    """A plan compiled on a device. Make one with `await BoundPlan.bind(...)`."""

    def __init__(self, bound: Any) -> None:
        self.js = bound

    @classmethod
    async def bind(
        cls, device: Device, plan: Plan, files: Files, states: StateBuffers, progress: Progress | None
    ) -> BoundPlan:
        text = json.dumps(plan.to_dict())
        with translated(), _callback(progress) as report:
            return cls(await pteron_js.bind(device.js, device.queue, text, files.js, states.js, report))

    async def run(self, inputs: Any) -> Any:
        """One run: typed arrays or tensors on the GPU in, typed arrays out, one call into JavaScript."""
        with translated():
            return await self.js.run(inputs)

    async def run_keeping(self, inputs: Any, read: Sequence[bool], keep: Sequence[bool]) -> list[tuple[Any, Any]]:
        """The same, with each output as (typed array where read says so, tensor on the GPU where keep does)."""
        with translated():
            outputs = await self.js.run(inputs, to_js(list(read)), to_js(list(keep)))
        return [(output.array, output.tensor) for output in outputs]

    async def reset(self) -> None:
        """Set the states to what they start as."""
        with translated():
            await self.js.reset()

    async def profile(self, rounds: int) -> tuple[str, list[float]]:
        """The timer's name and the milliseconds of each step, over the inputs of the last run."""
        with translated():
            got = (await self.js.profile(rounds)).to_py()
            return got["timer"], list(got["milliseconds"])

    @property
    def bytes(self) -> int:
        return int(self.js.bytes)

    def close(self) -> None:
        self.js.close()


@contextmanager
def translated() -> Any:
    """Turn a named JavaScript error into the Python error of that name."""
    try:
        yield
    except JsException as error:
        kind = getattr(errors, str(error.name), None)
        if isinstance(kind, type) and issubclass(kind, PteronError):
            raise kind(str(error.message)) from None
        raise errors.GPUError(f"{error.name}: {error.message}") from None


@contextmanager
def _callback(function: Callable[..., None] | None) -> Any:
    """A Python callable that JavaScript may call until the block ends."""
    if function is None:
        yield None
        return
    proxy = create_proxy(function)
    try:
        yield proxy
    finally:
        proxy.destroy()


async def load_numpy() -> None:
    """Fetch NumPy into this Pyodide, if it is not there."""
    await pyodide_js.loadPackage("numpy", messageCallback=_quiet, errorCallback=_quiet)


def _quiet(*_: Any) -> None:
    """Pyodide tells the console of each package; a page's console is its own."""


def to_javascript_list(items: Sequence[memoryview | GpuTensor]) -> Any:
    """A JavaScript array: Python buffers as typed arrays of the same element type (copies), tensors as they are."""
    return to_js([item.js if isinstance(item, GpuTensor) else to_js(item) for item in items])
