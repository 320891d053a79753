"""`python -m tests.fuzz FOLDER --count N`: damaged programs through parse and plan, each within time and memory.

Prints one JSON object a line: each failure, then the totals. Runs in a process of its own, whose
address space is limited, so that a file which asks for too much memory is caught at its request.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from export.offline import finished
from py_runtime.container import Region
from py_runtime.errors import PteronError
from py_runtime.fallback import KERNELS
from py_runtime.kernels import Target
from py_runtime.plan import BoundRange, Plan
from py_runtime.preparation import parse_files, prepare_methods
from py_runtime.steps import KernelTraits

from .mutate import mutate, read_specimen

SECONDS = 2
BYTES = 256 << 20


class TooSlow(Exception):
    """Raised by the alarm; no error of Pteron's, so nothing in it takes it for one."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    def alarm(signum: int, frame: object) -> None:
        raise TooSlow(f"more than {seconds} s")

    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def limit_memory() -> None:
    """From here on the process may map `BYTES` more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def outcome(data: bytes) -> str:
    """valid if all methods have a valid plan, else the name of the error; raises what is no named error."""

    async def read(region: Region) -> bytes:
        return data[region.offset : region.offset + region.size]

    async def kernels() -> Mapping[str, KernelTraits]:
        return KERNELS

    try:
        prepared, problems = finished(prepare_methods(parse_files([(data, len(data))]), read, kernels, Target()))
    except PteronError as error:
        return told(type(error), str(error))
    for problem in problems:
        told(problem.error, str(problem))
    for method in prepared.values():
        for plan in method.plans.values():
            check_plan(plan, len(data))
    return problems[0].error.__name__ if problems else "valid"


def told(error: type[PteronError], text: str) -> str:
    """The error's name; AssertionError if it tells nothing."""
    assert error is not PteronError and len(text) > 20 and not re.search(r"0x[0-9a-f]{8}|Traceback", text), text
    return error.__name__


def check_plan(plan: Plan, file_size: int) -> None:
    """AssertionError unless a GPU could take the plan: all it binds lies within what it makes."""
    target = Target()
    assert all(0 < size <= target.max_buffer_size for size in plan.buffers)
    regions = [(constant, constant.region) for constant in plan.constants if constant.file == 0]
    assert all(r is not None and r.offset + c.size <= file_size and c.size <= r.size for c, r in regions), regions

    def inside(range: BoundRange) -> bool:
        sizes = plan.buffers if range.buffer >= 0 else [c.size for c in plan.constants]
        size = sizes[range.buffer if range.buffer >= 0 else ~range.buffer]
        return range.offset >= 0 and range.size > 0 and range.offset + range.size <= size + 3

    for step in (*plan.prepare, *plan.reset, *plan.run):
        assert 0 <= step.pipeline < len(plan.pipelines), step
        assert len(step.bindings) == len(plan.pipelines[step.pipeline].access) <= target.max_storage_buffers, step
        assert all(map(inside, step.bindings)), step
        assert all(0 < count <= target.max_workgroups for count in step.grid), step
    assert all(inside(port.range) for port in (*plan.inputs, *plan.outputs) if 0 not in port.shape)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of real .pte files")
    parser.add_argument("--count", type=int, required=True, help="damaged files, taken from the real ones in turn")
    parser.add_argument("--first", type=int, default=0, help="the first one's number: the seed")
    arguments = parser.parse_args()
    specimens = [read_specimen(path) for path in sorted(arguments.folder.glob("*.pte"))]
    # What is imported at first use is there before the limits count.
    for specimen in specimens:
        outcome(specimen.data)
    limit_memory()
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for seed in range(arguments.first, arguments.first + arguments.count):
        label, data = mutate(specimens[seed % len(specimens)], seed)
        start = time.perf_counter()
        try:
            with within(SECONDS):
                outcomes[outcome(data)] += 1
        except (Exception, MemoryError) as error:
            outcomes["failed"] += 1
            where = traceback.format_exc().splitlines()[-9:]
            print(json.dumps({"failed": label, "seed": seed, "error": repr(error), "where": where}), flush=True)
        slowest = max(slowest, time.perf_counter() - start)
    print(json.dumps({"files": len(specimens), "slowest_s": round(slowest, 3), "outcomes": outcomes}))
    return int(outcomes["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
