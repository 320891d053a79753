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

from .cases import Case, golden, output_specs, randn
from .rows import ROWS
from .write_program import write_program


def check(page: RuntimePage, row: Case) -> None:
    """Run a row in the page and compare every output with PyTorch's."""
    expected = golden(row)
    own = expected[: len(expected) - len(row.written)]
    data, inputs = write_program(row.op, row.args, output_specs(own), row.written)
    outputs = page.run(page.site.put("case.pte", data), inputs)
    assert not isinstance(outputs, Failure), outputs
    assert len(outputs) == len(expected)
    for got, want in zip(outputs, expected, strict=True):
        if want is None:
            continue
        assert got.shape == want.shape
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want.astype(np.float32), rtol=row.rtol, atol=row.atol)
        else:
            np.testing.assert_array_equal(got, want)


def test_names_are_different() -> None:
    names = [f"{row.op} {row.name}" for row in ROWS]
    assert len(set(names)) == len(names) > 300


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_operator(runtime_page: RuntimePage, row: Case) -> None:
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
