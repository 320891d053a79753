"""The built site on a plain file server, below a path of its own, without any of our headers."""

from __future__ import annotations

import functools
import http.server
import threading
from pathlib import Path
from typing import Any

from environment import pyodide_folder
from serve import Site, build


class Silent(http.server.SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012 - the base class's own way
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".js": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_static_site_below_a_path(page: Any, tmp_path: Path) -> None:
    build(Site(pyodide_folder()), tmp_path / "some" / "where")
    handler = functools.partial(Silent, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page.goto(f"http://127.0.0.1:{server.server_port}/some/where/")
        page.wait_for_selector('#detections li[data-label="person"]')
        assert page.get_by_test_id("error").is_hidden()
    finally:
        server.shutdown()
