"""The public face in Python: Runtime, Program, Method.

    runtime = await Runtime.create()
    program = await runtime.load_program("models/yolox.pte")
    method = await program.load_method("forward")
    outputs = await method.execute([array])

Names follow `executorch.runtime`; what waits for the GPU is awaitable. NumPy is imported
only when arrays come in or go out; the worker passes typed arrays and never needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from .check import Prepared, cpu_operators, raise_problems
from .container import Region
from .crossings import crossings
from .device import Device, DeviceInfo, Files, load_numpy
from .errors import ClosedError, DeviceLostError, ProgramError, PteronError
from .inputs import check_inputs
from .method import MethodMetadata, metadata_of
from .preparation import Parsed, parse_files, prepare_methods
from .report import Report, StageReport, make_report
from .stage import Progress, Stage
from .steps import KernelTraits


class Runtime:
    """A device that programs are loaded on."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._programs: list[Program] = []
        self._closed = False

    @classmethod
    async def create(cls) -> Runtime:
        """Ask for the best adapter. Raises WebGPUUnavailableError."""
        return cls(await Device.create())

    @property
    def info(self) -> DeviceInfo:
        return self._device.info

    async def load_program(self, source: Any, data: Sequence[Any] = (), progress: Progress | None = None) -> Program:
        """Load a `.pte`: a URL or bytes; data: its `.ptd` files, if it has some.

        progress(stage, done, total): stage is "download", "plan" or "compile".

        What keeps any of its methods from running is told before a weight is fetched; then the
        weights go to the GPU while they arrive. Raises FetchError, ProgramError,
        TruncatedProgramError, MissingOperatorError, UnsupportedError, LimitError.
        """
        self._check()
        return await self.adopt(await Files.open(self._device, [source, *data]), progress)

    async def adopt(self, files: Files, progress: Progress | None = None) -> Program:
        """A program of files that are open already, as the worker opens them before Python is up."""
        self._check()
        try:
            await self._device.renew()
            program = await Program.prepare(self._device, files)
            report = None if progress is None else lambda done, total: progress("download", done, total)
            await files.load(report)
        except BaseException:
            files.close()
            raise
        self._programs.append(program)
        return program

    def _check(self) -> None:
        if self._closed:
            raise ClosedError("this runtime was closed; create another one")

    def close(self) -> None:
        """Close all programs and give the device back."""
        for program in self._programs:
            program.close()
        self._closed = True
        self._device.close()


class Program:
    """A loaded `.pte`."""

    def __init__(
        self,
        device: Device,
        files: Files,
        parsed: Parsed,
        prepared: dict[str, Prepared],
    ) -> None:
        self._device, self._files, self._parsed = device, files, parsed
        self._prepared = prepared
        self._methods: list[Method] = []
        self._closed = False
        self._generation, self._target = device.generation, device.target()
        self._turn = asyncio.Lock()

    @classmethod
    async def prepare(cls, device: Device, files: Files) -> Program:
        """Parse, check and plan a program of which only heads and delegates are there.

        Raises ProgramError, or one error that tells all that keeps its methods from running.
        """
        parsed = parse_files([files.head(index) for index in range(files.count)])
        prepared = await _prepare(parsed, files, device)
        if not all(found.steps.whole for found in prepared.values()):
            await load_numpy()
        return cls(device, files, parsed, prepared)

    async def renew(self) -> None:
        """Load the weights again if their device is lost, and plan again if the new one is of another kind."""
        async with self._turn:
            await self._device.renew()
            if self._generation != self._device.generation:
                await self._files.reload(self._device)
                if self._target != self._device.target():
                    self._prepared = await _prepare(self._parsed, self._files, self._device)
                self._generation, self._target = self._device.generation, self._device.target()

    def prepared(self, name: str) -> Prepared:
        """A method's plan for the device that there is."""
        return self._prepared[name]

    @property
    def method_names(self) -> tuple[str, ...]:
        return tuple(self._parsed.program.methods)

    async def load_method(self, name: str = "forward", progress: Progress | None = None) -> Method:
        """Compile a method. Raises ProgramError when there is none of that name, LimitError, GPUError."""
        if self._closed:
            raise ClosedError("this program was closed; load it again")
        if name not in self._prepared:
            raise ProgramError(f"there is no method {name!r}; the program has {', '.join(self.method_names)}")
        if progress is not None:
            progress("plan", 0, 1)
        await self.renew()
        method = Method(self, self._device, self._files, name)
        try:
            await method.compile(progress)
        except BaseException:
            method.close()
            raise
        self._methods.append(method)
        return method

    @property
    def origin(self) -> dict[str, Any]:
        """Where the weights came from and whether the browser keeps them.

        "cache": "kept" (in the browser's storage), "full" (no room there: fetched again next
        time), "none" (the browser keeps no files), "memory" (bytes that were given). "fetched",
        "cached": bytes from the network and from the browser's storage.
        """
        return self._files.origin

    @property
    def weight_bytes(self) -> int:
        """Bytes of GPU memory that hold weights as they are in the files."""
        return self._files.bytes

    def close(self) -> None:
        """Give back every GPU buffer of this program and its methods."""
        self._closed = True
        for method in self._methods:
            method.close()
        self._files.close()


