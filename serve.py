"""The dev server, and the builder of the static site.

    python serve.py [--no-open] [--port N] [--host NAME]
    python serve.py --build DIR

Needs nothing but Python: it makes a private `.venv` for starlette and uvicorn and fetches
Pyodide once. What it serves and what it builds are one list of files (`Site`).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import json
import mimetypes
import shutil
import socket
import sys
import threading
import tomllib
import webbrowser
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environment import PYODIDE_VERSION, ROOT, SetupError, pyodide_folder, run_in_venv

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

MARKER = ".pteron-site"
CSP = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self' https: blob:; "
    "img-src 'self' blob: data:; media-src 'self' blob:; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
IMMUTABLE = "public, max-age=31536000, immutable"
TYPES = {
    ".mjs": "text/javascript",
    ".js": "text/javascript",
    ".wasm": "application/wasm",
    ".pte": "application/octet-stream",
    ".ptd": "application/octet-stream",
    ".whl": "application/zip",
}


@dataclass(frozen=True)
class Asset:
    """One file of the site: bytes made here, or a file on the disk."""

    content: bytes | Path

    def read(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()

    @property
    def stamp(self) -> tuple[int, int]:
        """Changes when the content does; cheap for files."""
        if isinstance(self.content, bytes):
            return (hash(self.content), len(self.content))
        stat = self.content.stat()
        return (stat.st_mtime_ns, stat.st_size)


class Site:
    """The site's files by their path, as they are now."""

    def __init__(self, pyodide: Path, models: Path | None = None) -> None:
        self.pyodide = pyodide
        self.models = models  # a folder served beside web/models, for tests
        self._hashes: dict[tuple[str, tuple[int, int]], str] = {}
        self._runtime: tuple[object, bytes] = (None, b"")

    def files(self) -> dict[str, Asset]:
        """Path to file, all of them; paths have no leading slash."""
        found = {path.relative_to(ROOT / "web").as_posix(): Asset(path) for path in tree(ROOT / "web", "*")}
        found |= {f"py_runtime/{path.name}": Asset(path) for path in (ROOT / "py_runtime").glob("*.js")}
        if self.models is not None:
            found |= {f"models/{path.name}": Asset(path) for path in self.models.iterdir() if path.is_file()}
        home = f"pyodide/{PYODIDE_VERSION}/"
        found |= {home + path.name: Asset(path) for path in self.pyodide.iterdir() if path.is_file()}
        runtime = Asset(self.runtime_zip())
        found["runtime.zip"] = runtime
        assets = {
            "pyodide": home,
            "runtime": f"runtime.zip?v={self.version('runtime.zip', runtime)}",
            "version": tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"],
        }
        found["assets.json"] = Asset(json.dumps(assets).encode())
        return found

    def version(self, path: str, asset: Asset) -> str:
        """The first 16 hex digits of the content's sha256."""
        key = (path, asset.stamp)
        if key not in self._hashes:
            self._hashes[key] = hashlib.sha256(asset.read()).hexdigest()[:16]
        return self._hashes[key]

    def runtime_zip(self) -> bytes:
        """The Python runtime, its kernels and the flatbuffers reader, always the same bytes for the same files."""
        sources = sorted(runtime_sources())
        state = [(name, path.stat().st_mtime_ns) for name, path in sources]
        if state != self._runtime[0]:
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
                for name, path in sources:
                    archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
            self._runtime = (state, buffer.getvalue())
        return self._runtime[1]


def tree(folder: Path, pattern: str) -> Iterator[Path]:
    """Files under a folder, without hidden ones and caches."""
    for path in folder.rglob(pattern):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in parts):
            yield path


def runtime_sources() -> Iterator[tuple[str, Path]]:
    spec = importlib.util.find_spec("flatbuffers")
    if spec is None or spec.origin is None:
        raise SetupError("flatbuffers is not installed")
    reader = Path(spec.origin).parent
    for folder, pattern in ((ROOT / "py_runtime", "*.py"), (ROOT / "shaders", "*.wgsl"), (reader, "*.py")):
        for path in tree(folder, pattern):
            yield path.relative_to(folder.parent).as_posix(), path


