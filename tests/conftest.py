"""Fixtures: the real site on a free port, a browser, a page with a runtime in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from environment import ROOT, pyodide_folder
from export.fetch import cache_folder, test_data
from serve import Site

from .chromium import FLAGS, find_chromium
from .site import RunningSite, RuntimePage, watch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fuzz", type=int, default=3000, help="how many damaged programs tests/unit/test_fuzz.py takes")
    parser.addoption("--big", action="store_true", help="run tests/e2e/test_big.py: 2.5 GB of weights, 8 GB of disk")


@pytest.fixture(scope="session")
def goldens() -> Path:
    """The folder of exported programs with their inputs and goldens (export/goldens.py)."""
    folder = cache_folder() / "goldens"
    if not (folder / "index.json").exists():
        pytest.fail("the exports are missing: run `python -m export.goldens`, or `python -m tests`")
    return folder


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of test data that is not in the repository; tests that need it are skipped without."""
    folder = test_data()
    if folder is None:
        pytest.skip("no test data: set PTERON_TEST_DATA")
    return folder


@pytest.fixture(scope="session")
def site() -> Iterator[RunningSite]:
    """The site as serve.py serves it, and `site.put(name, bytes)` for a test's own files."""
    with RunningSite(Site(pyodide_folder())) as running:
        for name, folder in (("goldens", cache_folder() / "goldens"), ("web", ROOT / "tests" / "web")):
            running.folders[name] = folder
        yield running


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The browser's program; found before Playwright runs, which is asked too and can't be nested."""
    return str(find_chromium())


@pytest.fixture(scope="session")
def playwright(chromium_path: str) -> Iterator[object]:
    """Playwright itself; one in a process, whose browsers come from it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def browser(playwright, chromium_path: str) -> Iterator[object]:
    launched = playwright.chromium.launch(executable_path=chromium_path, args=list(FLAGS))
    yield launched
    launched.close()


@pytest.fixture
def page(browser, site) -> Iterator[object]:
    """A fresh page; the test fails on any warning or error in the console that it did not allow.

    Allow one with `page.allowed.append("part of its text")`.
    """
    context = browser.new_context()
    opened = context.new_page()
    opened.set_default_timeout(120_000)
    problems = watch(opened)
    yield opened
    context.close()
    assert not problems(), problems()


@pytest.fixture(scope="session")
def runtime_page(browser, site) -> Iterator[RuntimePage]:
    """One page with one runtime for all tests that only load and run programs."""
    yield from open_runtime(browser, site)


@pytest.fixture(scope="session")
def plain_gpu_page(browser, site) -> Iterator[RuntimePage]:
    """A runtime that takes its adapter for a GPU with no more than WebGPU's default limits and features.

    The routes of GPUs run here too, slowly; what needs more than the defaults fails.
    """

    def plain(route) -> None:
        text = route.fetch().text()
        for constant in ("const WANTED_FEATURES = [", "const WANTED_LIMITS = ["):
            start = text.index(constant)
            text = text[:start] + constant + text[text.index("];", start) :]
        text = text.replace("for (const name of [...WANTED_LIMITS,", f"for (const name of [{LIMITS}")
        text = text.replace("const SOFTWARE = /swiftshader|", "const SOFTWARE = /").replace(
            "adapter.info.isFallbackAdapter === true", "false"
        )
        route.fulfill(body=text, content_type="text/javascript")

    yield from open_runtime(browser, site, plain)


LIMITS = ", ".join(
    f'"{name}"'
    for name in (
        "maxBufferSize",
        "maxStorageBufferBindingSize",
        "maxStorageBuffersPerShaderStage",
        "maxComputeWorkgroupStorageSize",
        "maxComputeInvocationsPerWorkgroup",
        "",
    )
).removesuffix('""')


def open_runtime(browser, site, adapter=None) -> Iterator[RuntimePage]:
    """A page with a runtime; adapter: what to answer for adapter.js instead of the file."""
    context = browser.new_context()
    if adapter is not None:
        context.route("**/py_runtime/adapter.js", adapter)
    opened = context.new_page()
    opened.set_default_timeout(120_000)
    problems = watch(opened)
    yield RuntimePage(opened, site)
    context.close()
    assert not problems(), problems()


# Lets the page run Python in the worker, beside the calls that are there.
RUN_PYTHON = """
CALLS.python = async ({ code }) => {
  const { pyodide } = await ready();
  await pyodide.loadPackage("numpy", { messageCallback: () => {} });
  return pyodide.runPythonAsync(code);
};
"""


def let_run_python(context) -> None:
    """Workers of this context answer `channel.call("python", { code })`."""

    def worker(route) -> None:
        body = route.fetch().text().replace("self.onmessage =", RUN_PYTHON + "self.onmessage =")
        route.fulfill(body=body, content_type="text/javascript")

    context.route("**/worker.js", worker)


@pytest.fixture
def python(page, site):
    """A function that runs Python in the worker and gives its last value."""

    let_run_python(page.context)
    page.goto(site.url + "test-data/blank.html")
    page.evaluate(
        """async () => {
          const { Runtime } = await import("/pteron.js");
          window.runtime = await Runtime.create();
        }"""
    )
    return lambda code: page.evaluate("(code) => window.runtime.channel.call('python', { code })", code)
