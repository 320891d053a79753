"""The demo page, as a visitor meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.site import hide_gpu, watch


def found(page: Any) -> dict[str, float]:
    """What the list says: the best score of each label."""
    items = page.locator("#detections li[data-label]").all()
    scores: dict[str, float] = {}
    for item in items:
        label, score = item.get_attribute("data-label"), float(item.get_attribute("data-score"))
        scores[label] = max(score, scores.get(label, 0))
    return scores


@pytest.fixture(scope="module")
def visited(browser: Any, site: Any) -> Any:
    """The page, opened once; loading it and the first look take most of a test's time."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(120_000)
    problems = watch(page)
    page.goto(site.url)
    page.wait_for_selector("#detections li[data-label]")
    yield page
    context.close()
    assert not problems(), problems()


@pytest.fixture
def opened(visited: Any) -> Any:
    """The page with the astronaut looked at and nothing going on."""
    if "person" not in found(visited):
        visited.get_by_test_id("sample-astronaut").click()
        visited.wait_for_selector('#detections li[data-label="person"]')
    visited.evaluate("document.activeElement.blur()")
    return visited


def test_finds_things_and_says_how_long_it_took(opened: Any) -> None:
    assert found(opened)["person"] >= 0.7
    opened.get_by_test_id("sample-coffee").click()
    opened.wait_for_selector('#detections li[data-label="cup"]')
    assert found(opened)["cup"] >= 0.4
    adapter = opened.get_by_test_id("adapter").inner_text()
    assert "software adapter" in adapter
    times = opened.get_by_test_id("times").inner_text()
    assert times.count("s") >= 5 and "–" not in times
    assert opened.get_by_test_id("error").is_hidden()
    assert "person" not in found(opened)


def test_profile(opened: Any) -> None:
    opened.get_by_test_id("profile-button").click()
    opened.wait_for_selector("#profile li")
    bars = opened.locator("#profile li").all()
    shares = [float(bar.get_attribute("data-share")) for bar in bars]
    assert abs(sum(shares) - 1) < 1e-6
    with opened.expect_download() as download:
        opened.locator("#profile-save").click()
    report = json.loads(Path(download.value.path()).read_text())
    assert [kernel["share"] for kernel in report["kernels"]] == shares
    assert f"{report['total_ms']:.2f} ms" in opened.locator("#profile-summary").inner_text()
    opened.locator("#profile-sort").check()
    times = [float(bar.get_attribute("data-milliseconds")) for bar in opened.locator("#profile li").all()]
    assert times == sorted(times, reverse=True)


def test_keyboard(opened: Any) -> None:
    """Tab reaches the samples and Enter uses one."""
    for _ in range(30):
        opened.keyboard.press("Tab")
        if opened.evaluate("document.activeElement.dataset.testid") == "sample-coffee":
            break
    else:
        pytest.fail("Tab never reached the second sample")
    opened.keyboard.press("Enter")
    opened.wait_for_selector('#detections li[data-label="cup"]')
    assert opened.get_by_test_id("sample-coffee").get_attribute("aria-pressed") == "true"


GIVE = """
async (kind) => {
  const blob = await (await fetch("samples/coffee.png")).blob();
  const data = new DataTransfer();
  data.items.add(new File([blob], "coffee.png", { type: "image/png" }));
  const event = kind === "drop"
    ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })
    : new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
  (kind === "drop" ? document.getElementById("drop") : document).dispatchEvent(event);
}
"""


@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_pictures_are_dropped_and_pasted(opened: Any, kind: str) -> None:
    opened.evaluate(GIVE, kind)
    opened.wait_for_selector('#detections li[data-label="cup"]')
    assert "person" not in found(opened)


def test_camera(opened: Any) -> None:
    """Frames of Chromium's fake camera reach the canvas, until the button is pressed again."""
    size = "() => [document.getElementById('picture').width, document.getElementById('picture').height]"
    assert opened.evaluate(size) == [512, 512]
    opened.get_by_test_id("camera").click()
    opened.wait_for_function("() => document.getElementById('picture').width === 640")
    assert opened.evaluate(size) == [640, 480]
    assert opened.get_by_test_id("camera").inner_text() == "Stop the camera"
    opened.get_by_test_id("camera").click()
    opened.wait_for_function("() => document.getElementById('status').textContent === 'Camera off.'")
    assert opened.get_by_test_id("error").is_hidden()


def test_own_program(opened: Any, goldens: Path) -> None:
    opened.get_by_test_id("program").set_input_files(str(goldens / "relu.pte"))
    opened.wait_for_selector("#program-view:not([hidden])")
    text = opened.get_by_test_id("program-view").inner_text()
    assert "float32[2, 3, 5]" in text and "1 aten.relu.default" in text
    assert opened.locator("#profile li").count() == 1


def test_wrong_files_are_told_in_words(opened: Any, tmp_path: Path) -> None:
    other = tmp_path / "notes.pte"
    other.write_text("these are notes and no program at all, long enough for a header to be looked for")
    opened.get_by_test_id("program").set_input_files(str(other))
    opened.wait_for_selector("#error:not([hidden])")
    assert "ProgramError" in opened.get_by_test_id("error").inner_text()
    opened.get_by_test_id("file").set_input_files(str(other))
    opened.wait_for_function('() => document.getElementById("error").textContent.includes("PictureError")')
    opened.get_by_test_id("sample-coffee").click()
    opened.wait_for_selector('#detections li[data-label="cup"]')
    assert opened.get_by_test_id("error").is_hidden()


def test_no_webgpu_is_told_in_words(page: Any, site: Any) -> None:
    hide_gpu(page.context)
    page.goto(site.url)
    page.wait_for_selector("#error:not([hidden])")
    text = page.get_by_test_id("error").inner_text()
    assert "WebGPUUnavailableError" in text and "Chrome" in text