class Method:
    """A compiled entry point of a program.

    Whole on the GPU, a run is one call into JavaScript. What the exporter left on the CPU
    runs in NumPy, step by step (interpreter.py).
    """

    def __init__(self, program: Program, device: Device, files: Files, name: str) -> None:
        self._program, self._device, self._files = program, device, files
        self._closed = False
        self._turn = asyncio.Lock()
        self._build(name)
        self.metadata: MethodMetadata = metadata_of(self._prepared.method)

    def _build(self, name: str) -> None:
        """What runs the method, with nothing bound yet."""
        self._prepared = prepared = self._program.prepared(name)
        self._generation = self._device.generation
        self._stages = {
            position: Stage(self._device, self._files, prepared.graph_step(position), plan)
            for position, plan in prepared.plans.items()
        }
        whole = prepared.steps.whole
        self._machine = None if whole else _machine(self._program, self._files, prepared, self._stages)

    async def compile(self, progress: Progress | None = None) -> None:
        """Bind the plans for the largest shapes."""
        with self._files.held():  # the next stage needs weights that this one does not
            for stage in self._stages.values():
                await stage.prepare_bounds(progress)

    async def _ready(self) -> None:
        """Before a run: when the device is lost, everything is made again on another one; states start over.

        Raises ClosedError, WebGPUUnavailableError, and what loading raises.
        """
        self._check()
        if self._generation == self._device.generation and not self._device.lost:
            return
        async with self._turn:
            await self._program.renew()
            if self._generation != self._device.generation:
                self._release(DeviceLostError("the GPU device went away under this run; run again"))
                self._build(self.metadata.name)
                try:
                    await self.compile()
                except BaseException:
                    self._generation = -1  # the next run tries again
                    raise
            self._check()

    async def execute(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on NumPy arrays; gives NumPy arrays.

        Raises InputCountError, InputShapeError, InputDtypeError, ClosedError, GPUError, and
        DeviceLostError if the device goes away under the run; the next run makes all of it again.
        """
        from .arrays import checked, from_typed_arrays, to_javascript

        await self._ready()
        arrays = checked(inputs, self.metadata)
        if self._machine is not None:
            found: list[Any] = await self._machine.execute(arrays)
            return found
        outputs, plan = await self._stages[0].run(to_javascript(arrays), tuple(array.shape for array in arrays))
        ports = plan.outputs
        return from_typed_arrays(outputs, [port.dtype for port in ports], [port.shape for port in ports])

    async def execute_js(
        self, dtypes: Sequence[str], shapes: Sequence[Sequence[int]], arrays: Any
    ) -> tuple[Any, list[list[int]]]:
        """Run on a JavaScript array of typed arrays; gives another, and its shapes.

        dtypes, shapes: one for each array. Where the method is whole on the GPU the data
        never becomes Python objects. Raises as `execute`.
        """
        await self._ready()
        check_inputs(dtypes, shapes, self.metadata.inputs)
        if self._machine is not None:
            from .arrays import from_javascript, to_javascript

            results = await self._machine.execute(from_javascript(arrays, dtypes, shapes))
            return to_javascript(results), [list(result.shape) for result in results]
        outputs, plan = await self._stages[0].run(arrays, tuple(tuple(shape) for shape in shapes))
        return outputs, [list(port.shape) for port in plan.outputs]

    async def reset(self) -> None:
        """Set the method's mutable buffers (a key-value cache, say) back to what the program starts them as."""
        await self._ready()
        if self._machine is not None:
            await self._machine.reset()
        for stage in self._stages.values():
            await stage.reset()

    async def report(self, rounds: int = 5) -> Report:
        """What a run consists of and how long each kernel takes; runs the kernels a few times."""
        await self._ready()
        parts = []
        for stage in self._stages.values():
            assert stage.last is not None  # made when the method was loaded
            plan, bound = stage.last
            timer, milliseconds = await bound.profile(rounds)
            parts.append(StageReport(stage.joined.graph, plan, timer, milliseconds))
        return make_report(
            self.metadata.name,
            self._device.info,
            parts,
            weight_bytes=self._program.weight_bytes,
            cpu_operators=cpu_operators(self._prepared.steps),
            crossings=crossings(self._prepared.steps, self._prepared.method),
        )

    def _check(self) -> None:
        if self._closed:
            raise _closed()

    def close(self) -> None:
        self._closed = True
        self._release(_closed())

    def _release(self, reason: PteronError) -> None:
        """Give back what runs need; those under way raise this error."""
        if self._machine is not None:
            self._machine.close(reason)
        for stage in self._stages.values():
            stage.close()


def _closed() -> ClosedError:
    return ClosedError("this method's program was closed; load it again to run it")


async def _prepare(parsed: Parsed, files: Files, device: Device) -> dict[str, Prepared]:
    """Plan all methods for a device; one error tells all that keeps any of them from running."""

    async def read(region: Region) -> bytes:
        return await files.read(0, region.offset, region.size)

    prepared, problems = await prepare_methods(parsed, read, _kernels, device.target())
    raise_problems(problems)
    return prepared


async def _kernels() -> Mapping[str, KernelTraits]:
    """The CPU operators; they need NumPy."""
    await load_numpy()
    from .fallback import KERNELS

    return KERNELS


def _machine(program: Program, files: Files, prepared: Prepared, stages: dict[int, Stage]) -> Any:
    """What runs a method that is partly on the CPU; it needs NumPy."""
    from .interpreter import Constants, Machine

    async def read(file: int, region: Region) -> bytes:
        return await files.read(file, region.offset, region.size)

    constants = Constants(program._parsed.program, prepared.method, program._parsed.data, read)
    return Machine(prepared.steps, prepared.method, stages, constants)
