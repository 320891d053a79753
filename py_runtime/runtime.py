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
from .plan import Plan, make_plan
from .program import MethodPlan, parse_program
from .program import Program as ParsedProgram
from .report import Report, make_report
from .tensor_file import parse_tensor_file

#: progress(stage, done, total): stage is "download", "plan" or "compile".
Progress = Callable[[str, int, int], None]


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
        plan = make_plan(joined.graph, self._device.target(), joined.inputs, joined.outputs)
        report = None if progress is None else lambda done, total: progress("compile", done, total)
        bound = await BoundPlan.bind(self._device, plan, self._files, report)
        method = Method(self, joined, plan, bound, name)
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

    @property
    def device(self) -> Device:
        return self._device

    def close(self) -> None:
        """Give back every GPU buffer of this program and its methods."""
        self._closed = True
        for method in self._methods:
            method.close()
        self._files.close()


class Method:
    """A compiled entry point of a program."""

    def __init__(self, program: Program, joined: MethodGraph, plan: Plan, bound: BoundPlan, name: str) -> None:
        self._program, self._joined, self._plan, self._bound = program, joined, plan, bound
        self.metadata: MethodMetadata = joined.metadata(name)
        self._ran = False
        self._closed = False

    async def execute(self, inputs: Sequence[Any]) -> list[Any]:
        """Run on NumPy arrays; gives NumPy arrays.

        Raises InputCountError, InputShapeError, InputDtypeError, ClosedError, GPUError.
        """
        from .arrays import from_typed_arrays, to_buffers

        self._check()
        buffers = to_buffers(inputs, self.metadata)
        outputs = await self._bound.run(typed_arrays(buffers))
        self._ran = True
        return from_typed_arrays(outputs, self.metadata)

    async def execute_js(self, dtypes: Sequence[str], shapes: Sequence[Sequence[int]], arrays: Any) -> Any:
        """Run on a JavaScript array of typed arrays; gives another.

        dtypes, shapes: one for each array. The data never becomes Python objects. Raises
        as `execute`.
        """
        self._check()
        check_inputs(dtypes, shapes, self.metadata.inputs)
        outputs = await self._bound.run(arrays)
        self._ran = True
        return outputs

    async def report(self, rounds: int = 5) -> Report:
        """What a run consists of and how long each kernel takes; runs the method a few times."""
        self._check()
        timer, milliseconds = await self._bound.profile(rounds)
        return make_report(
            self.metadata.name,
            self._program.device.info,
            self._joined.graph,
            self._plan,
            timer,
            milliseconds,
            weight_bytes=self._program.weight_bytes,
        )

    def _check(self) -> None:
        if self._closed:
            raise ClosedError("this method's program was closed; load it again to run it")

    def close(self) -> None:
        self._closed = True
        self._bound.close()
