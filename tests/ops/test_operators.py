"""Our own operator rows against PyTorch in fp64, all in one page."""

from __future__ import annotations

import numpy as np
import pytest

from py_runtime.dtypes import FLOAT32
from py_runtime.errors import UnsupportedError
from py_runtime.graph import Graph, Node, Ref, Tensor
from py_runtime.kernels import Target
from py_runtime.plan import make_plan
from tests.site import Failure, RuntimePage

from .cases import Case, prepare, randn
from .rows import HALF_ROWS, ROWS


def check(page: RuntimePage, row: Case) -> None:
    """Run a row in the page and compare every output with PyTorch's."""
    prepared = prepare(row)
    outputs = page.run(page.site.put("case.pte", prepared.pte), prepared.inputs)
    assert not isinstance(outputs, Failure), outputs
    assert len(outputs) == len(prepared.outputs)
    for got, want in zip(outputs, prepared.outputs, strict=True):
        if want is None:
            continue
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(*(a.astype(np.float32) for a in (got, want)), rtol=row.rtol, atol=row.atol)
        else:
            np.testing.assert_array_equal(got, want)


def test_names_are_different() -> None:
    names = [f"{row.op} {row.name}" for row in ROWS]
    assert len(set(names)) == len(names) > 300


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_operator(runtime_page: RuntimePage, row: Case) -> None:
    check(runtime_page, row)


@pytest.mark.parametrize("row", HALF_ROWS, ids=str)
def test_operator_in_f16(runtime_page: RuntimePage, row: Case) -> None:
    """Here without `shader-f16`: widened on upload. With it the same rows run on a GPU (bench/operators.py)."""
    check(runtime_page, row)


def test_the_plain_gpu_is_one(plain_gpu_page: RuntimePage) -> None:
    info = plain_gpu_page.evaluate("() => window.runtime.info")
    assert info["software"] is False
    assert info["limits"]["maxStorageBufferBindingSize"] == 128 << 20
    assert info["limits"]["maxComputeWorkgroupStorageSize"] == 16384
    assert "shader-f16" not in info["features"] and "timestamp-query" not in info["features"]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_operator_on_gpu_routes(plain_gpu_page: RuntimePage, row: Case) -> None:
    check(plain_gpu_page, row)


def test_a_fractional_double_is_refused_by_name() -> None:
    tensors = {i: Tensor(FLOAT32, (4, 5)) for i in range(2)}
    node = Node("aten.slice_copy.Tensor", (Ref(0), 1, 0.5, 4, 1), (1,))
    with pytest.raises(UnsupportedError, match=r"0\.5, an integer is needed"):
        make_plan(Graph(tensors, (node,), (0,), (1,)), Target())


def test_more_elements_than_workgroups_in_a_row(runtime_page: RuntimePage) -> None:
    """4.3 million elements need more than 65,535 workgroups of 64: the grid folds."""
    check(runtime_page, Case("large", "aten.neg.default", (randn(65_600, 65),)))
