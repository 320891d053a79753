"""The public face in Python: Runtime, Program, Method.

    runtime = await Runtime.create()
    program = await runtime.load_program("models/yolox.pte")
    method = await program.load_method("forward")
    outputs = await method.execute([array])

Names follow `executorch.runtime`; what waits for the GPU is awaitable. NumPy is imported
only when arrays come in or go out; the worker passes typed arrays and never needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .container import Region
from .device import BoundPlan, Device, DeviceInfo, Files, typed_arrays
from .errors import ClosedError, ProgramError
from .inputs import check_inputs
from .method import Located, MethodGraph, MethodMetadata, method_graph
from .passes.specialize import specialize
from .plan import Plan, make_plan
from .program import MethodPlan, parse_program
from .program import Program as ParsedProgram
from .report import Report, make_report
from .tensor_file import parse_tensor_file

#: progress(stage, done, total): stage is "download", "plan" or "compile".
Progress = Callable[[str, int, int], None]

Shapes = tuple[tuple[int, ...], ...]

#: Plans of a method with dynamic shapes that stay bound.
KEPT_PLANS = 8


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
        plan_of = self._parsed.methods[name]
        if progress is not None:
            progress("plan", 0, 1)
        joined = await self._graph(plan_of)
        method = Method(self, self._device, self._files, joined, name)
        await method.prepare(tuple(port.shape for port in joined.inputs), progress)
        self._methods.append(method)
        return method

    async def _graph(self, method: MethodPlan) -> MethodGraph:
        async def read(region: Region) -> bytes:
            return await self._files.read(0, region.offset, region.size)

        return await method_graph(self._parsed, method, self._data, read)

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

    Where shapes are dynamic there is a plan for each set of input shapes that was run; the
    last few stay bound, so going back to one compiles nothing.
    """

    def __init__(self, program: Program, device: Device, files: Files, joined: MethodGraph, name: str) -> None:
        self._program, self._device, self._files, self._joined = program, device, files, joined
        self.metadata: MethodMetadata = joined.metadata(name)
        self._bound: dict[Shapes, tuple[Plan, BoundPlan]] = {}
        self._last: tuple[Plan, BoundPlan] | None = None
        self._closed = False

    async def prepare(self, shapes: Shapes, progress: Progress | None = None) -> tuple[Plan, BoundPlan]:
        """The plan for these input shapes, planned and compiled if it is not there."""
        found = self._bound.pop(shapes, None)
        if found is None:
            inputs = dict(zip(self._joined.graph.inputs, shapes, strict=True))
            plan = make_plan(
                specialize(self._joined.graph, inputs),
                self._device.target(),
                self._joined.inputs,
                self._joined.outputs,
            )
            report = None if progress is None else lambda done, total: progress("compile", done, total)
            found = plan, await BoundPlan.bind(self._device, plan, self._files, report)
            if len(self._bound) >= KEPT_PLANS:
                _, oldest = self._bound.pop(next(iter(self._bound)))
                oldest.close()
        self._bound[shapes] = self._last = found
        return found

    async def execute(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on NumPy arrays; gives NumPy arrays.

        Raises InputCountError, InputShapeError, InputDtypeError, ClosedError, GPUError.
        """
        from .arrays import from_typed_arrays, to_buffers

        self._check()
        buffers, shapes = to_buffers(inputs, self.metadata)
        plan, bound = await self.prepare(shapes)
        outputs = await bound.run(typed_arrays(buffers))
        return from_typed_arrays(outputs, plan.outputs)

    async def execute_js(
        self, dtypes: Sequence[str], shapes: Sequence[Sequence[int]], arrays: Any
    ) -> tuple[Any, list[list[int]]]:
        """Run on a JavaScript array of typed arrays; gives another, and its shapes.

        dtypes, shapes: one for each array. The data never becomes Python objects. Raises
        as `execute`.
        """
        self._check()
        check_inputs(dtypes, shapes, self.metadata.inputs)
        plan, bound = await self.prepare(tuple(tuple(shape) for shape in shapes))
        return await bound.run(arrays), [list(port.shape) for port in plan.outputs]

    async def report(self, rounds: int = 5) -> Report:
        """What a run consists of and how long each kernel takes; runs the method a few times."""
        self._check()
        assert self._last is not None  # made when the method was loaded
        plan, bound = self._last
        timer, milliseconds = await bound.profile(rounds)
        return make_report(
            self.metadata.name,
            self._device.info,
            self._joined.graph,
            plan,
            timer,
            milliseconds,
            weight_bytes=self._program.weight_bytes,
        )

    def _check(self) -> None:
        if self._closed:
            raise ClosedError("this method's program was closed; load it again to run it")

    def close(self) -> None:
        self._closed = True
        for _, bound in self._bound.values():
            bound.close()
        self._bound.clear()
