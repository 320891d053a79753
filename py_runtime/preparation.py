"""A whole program, from its heads to plans, without a device: what the runtime, `python -m export` and tests share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from .check import Prepared, Problem, prepare_method
from .container import Region
from .errors import PteronError
from .kernels import Target
from .merge import Located
from .program import KernelCall, Program, parse_program
from .steps import KernelTraits, method_graphs
from .tensor_file import parse_tensor_file

Head = tuple[bytes, int]
ReadRegion = Callable[[Region], Awaitable[bytes]]
Kernels = Callable[[], Awaitable[Mapping[str, KernelTraits]]]


@dataclass(frozen=True)
class Parsed:
    """A program, and where each datum that it or its `.ptd` files name lies."""

    program: Program
    data: dict[str, Located]


def parse_files(heads: Sequence[Head]) -> Parsed:
    """heads: of the `.pte`, then of its `.ptd` files, each with the size of the whole file in bytes.

    Raises ProgramError, TruncatedProgramError.
    """
    (head, size), *others = heads
    program = parse_program(head, size)
    data = {key: Located(0, region) for key, region in program.named_data.items()}
    for index, (head, size) in enumerate(others, 1):
        for key, region in parse_tensor_file(head, size).items():
            data[key] = Located(index, region)
    return Parsed(program, data)


async def prepare_methods(
    parsed: Parsed, read: ReadRegion, kernels: Kernels, target: Target
) -> tuple[dict[str, Prepared], list[Problem]]:
    """Plan all methods; those that can't run are missing, and all that is wrong with them is told.

    read: bytes of the `.pte`; only delegates are read. kernels: gives the CPU operators; asked
    only if the program calls some.
    """
    methods = parsed.program.methods.values()
    found: Mapping[str, KernelTraits] = {}
    if any(isinstance(step, KernelCall) for method in methods for chain in method.chains for step in chain):
        found = await kernels()
    prepared: dict[str, Prepared] = {}
    problems: list[Problem] = []
    for method in methods:
        try:
            graphs = await method_graphs(method, read)
        except PteronError as error:
            problems.append(Problem(method.name, type(error), str(error)))
            continue
        ready, more = prepare_method(method, graphs, parsed.data, found, target)
        problems.extend(more)
        if ready is not None:
            prepared[method.name] = ready
    return prepared, problems
