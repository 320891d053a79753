"""Rules that hold for every file of the project."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from environment import ROOT

MAX_LINES = 400
LARGE = {"web/models/nanodet.pte"}  # what the page needs to work at once
MAX_BYTES = 2 << 20
# Registries are named by their tools; paths of one machine help nobody else.
FORBIDDEN = re.compile(
    "|".join(["pypi" + r"\.org", "registry" + r"\.npmjs", "files" + r"\.pythonhosted", "/wo" + "rk/"])
)


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def test_files_are_short() -> None:
    code = [p for p in tracked() if p.suffix in (".py", ".js", ".mjs", ".wgsl") and "schema" not in p.parts]
    long = {str(p.relative_to(ROOT)): n for p in code if (n := len(p.read_text().splitlines())) > MAX_LINES}
    assert len(code) > 50
    assert not long


def test_large_files_are_known() -> None:
    large = {p.relative_to(ROOT).as_posix() for p in tracked() if p.stat().st_size > MAX_BYTES}
    assert large <= LARGE


def test_nothing_of_one_machine() -> None:
    found = []
    for path in tracked():
        if path.suffix in (".png", ".jpg", ".pte"):
            continue
        found += [f"{path.name}: {m[0]}" for m in FORBIDDEN.finditer(path.read_text())]
    assert not found


def test_runtime_imports_without_numpy_and_javascript(tmp_path: Path) -> None:
    """With nothing but flatbuffers installed, all that a run from JavaScript needs imports."""
    flatbuffers = importlib.util.find_spec("flatbuffers")
    assert flatbuffers is not None and flatbuffers.origin is not None
    (tmp_path / "flatbuffers").symlink_to(Path(flatbuffers.origin).parent)
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import py_runtime.bridge, py_runtime.plan"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
