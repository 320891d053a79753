"""How files come: checked before weights, kept in the browser, over connections that break, given up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.deliveries import Deliveries
from tests.e2e.test_programs import runs

LOAD = """
async ([url, options]) => {
  const { Runtime, Tensor } = await import("/pteron.js");
  window.runtime ??= await Runtime.create();
  const steps = [];
  const controller = new AbortController();
  const onProgress = ({ stage, loaded, total }) => {
    if (stage === "download") {
      steps.push([loaded, total]);
      if (loaded >= (options.abortAt ?? Infinity)) {
        controller.abort();
      }
    }
  };
  try {
    const program = await window.runtime.loadProgram(url, { onProgress, signal: controller.signal });
    const method = await program.loadMethod("forward");
    const { dims } = method.metadata.inputs[0];
    const data = new Float32Array(dims.reduce((a, b) => a * b, 1)).map((_, i) => Math.sin(i));
    const results = options.run ? await method.execute([new Tensor("float32", data, dims)]) : [];
    const outputs = results.map((output) => [...output.data]);
    await program.close();
    return { origin: program.origin, steps, outputs };
  } catch ({ name, message }) {
    return { error: name, message, steps };
  }
}
"""

WEIGHTS = 9 << 20  # bytes of wide.pte's two weights, or a little less
HEAD = 512 << 10  # bytes of its head and delegate, or a little more: the first request is for 256 KiB


@pytest.fixture(scope="module")
def wide(goldens: Path) -> bytes:
    """A program with two large weights and the input that LOAD gives it (export/small_programs.py)."""
    return (goldens / "wide.pte").read_bytes()


def load(page: Any, site: Any, url: str, **options: Any) -> dict[str, Any]:
    if page.url == "about:blank":
        page.goto(site.url + "test-data/blank.html")
    result: dict[str, Any] = page.evaluate(LOAD, [url, options])
    return result


def check_progress(result: dict[str, Any], size: int) -> None:
    done = [loaded for loaded, _ in result["steps"]]
    assert done == sorted(done) and done[-1] == size
    assert {total for _, total in result["steps"]} == {size}


def expected(goldens: Path) -> np.ndarray:
    """What LOAD's input gives, from the weight in the golden file."""
    inputs, outputs = runs(goldens / "wide.npz")
    assert np.allclose(inputs[0][0].ravel(), np.sin(np.arange(1024)), atol=1e-6)
    return outputs[0][0].ravel()


def check_values(result: dict[str, Any], goldens: Path) -> None:
    want = expected(goldens)
    assert np.abs(np.array(result["outputs"][0]) - want).max() <= 1e-4 * np.ptp(want)


def test_the_second_load_asks_for_no_weight(page: Any, site: Any, goldens: Path, wide: bytes) -> None:
    """Also after the page was loaded again."""
    delivery = Deliveries(wide)
    url = site.deliver("kept.pte", delivery)
    first = load(page, site, url, run=True)
    check_progress(first, len(wide))
    assert first["origin"]["cache"] == "kept" and first["origin"]["cached"] == 0
    assert first["origin"]["fetched"] > WEIGHTS
    for again in (False, True):
        before = delivery.sent()
        if again:
            page.reload()
        second = load(page, site, url, run=True)
        check_progress(second, len(wide))
        assert delivery.sent() - before < HEAD
        assert second["origin"] == {"cache": "kept", "fetched": 0, "cached": second["origin"]["cached"]}
        assert second["origin"]["cached"] > WEIGHTS
        check_values(second, goldens)


CORRUPT = """
async () => {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("pteron-files");
  for await (const [name, handle] of folder.entries()) {
    if (name.endsWith(".data")) {
      const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
      bytes[5 << 20] ^= 1;
      const writable = await handle.createWritable();
      await writable.write(bytes);
      await writable.close();
    }
  }
}
"""


