"""The public face in Python: Runtime, Program, Method.

    runtime = await Runtime.create()
    program = await runtime.load_program("models/yolox.pte")
    method = await program.load_method("forward")
    outputs = await method.execute([array])

Names follow `executorch.runtime`; what waits for the GPU is awaitable. NumPy is imported
only when arrays come in or go out; the worker passes typed arrays and never needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .container import Region
from .device import Device, DeviceInfo, Files, load_numpy, typed_arrays
from .errors import ClosedError, ProgramError
from .inputs import check_inputs
from .method import CpuStep, GpuStep, Located, MethodMetadata, Step, check_steps, metadata_of, method_steps
from .program import MethodPlan, parse_program
from .program import Program as ParsedProgram
from .report import Report, StageReport, make_report
from .stage import Progress, Stage
from .tensor_file import parse_tensor_file


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

        Weights go to the GPU while they arrive. Raises FetchError, ProgramError,
        TruncatedProgramError, LimitError.
        """
        self._check()
        report = None if progress is None else lambda done, total: progress("download", done, total)
        return self.adopt(await Files.open(self._device, [source, *data], report))

    def adopt(self, files: Files) -> Program:
        """A program of files that are open already, as the worker opens them before Python is up."""
        self._check()
        try:
            program = Program(self._device, files)
        except Exception:
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

    def __init__(self, device: Device, files: Files) -> None:
        self._device, self._files = device, files
        head, size = files.head()
        self._parsed: ParsedProgram = parse_program(head, size)
        self._data = {key: Located(0, region) for key, region in self._parsed.named_data.items()}
        for index in range(1, int(files.js.files.length)):
            head, size = files.head(index)
            for key, region in parse_tensor_file(head, size).items():
                self._data[key] = Located(index, region)
        self._methods: list[Method] = []
        self._closed = False

    @property
    def method_names(self) -> tuple[str, ...]:
        return tuple(self._parsed.methods)

    async def load_method(self, name: str = "forward", progress: Progress | None = None) -> Method:
        """Plan and compile a method.

        Raises ProgramError when there is none of that name, MissingOperatorError,
        UnsupportedError, LimitError, GPUError.
        """
        if self._closed:
            raise ClosedError("this program was closed; load it again")
        if name not in self._parsed.methods:
            raise ProgramError(f"there is no method {name!r}; the program has {', '.join(self.method_names)}")
        if progress is not None:
            progress("plan", 0, 1)
        method = await Method.load(self, self._device, self._files, self._parsed, self._data, name, progress)
        self._methods.append(method)
        return method

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

    def __init__(
        self, program: Program, device: Device, method: MethodPlan, steps: Sequence[Step], stages: dict[int, Stage]
    ) -> None:
        self._program, self._device, self._method = program, device, method
        self._steps, self._stages = steps, stages
        self.metadata: MethodMetadata = metadata_of(method)
        self._whole = stages[0] if len(steps) == 1 and 0 in stages else None
        self._constants: dict[int, Any] = {}
        self._closed = False

    @classmethod
    async def load(
        cls,
        program: Program,
        device: Device,
        files: Files,
        parsed: ParsedProgram,
        data: Mapping[str, Located],
        name: str,
        progress: Progress | None,
    ) -> Method:
        """Plan and compile a method of a program; nothing stays bound when that fails."""

        async def read(region: Region) -> bytes:
            return await files.read(0, region.offset, region.size)

        plan = parsed.methods[name]
        steps = await method_steps(parsed, plan, data, read)
        on_cpu = any(not isinstance(step, GpuStep) for step in steps)
        if on_cpu:
            await load_numpy()
            from .fallback import KERNELS
            from .interpreter import load_constants
        check_steps(steps, name, KERNELS if on_cpu else ())
        stages = {i: Stage(device, files, s.joined) for i, s in enumerate(steps) if isinstance(s, GpuStep)}
        method = cls(program, device, plan, steps, stages)
        try:
            for stage in stages.values():
                await stage.prepare_bounds(progress)
            if on_cpu:
                method._constants = await load_constants(parsed, plan, steps, read)
        except Exception:
            method.close()
            raise
        return method

    async def execute(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on NumPy arrays; gives NumPy arrays.

        Raises InputCountError, InputShapeError, InputDtypeError, ClosedError, GPUError.
        """
        from .arrays import from_typed_arrays, to_buffers

        self._check()
        buffers, shapes = to_buffers(inputs, self.metadata)
        if self._whole is None:
            from .interpreter import run_steps

            return await run_steps(self._steps, self._stages, self._method, self._constants, inputs)
        outputs, plan = await self._whole.run(typed_arrays(buffers), shapes)
        return from_typed_arrays(outputs, plan.outputs)

    async def execute_js(
        self, dtypes: Sequence[str], shapes: Sequence[Sequence[int]], arrays: Any
    ) -> tuple[Any, list[list[int]]]:
        """Run on a JavaScript array of typed arrays; gives another, and its shapes.

        dtypes, shapes: one for each array. Where the method is whole on the GPU the data
        never becomes Python objects. Raises as `execute`.
        """
        self._check()
        check_inputs(dtypes, shapes, self.metadata.inputs)
        if self._whole is None:
            from .arrays import from_javascript, to_javascript

            results = await self.execute(from_javascript(arrays, dtypes, shapes))
            return to_javascript(results), [list(result.shape) for result in results]
        outputs, plan = await self._whole.run(arrays, tuple(tuple(shape) for shape in shapes))
        return outputs, [list(port.shape) for port in plan.outputs]

    async def reset(self) -> None:
        """Set the method's mutable buffers (a key-value cache, say) back to what the program starts them as."""
        self._check()
        for stage in self._stages.values():
            await stage.reset()

    async def report(self, rounds: int = 5) -> Report:
        """What a run consists of and how long each kernel takes; runs the kernels a few times."""
        self._check()
        parts = []
        for stage in self._stages.values():
            assert stage.last is not None  # made when the method was loaded
            plan, bound = stage.last
            timer, milliseconds = await bound.profile(rounds)
            parts.append(StageReport(stage.joined.graph, plan, timer, milliseconds))
        cpu = tuple(step.operator for step in self._steps if isinstance(step, CpuStep))
        return make_report(
            self.metadata.name, self._device.info, parts, weight_bytes=self._program.weight_bytes, cpu_operators=cpu
        )

    def _check(self) -> None:
        if self._closed:
            raise ClosedError("this method's program was closed; load it again to run it")

    def close(self) -> None:
        self._closed = True
        for stage in self._stages.values():
            stage.close()
