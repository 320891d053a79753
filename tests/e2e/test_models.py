"""Whole models in the browser against PyTorch on the same weights and picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from export.small_programs import SMALL
from tests.site import Failure, RuntimePage

MODELS = ("nanodet", "yolox_nano", "srvgg")

#: Of the output's spread. f32 sums in another order differ by about 1e-6; this leaves room for
#: a GPU's own exp and division, and none for a wrong weight.
TOLERANCE = 1e-3


def arrays(path: Path, kind: str) -> list[np.ndarray]:
    with np.load(path) as stored:
        return [stored[name] for name in stored.files if name.startswith(kind)]


def model_or_skip(goldens: Path, name: str) -> Path:
    if name not in json.loads((goldens / "index.json").read_text()):
        pytest.skip(f"{name} was not exported: its weights are not here (see docs/adding-a-model.md)")
    return goldens / f"{name}.npz"


@pytest.mark.parametrize("name", MODELS)
def test_golden_is_not_degenerate(goldens: Path, name: str) -> None:
    """A kernel that returns nearly nothing must not pass: the goldens vary, over positions too."""
    for output in arrays(model_or_skip(goldens, name), "out"):
        assert np.isfinite(output).all()
        assert np.ptp(output) > 0.3
        assert np.unique(output).size > output.size / 3
        assert (np.abs(output) > 1e-4).mean() > 0.01


def test_detectors_find_the_astronaut(goldens: Path) -> None:
    """The goldens are what a detector should say of the picture, by an independent rule."""
    for name, least in (("nanodet", 0.7), ("yolox_nano", 0.8)):
        if name not in json.loads((goldens / "index.json").read_text()):
            continue
        boxes, scores = arrays(goldens / f"{name}.npz", "out")
        assert scores[0].max(1).argmax() == scores[0, :, 0].argmax()  # the surest class is 0, "person"
        assert scores[0, :, 0].max() >= least
        assert boxes.shape == (1, 3549, 4)


@pytest.mark.parametrize("name", MODELS)
def test_model_equals_pytorch(runtime_page: RuntimePage, goldens: Path, name: str) -> None:
    path = model_or_skip(goldens, name)
    outputs = runtime_page.run(f"/test-data/goldens/{name}.pte", arrays(path, "in"))
    assert not isinstance(outputs, Failure), outputs
    expected = arrays(path, "out")
    assert len(outputs) == len(expected)
    for i, (got, want) in enumerate(zip(outputs, expected, strict=True)):
        assert got.shape == want.shape and got.dtype == want.dtype
        error = np.abs(got - want).max() / np.ptp(want)
        assert error <= TOLERANCE, f"{name} output {i}: error {error:.2e} of the spread"


@pytest.mark.parametrize("name", SMALL)
def test_small_program_equals_pytorch(runtime_page: RuntimePage, goldens: Path, name: str) -> None:
    path = goldens / f"{name}.npz"
    outputs = runtime_page.run(f"/test-data/goldens/{name}.pte", arrays(path, "in"))
    assert not isinstance(outputs, Failure), outputs
    expected = arrays(path, "out")
    assert len(outputs) == len(expected)
    for got, want in zip(outputs, expected, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=1e-5 if want.dtype == np.float32 else 1e-3, atol=1e-5)
        else:
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["dynamic_attention", "dynamic_upscale"])
def test_dynamic_shapes(runtime_page: RuntimePage, goldens: Path, name: str) -> None:
    """The lower bound, the upper one and three sizes between, each as PyTorch has it."""
    for run in range(1, 6):
        inputs, expected = (arrays(goldens / f"{name}.npz", f"{run}_{kind}") for kind in ("in", "out"))
        outputs = runtime_page.run(f"/test-data/goldens/{name}.pte", inputs)
        assert not isinstance(outputs, Failure), outputs
        assert outputs[0].shape == expected[0].shape
        np.testing.assert_allclose(outputs[0], expected[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["counter", "decoder", "dynamic_decoder"])
def test_a_buffer_is_kept_from_step_to_step(runtime_page: RuntimePage, goldens: Path, name: str) -> None:
    """Several steps, and after a reset the same again; lengths differ in the dynamic one."""
    path = goldens / f"{name}.npz"
    steps = ["", "1_", "2_", "3_"]
    inputs, expected = ([arrays(path, f"{step}{kind}") for step in steps] for kind in ("in", "out"))
    outputs = runtime_page.run_all(f"/test-data/goldens/{name}.pte", [*inputs, None, *inputs])
    assert not isinstance(outputs, Failure), outputs
    for got_step, want_step in zip(outputs, [*expected, *expected], strict=True):
        for got, want in zip(got_step, want_step, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    without = runtime_page.run(f"/test-data/goldens/{name}.pte", inputs[1])
    assert not isinstance(without, Failure)
    assert np.abs(without[0] - expected[1][0]).max() > 1e-3  # the steps before do matter


def test_weights_in_files_of_their_own(runtime_page: RuntimePage, goldens: Path) -> None:
    """A program and its `.ptd` files; without them the error says what is missing."""
    shards = sorted(path.name for path in goldens.glob("external-*.ptd"))
    assert len(shards) > 1
    inputs, expected = (arrays(goldens / "external.npz", kind) for kind in ("in", "out"))
    url = "/test-data/goldens/external.pte"
    outputs = runtime_page.run(url, inputs, data=[f"/test-data/goldens/{name}" for name in shards])
    assert not isinstance(outputs, Failure), outputs
    for got, want in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    alone = runtime_page.run(url, inputs)
    assert isinstance(alone, Failure) and alone.name == "ProgramError" and ".ptd" in alone.message
    cut = runtime_page.site.put("cut.ptd", (goldens / shards[0]).read_bytes()[:100])
    broken = runtime_page.run(url, inputs, data=[cut])
    assert isinstance(broken, Failure) and broken.name in ("TruncatedProgramError", "ProgramError"), broken
