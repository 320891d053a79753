"""What the worker calls: the runtime's objects by number, results as plain data.

Everything here takes and gives JavaScript values, so the page needs no proxies.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from typing import Any

from .device import Files
from .runtime import Method, Program, Runtime


class Bridge:
    """One runtime and its programs and methods, each under a number."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.objects: dict[int, Any] = {}
        self.numbers = count(1)

    @classmethod
    async def create(cls) -> Bridge:
        return cls(await Runtime.create())

    def add(self, thing: Any) -> int:
        number = next(self.numbers)
        self.objects[number] = thing
        return number

    def info(self) -> str:
        return json.dumps(asdict(self.runtime.info))

    async def adopt(self, files: Any, progress: Callable[[str, int, int], None]) -> str:
        """Take over files that the worker has opened, and load them: JSON of the program's number and methods."""
        program = await self.runtime.adopt(Files(files), progress)
        return json.dumps({"program": self.add(program), "methods": program.method_names, "origin": program.origin})

    async def load_method(self, number: int, name: str, progress: Callable[[str, int, int], None]) -> str:
        program: Program = self.objects[number]
        method = await program.load_method(name, progress)
        return json.dumps({"method": self.add(method), "metadata": asdict(method.metadata)})

    async def execute(self, number: int, specs: str, arrays: Any) -> Any:
        """specs: JSON of [dtype, dims] for each array. Gives the outputs and JSON of their shapes."""
        method: Method = self.objects[number]
        given = json.loads(specs)
        outputs, shapes = await method.execute_js([dtype for dtype, _ in given], [dims for _, dims in given], arrays)
        return outputs, json.dumps(shapes)

    async def reset(self, number: int) -> None:
        method: Method = self.objects[number]
        await method.reset()

    async def report(self, number: int, rounds: int) -> str:
        method: Method = self.objects[number]
        return json.dumps((await method.report(rounds)).to_dict())

    def close(self, number: int) -> None:
        thing = self.objects.pop(number, None)
        if thing is not None:
            thing.close()

    def close_all(self) -> None:
        self.objects.clear()
        self.runtime.close()
