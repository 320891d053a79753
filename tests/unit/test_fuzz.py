"""Damaged programs end in a named error or a valid plan, in time and in little memory.

`python -m tests tests/unit/test_fuzz.py --fuzz 10000` takes more of them than the default.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from environment import ROOT
from export.offline import open_files
from py_runtime.errors import PteronError
from py_runtime.kernels import Target
from tests.fuzz import TooSlow, check_plan, outcome, told, within
from tests.mutate import DAMAGE, mutate, read_specimen

SLOWEST_S = 2


def test_damaged_programs_end_in_a_named_error_or_a_valid_plan(goldens: Path, request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--fuzz")
    command = [sys.executable, "-m", "tests.fuzz", str(goldens), "--count", str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[:5000]}{done.stderr[-5000:]}"
    totals = json.loads(done.stdout)
    assert totals["files"] >= 20
    assert totals["slowest_s"] <= SLOWEST_S
    assert sum(totals["outcomes"].values()) == count
    assert {"valid", "ProgramError", "TruncatedProgramError", "MissingOperatorError"} <= totals["outcomes"].keys()


@pytest.mark.parametrize(("megabytes", "end"), [(128, ""), (300, "MemoryError")])
def test_too_much_memory_is_a_failure(megabytes: int, end: str) -> None:
    code = f"from tests.fuzz import limit_memory; limit_memory(); bytearray({megabytes} << 20)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.strip().rpartition("\n")[2] == end


def test_too_much_time_is_a_failure() -> None:
    with pytest.raises(TooSlow), within(0.01):
        time.sleep(1)


def test_damage_is_damage_and_the_same_each_time(goldens: Path) -> None:
    specimen = read_specimen(goldens / "convolutions.pte")
    assert len(specimen.parts) > 2
    files = [mutate(specimen, seed) for seed in range(200)]
    assert files == [mutate(specimen, seed) for seed in range(200)]
    assert {label.rpartition(", ")[2] for label, _ in files} == {kind for kind, _ in DAMAGE}
    assert sum(data != specimen.data for _, data in files) > 150


def test_a_whole_program_is_valid(goldens: Path) -> None:
    assert outcome((goldens / "convolutions.pte").read_bytes()) == "valid"


def test_a_plan_that_binds_what_is_not_there_is_a_failure(goldens: Path) -> None:
    path = goldens / "convolutions.pte"
    (plan,) = open_files([path], Target()).prepared["forward"].plans.values()
    check_plan(plan, path.stat().st_size)
    with pytest.raises(AssertionError):
        check_plan(plan, 1000)
    with pytest.raises(AssertionError):
        check_plan(replace(plan, buffers=tuple(size // 2 for size in plan.buffers)), path.stat().st_size)
    with pytest.raises(AssertionError):
        check_plan(replace(plan, run=(replace(plan.run[0], grid=(70_000, 1, 1)),)), path.stat().st_size)


def test_an_error_that_tells_nothing_is_a_failure() -> None:
    with pytest.raises(AssertionError):
        told(PteronError, "something went wrong somewhere")
