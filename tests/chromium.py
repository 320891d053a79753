"""A Chromium to test in: one that is there, else Playwright's, else the system's package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from environment import SetupError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL_SECONDS = 180
APT_SECONDS = 600

#: Flags under which headless Chromium has WebGPU on a machine without a GPU.
FLAGS = (
    "--no-sandbox",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--use-fake-device-for-media-stream",  # a camera that shows a test picture
    "--use-fake-ui-for-media-stream",
)


@cache
def find_chromium() -> str:
    """The path of a Chromium, installed if need be. Raises SetupError.

    $PTERON_CHROMIUM comes first, then what Playwright has, then the system's.
    """
    given = os.environ.get("PTERON_CHROMIUM")
    if given:
        return given
    for way in (playwright_chromium, system_chromium, install_playwright_chromium, install_system_chromium):
        found = way()
        if found:
            return found
    raise SetupError("no Chromium could be found or installed; install one and set PTERON_CHROMIUM to its path")


def playwright_chromium() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def system_chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def install_playwright_chromium() -> str | None:
    command = [sys.executable, "-m", "playwright", "install", "--with-deps", "chromium"]
    if not _succeeds(command, INSTALL_SECONDS):
        return None
    return playwright_chromium()


def install_system_chromium() -> str | None:
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return None
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    if not _succeeds(["apt-get", "update", "-qq"], APT_SECONDS):
        return None
    if not _succeeds(["apt-get", "install", "-y", "-qq", "chromium"], APT_SECONDS):
        return None
    return system_chromium()


def _succeeds(command: list[str], seconds: int) -> bool:
    print(f"{' '.join(command[-4:])} …", flush=True)
    try:
        return subprocess.run(command, capture_output=True, timeout=seconds).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