def media_type(path: str) -> str:
    suffix = Path(path).suffix
    return TYPES.get(suffix) or mimetypes.guess_type(path)[0] or "application/octet-stream"


def make_app(site: Site, hosts: set[str], extra: list[Any] | None = None) -> Starlette:
    """The server as an ASGI application.

    hosts: names that a request's Host may have. extra: Starlette routes tried first.
    """
    from starlette.applications import Starlette
    from starlette.responses import FileResponse, PlainTextResponse, Response
    from starlette.routing import Route

    def headers(request: Request, path: str, asset: Asset) -> dict[str, str]:
        version = site.version(path, asset)
        fixed = path.startswith(f"pyodide/{PYODIDE_VERSION}/") or request.query_params.get("v") == version
        return {**HEADERS, "ETag": f'"{version}"', "Cache-Control": IMMUTABLE if fixed else "no-cache"}

    async def serve(request: Request) -> Response:
        host = request.headers.get("host", "").rsplit(":", 1)[0] if request.headers.get("host") else ""
        if host not in hosts:
            return PlainTextResponse(
                f"this server answers for {', '.join(sorted(hosts))}, not {host!r}; start it with --host {host}",
                status_code=421,
                headers=HEADERS,
            )
        path = request.path_params["path"] or "index.html"
        asset = site.files().get(path)
        if asset is None:
            return PlainTextResponse(f"there is no {path} here", status_code=404, headers=HEADERS)
        extra_headers = headers(request, path, asset)
        if request.headers.get("if-none-match") == extra_headers["ETag"]:
            return Response(status_code=304, headers=extra_headers)
        if isinstance(asset.content, Path):
            return FileResponse(asset.content, media_type=media_type(path), headers=extra_headers)
        return Response(asset.content, media_type=media_type(path), headers=extra_headers)

    return Starlette(routes=[*(extra or []), Route("/{path:path}", serve, methods=["GET", "HEAD"])])


def build(site: Site, folder: Path) -> int:
    """Write the site as static files; bytes written. Raises SetupError for a folder that is not ours."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARKER).exists():
        raise SetupError(f"{folder} has files that this program did not write; give an empty folder")
    if folder.exists():
        shutil.rmtree(folder)
    total = 0
    for path, asset in site.files().items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        total += target.write_bytes(asset.read())
    (folder / MARKER).write_text("Made by serve.py --build, which replaces this folder whole.\n")
    return total


def free_port(host: str, wanted: int | None) -> int:
    """The port to listen on: the one asked for, else the first free one from 8000."""
    for port in [wanted] if wanted is not None else range(8000, 8100):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise SetupError(f"port {wanted} on {host} is taken; give another with --port" if wanted else "no free port")


def host_names(host: str) -> set[str]:
    return {"localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="serve.py", description="Serve Pteron's page, or build it as static files.")
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")
    parser.add_argument("--port", type=int, help="port to listen on (default: the first free one from 8000)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--build", type=Path, metavar="DIR", help="write the static site to DIR and stop")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    try:
        run_in_venv(["serve"])
        site = Site(pyodide_folder())
        if options.build is not None:
            total = build(site, options.build)
            print(f"wrote {total / 1e6:.1f} MB to {options.build}; any static host can serve it, at any path")
            return 0
        port = free_port(options.host, options.port)
    except SetupError as error:
        print(f"serve.py: {error}", file=sys.stderr)
        return 1
    serve(site, options.host, port, open_browser=not options.no_open)
    return 0


def serve(site: Site, host: str, port: int, *, open_browser: bool) -> None:
    """Listen until Ctrl-C."""
    import uvicorn

    address = f"http://{'localhost' if host == '127.0.0.1' else host}:{port}/"
    app = make_app(site, host_names(host))
    server = uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="warning"))
    print(f"Pteron is at {address}  (Ctrl-C ends it)", flush=True)
    if open_browser:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    server.run()


if __name__ == "__main__":
    sys.exit(main())
