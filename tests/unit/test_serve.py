"""The server and the static builder, over real HTTP."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import environment
from environment import SetupError, pyodide_folder
from serve import Site, build, free_port
from tests.site import RunningSite


def request(site: RunningSite, path: str, method: str = "GET", **headers: str) -> Any:
    connection = http.client.HTTPConnection(site.url.split("/")[2], timeout=10)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    response.body = response.read()  # type: ignore[attr-defined]
    return response


def test_page_and_headers(site: RunningSite) -> None:
    response = request(site, "/")
    assert response.status == 200
    assert b"<title>Pteron</title>" in response.body
    policy = response.headers["Content-Security-Policy"]
    assert "script-src 'self' 'wasm-unsafe-eval';" in policy and "worker-src 'self'" in policy
    assert "unsafe-inline" not in policy and "'unsafe-eval'" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/pteron.js", "text/javascript"),
        ("/pyodide/0.27.7/pyodide.mjs", "text/javascript"),
        ("/pyodide/0.27.7/pyodide.asm.wasm", "application/wasm"),
        ("/models/nanodet.pte", "application/octet-stream"),
        ("/assets.json", "application/json"),
    ],
)
def test_types(site: RunningSite, path: str, kind: str) -> None:
    assert request(site, path).headers["Content-Type"].split(";")[0] == kind


@pytest.mark.parametrize(
    "path",
    [
        "/serve.py",
        "/../serve.py",
        "/%2e%2e/serve.py",
        "/py_runtime/device.py",
        "/.git/config",
        "/tests/site.py",
        "/app/",
    ],
)
def test_only_the_sites_own_files(site: RunningSite, path: str) -> None:
    assert request(site, path).status == 404


def test_other_hosts_are_refused(site: RunningSite) -> None:
    response = request(site, "/", Host="evil.example:80")
    assert response.status == 421
    assert b"--host evil.example" in response.body
    assert request(site, "/", Host="localhost:1234").status == 200


def test_ranges(site: RunningSite) -> None:
    whole = request(site, "/models/nanodet.pte").body
    part = request(site, "/models/nanodet.pte", Range="bytes=100-199")
    assert part.status == 206 and part.body == whole[100:200]
    assert part.headers["Content-Range"] == f"bytes 100-199/{len(whole)}"
    assert request(site, "/models/nanodet.pte", Range="bytes=99999999-").status == 416


def test_caching(site: RunningSite) -> None:
    first = request(site, "/models/nanodet.pte", "HEAD")
    assert first.headers["Cache-Control"] == "no-cache"
    again = request(site, "/models/nanodet.pte", If_None_Match=first.headers["ETag"])
    assert again.status == 304 and not again.body
    version = first.headers["ETag"].strip('"')
    fixed = request(site, f"/models/nanodet.pte?v={version}", "HEAD")
    assert "immutable" in fixed.headers["Cache-Control"]
    assert "immutable" not in request(site, "/models/nanodet.pte?v=0123", "HEAD").headers["Cache-Control"]
    assert "immutable" in request(site, "/pyodide/0.27.7/pyodide.mjs", "HEAD").headers["Cache-Control"]


def test_runtime_archive(site: RunningSite) -> None:
    assets = json.loads(request(site, "/assets.json").body)
    response = request(site, "/" + assets["runtime"])
    assert "immutable" in response.headers["Cache-Control"]
    names = zipfile.ZipFile(io.BytesIO(response.body)).namelist()
    assert {"py_runtime/plan.py", "shaders/conv_tile.wgsl", "flatbuffers/table.py"} <= set(names)
    assert not any("tests" in name or "export" in name for name in names)


def test_archive_is_the_same_for_the_same_files() -> None:
    assert Site(pyodide_folder()).runtime_zip() == Site(pyodide_folder()).runtime_zip()


def test_build_equals_what_is_served(site: RunningSite, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    build(Site(pyodide_folder()), folder)
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    for name in files:
        if not name.startswith("."):
            assert request(site, f"/{name}").body == (folder / name).read_bytes(), name
    assert build(Site(pyodide_folder()), folder) > 10e6  # its own folder is replaced


def test_build_spares_other_folders(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("three years of work")
    with pytest.raises(SetupError, match="did not write"):
        build(Site(pyodide_folder()), tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_taken_port_is_told() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SetupError, match="--port"):
            free_port("127.0.0.1", taken.getsockname()[1])


def test_wrong_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="sha256"):
        environment.store(tmp_path, "pyodide.mjs", b"not pyodide")
    assert not list(tmp_path.iterdir())


def test_lock_names_the_wheel_that_is_served() -> None:
    folder = pyodide_folder()
    lock = json.loads((folder / "pyodide-lock.json").read_text())
    numpy = lock["packages"]["numpy"]
    assert hashlib.sha256((folder / numpy["file_name"]).read_bytes()).hexdigest() == numpy["sha256"]
