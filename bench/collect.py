"""Serve a folder, start a browser on a page of it, and wait for the results the page posts.

    python bench/collect.py FOLDER --chromium PATH [--flags "..."] [--page bench/compare.html] [--out FILE]

Standard library only, so that it runs on a bare GPU server.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import queue
import shlex
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

TYPES = {".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm"}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of one folder; POST /results ends the wait, POST /progress is printed."""

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, **TYPES}  # noqa: RUF012
    protocol_version = "HTTP/1.1"

    def __init__(self, *given: Any, results: queue.Queue[Any], **named: Any) -> None:
        self.results = results
        super().__init__(*given, **named)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/results":
            self.results.put(body)
        else:
            print(body, flush=True)
        self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the page says what goes on."""


def collect(folder: Path, chromium: str, flags: list[str], page: str, seconds: int) -> Any:
    """What the page posts. Raises TimeoutError when it does not, RuntimeError when it posts an error."""
    results: queue.Queue[Any] = queue.Queue()
    handler = functools.partial(Handler, directory=str(folder), results=results)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/{page}"
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, "--headless", f"--user-data-dir={profile}", *flags, address]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            posted = results.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError(f"no result from {page} in {seconds} s") from None
        finally:
            browser.terminate()
            browser.wait(20)
            server.shutdown()
    if "error" in posted:
        raise RuntimeError(posted["error"])
    return posted


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a benchmark page in a browser and keep what it posts.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chromium", required=True)
    parser.add_argument("--flags", default="")
    parser.add_argument("--page", default="bench/compare.html")
    parser.add_argument("--seconds", type=int, default=1500)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    posted = collect(options.folder, options.chromium, shlex.split(options.flags), options.page, options.seconds)
    text = json.dumps(posted, indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
