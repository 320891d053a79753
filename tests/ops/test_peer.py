"""The cases of ExecuTorch's own WebGPU suite: exported programs with inputs and goldens.

There are 390 checks (peer_cases.py says where they come from). A check passes when every
element has |out - golden| <= atol + rtol * |golden|, shape and dtype agree, and NaN stands only
where the golden has it. All run in one page with one boot of Python.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.site import Failure, RuntimePage

from .peer_cases import find_cases

CASES = 390


def load_cases() -> list[dict[str, Any]]:
    folder = find_cases()
    return json.loads((folder / "manifest.json").read_text()) if folder else []


def name_of(case: dict[str, Any]) -> str:
    return f"{case['op']}__{case['case']}"


ALL = load_cases()


def read(folder: Path, entry: dict[str, Any]) -> np.ndarray:
    raw = (folder / entry["path"]).read_bytes()
    return np.frombuffer(raw, entry["dtype"]).reshape(entry["shape"])


@pytest.fixture(scope="module")
def folder(site: Any) -> Path:
    found = find_cases()
    if found is None:
        pytest.fail("the peer's cases are missing: run `python -m tests.ops.peer_cases`, or `python -m tests`")
    site.folders["optests"] = found
    return found


def test_no_case_is_lost(folder: Path) -> None:
    assert len(ALL) == CASES


def check_case(page: RuntimePage, folder: Path, case: dict[str, Any]) -> None:
    inputs = [read(folder, entry) for entry in case["inputs"]]
    outputs = page.run(f"/test-data/optests/{case['pte']}", inputs)
    assert not isinstance(outputs, Failure), outputs
    golden = read(folder, case["golden"])
    got = outputs[case["golden"]["output_index"]]
    assert (got.shape, got.dtype) == (golden.shape, golden.dtype)
    assert (np.isnan(got) == np.isnan(golden)).all() if golden.dtype.kind == "f" else True
    near = np.abs(got.astype(np.float64) - golden) <= case["atol"] + case["rtol"] * np.abs(golden.astype(np.float64))
    same = (got == golden) | ((got != got) & (golden != golden))
    assert (near | same).all(), f"{(~(near | same)).sum()} of {golden.size} elements differ"


@pytest.mark.parametrize("case", ALL, ids=name_of)
def test_peer_case(runtime_page: RuntimePage, folder: Path, case: dict[str, Any]) -> None:
    check_case(runtime_page, folder, case)


@pytest.mark.parametrize("case", ALL, ids=name_of)
def test_peer_case_with_default_limits(plain_gpu_page: RuntimePage, folder: Path, case: dict[str, Any]) -> None:
    check_case(plain_gpu_page, folder, case)
