"""What goes wrong has a name and says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.site import Failure, RuntimePage, hide_gpu

RELU = "/test-data/goldens/relu.pte"


def failure(result: Any, name: str, *parts: str) -> None:
    """Assert that a run failed with this error, whose message has these parts."""
    assert isinstance(result, Failure), result
    assert result.name == name, result
    for part in parts:
        assert part in result.message, result.message


def good_input() -> np.ndarray:
    return np.zeros((2, 3, 5), np.float32)


@pytest.mark.parametrize("kept", [0, 5, 30, 200, 0.9])
def test_truncated_file(runtime_page: RuntimePage, goldens: Path, kept: float) -> None:
    whole = (goldens / "convolutions.pte").read_bytes()
    cut = whole[: int(kept * len(whole)) if isinstance(kept, float) else kept]
    url = runtime_page.site.put("cut.pte", cut)
    failure(runtime_page.run(url, []), "TruncatedProgramError", f"{len(cut):,}")


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (b"<!doctype html><html><body>Not found</body></html>" * 4, "HTML"),
        (b"PK\x03\x04" + bytes(300), "zip"),
        (b'{"format": 1, "name": "a manifest instead of a program", "x": "0123456789abcdef"}', "JSON"),
        (bytes(range(256)), "not an ExecuTorch program"),
    ],
)
def test_another_kind_of_file(runtime_page: RuntimePage, content: bytes, hint: str) -> None:
    url = runtime_page.site.put("other.pte", content)
    failure(runtime_page.run(url, []), "ProgramError", hint, "python -m export")


def test_file_that_is_not_there(runtime_page: RuntimePage) -> None:
    runtime_page.page.allowed.append("404")
    failure(runtime_page.run("/models/none.pte", []), "FetchError", "404", "none.pte")


def test_wrong_shape(runtime_page: RuntimePage, goldens: Path) -> None:
    result = runtime_page.run(RELU, [np.zeros((2, 3, 6), np.float32)])
    failure(result, "InputShapeError", "[2, 3, 6]", "float32[2, 3, 5]", "input 0")


def test_wrong_dtype(runtime_page: RuntimePage, goldens: Path) -> None:
    result = runtime_page.run(RELU, [np.zeros((2, 3, 5), np.int32)])
    failure(result, "InputDtypeError", "int32", "float32[2, 3, 5]", "Convert")


@pytest.mark.parametrize("count", [0, 2])
def test_wrong_count(runtime_page: RuntimePage, goldens: Path, count: int) -> None:
    result = runtime_page.run(RELU, [good_input()] * count)
    failure(result, "InputCountError", f"{count} inputs", "takes 1", "float32[2, 3, 5]")


def test_missing_operator(runtime_page: RuntimePage, goldens: Path) -> None:
    """All that is missing is told at once, with how often it occurs."""
    program = (goldens / "convolutions.pte").read_bytes()
    program = program.replace(b"aten.leaky_relu.default", b"aten.sneaky_elu.default")
    program = program.replace(b"aten.sigmoid.default", b"aten.enigmas.default")
    result = runtime_page.run(runtime_page.site.put("missing.pte", program), [])
    failure(
        result,
        "MissingOperatorError",
        "2 operators",
        "aten.sneaky_elu.default (1 use in forward)",
        "aten.enigmas.default (1 use in forward)",
        "docs/adding-an-operator.md",
    )


def test_missing_method(runtime_page: RuntimePage, goldens: Path) -> None:
    failure(runtime_page.run(RELU, [], method="backward"), "ProgramError", "backward", "forward")


def test_another_backend(runtime_page: RuntimePage, goldens: Path) -> None:
    program = (goldens / "relu.pte").read_bytes().replace(b"VulkanBackend", b"XnnpackBackxx")
    failure(
        runtime_page.run(runtime_page.site.put("backend.pte", program), []),
        "UnsupportedError",
        "XnnpackBackxx",
        "WebGPUPartitioner",
    )


def test_closed(runtime_page: RuntimePage, goldens: Path) -> None:
    name = runtime_page.evaluate(
        """async (url) => {
          const { Tensor } = await import("/pteron.js");
          const program = await window.runtime.loadProgram(url);
          const method = await program.loadMethod("forward");
          await program.close();
          const input = new Tensor("float32", new Float32Array(30), [2, 3, 5]);
          return method.execute([input]).then(() => "none", (error) => error.name);
        }""",
        RELU,
    )
    assert name == "ClosedError"


def test_tensor_checks(runtime_page: RuntimePage) -> None:
    names = runtime_page.evaluate(
        """async () => {
          const { Tensor } = await import("/pteron.js");
          const name = (make) => { try { make(); return "none"; } catch (error) { return error.name; } };
          return [
            name(() => new Tensor("float32", new Float64Array(2), [2])),
            name(() => new Tensor("float33", new Float32Array(2), [2])),
            name(() => new Tensor("float32", new Float32Array(2), [3])),
            name(() => new Tensor("int64", [1n, 2n], [2])),
          ];
        }"""
    )
    assert names == ["InputDtypeError", "InputDtypeError", "InputShapeError", "none"]


def test_int64_out_of_range(runtime_page: RuntimePage, goldens: Path) -> None:
    values = np.zeros((3, 5), np.int64)
    values[1, 2] = 2**40
    failure(runtime_page.run("/test-data/goldens/int64.pte", [values]), "LimitError", str(2**40), "element 7")


def test_no_webgpu(page: Any, site: Any) -> None:
    """A worker without navigator.gpu: the page gets the error, with what to do."""

    hide_gpu(page.context)
    page.goto(site.url + "test-data/blank.html")
    error = page.evaluate(
        """async () => {
          const { Runtime } = await import("/pteron.js");
          return Runtime.create().then(() => null, ({ name, message }) => ({ name, message }));
        }"""
    )
    assert error["name"] == "WebGPUUnavailableError"
    assert "Chrome" in error["message"] and "https" in error["message"]


def test_beyond_the_bound(runtime_page: RuntimePage, goldens: Path) -> None:
    result = runtime_page.run("/test-data/goldens/dynamic_attention.pte", [np.zeros((1, 49, 32), np.float32)])
    failure(result, "InputShapeError", "[1, 49, 32]", "[1, 48, 32] at most")
