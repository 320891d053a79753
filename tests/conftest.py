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
def browser() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    path = find_chromium()  # asks Playwright too, which can't be nested
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
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
    opened = browser.new_page()
    opened.set_default_timeout(120_000)
    problems = watch(opened)
    yield RuntimePage(opened, site)
    opened.close()
    assert not problems(), problems()