def test_a_corrupt_chunk_is_fetched_again(page: Any, site: Any, goldens: Path, wide: bytes) -> None:
    """Only that one; and it is kept right again by the next load."""
    delivery = Deliveries(wide)
    url = site.deliver("corrupt.pte", delivery)
    load(page, site, url)
    page.evaluate(CORRUPT)
    second = load(page, site, url, run=True)
    check_values(second, goldens)
    assert 0 < second["origin"]["fetched"] <= 4 << 20 < second["origin"]["cached"]
    load(page, site, url)
    assert load(page, site, url)["origin"]["fetched"] == 0


def test_a_full_disk(page: Any, site: Any, goldens: Path, wide: bytes) -> None:
    """The program runs from memory and says that it was not kept."""
    full = """
    FileSystemSyncAccessHandle.prototype.write = () => { throw new DOMException("full", "QuotaExceededError"); };
    """

    def worker(route: Any) -> None:
        route.fulfill(body=route.fetch().text() + full, content_type="text/javascript")

    page.context.route("**/worker.js", worker)
    url = site.deliver("full.pte", Deliveries(wide))
    for _ in range(2):
        result = load(page, site, url, run=True)
        assert result["origin"]["cache"] == "full" and result["origin"]["fetched"] > WEIGHTS
        check_values(result, goldens)


def test_storage_that_does_not_answer(page: Any, site: Any, goldens: Path, wide: bytes) -> None:
    """A load goes on without it."""
    silent = "FileSystemFileHandle.prototype.createSyncAccessHandle = () => new Promise(() => {});\n"

    def worker(route: Any) -> None:
        route.fulfill(body=route.fetch().text() + silent, content_type="text/javascript")

    page.context.route("**/worker.js", worker)
    result = load(page, site, site.deliver("silent.pte", Deliveries(wide)), run=True)
    assert result["origin"]["cache"] == "none"
    check_values(result, goldens)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_cut_connection_resumes(page: Any, site: Any, goldens: Path, wide: bytes, ranges: bool) -> None:
    """Where the server gives parts, no byte is sent much more than once."""
    page.allowed.append("net::ERR_")
    delivery = Deliveries(wide, ranges=ranges, cuts=[3_000_000, 2_500_000])
    result = load(page, site, site.deliver(f"cut-{ranges}.pte", delivery), run=True)
    check_values(result, goldens)
    check_progress(result, len(wide))
    assert delivery.cuts == []
    if ranges:
        assert delivery.sent() < len(wide) + (1 << 20)


def test_no_length_is_told(page: Any, site: Any, goldens: Path, wide: bytes) -> None:
    """The total is known from the file's head."""
    delivery = Deliveries(wide, ranges=False, length=False)
    result = load(page, site, site.deliver("chunked.pte", delivery), run=True)
    check_values(result, goldens)
    check_progress(result, len(wide))


def test_a_load_is_given_up(page: Any, site: Any, goldens: Path, wide: bytes) -> None:
    """It rejects with AbortError, little more is sent, and the next load goes on from what was kept."""
    delivery = Deliveries(wide, pause_s=0.02)
    url = site.deliver("given-up.pte", delivery)
    result = load(page, site, url, abortAt=4 << 20)
    assert result["error"] == "AbortError"
    page.wait_for_timeout(500)
    sent = delivery.sent()
    page.wait_for_timeout(500)
    assert delivery.sent() == sent < len(wide)
    delivery.pause_s = 0.0
    again = load(page, site, url, run=True)
    check_values(again, goldens)
    assert again["origin"]["cached"] >= 4 << 20


def test_what_is_missing_is_told_before_weights_are_fetched(page: Any, site: Any, wide: bytes) -> None:
    unknown = wide.replace(b"aten.linear.default", b"aten.lineal.default")
    assert unknown != wide
    delivery = Deliveries(unknown)
    result = load(page, site, site.deliver("unknown.pte", delivery))
    assert result["error"] == "MissingOperatorError" and "aten.lineal.default" in result["message"]
    assert result["steps"] == []
    page.wait_for_timeout(300)
    assert delivery.sent() < HEAD
