"""How large the heaps of a page and its workers are, while something runs in them."""

from __future__ import annotations

import json
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Heaps:
    """Bytes over the page and its workers. script: objects. buffers: what ArrayBuffers hold, not Wasm memories."""

    script: int
    buffers: int


class HeapProbe:
    """Asks a page and the workers it has by now for their heaps, through the DevTools protocol."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.session = page.context.new_cdp_session(page)
        self.workers: list[str] = []
        self.answers: dict[int, dict[str, Any]] = {}
        self.asked = 0
        self.session.on("Target.attachedToTarget", lambda event: self.workers.append(event["sessionId"]))
        self.session.on("Target.receivedMessageFromTarget", self._receive)
        self.session.send("Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": False})

    def _receive(self, event: dict[str, Any]) -> None:
        message = json.loads(event["message"])
        if "id" in message:
            self.answers[message["id"]] = message["result"]

    def _ask(self, worker: str, method: str) -> dict[str, Any]:
        self.asked += 1
        message = json.dumps({"id": self.asked, "method": method})
        self.session.send("Target.sendMessageToTarget", {"sessionId": worker, "message": message})
        while self.asked not in self.answers:
            self.page.wait_for_timeout(20)
        return self.answers.pop(self.asked)

    def heaps(self) -> Heaps:
        found = [
            self.session.send("Runtime.getHeapUsage"),
            *(self._ask(worker, "Runtime.getHeapUsage") for worker in self.workers),
        ]
        return Heaps(
            script=int(sum(usage["usedSize"] for usage in found)),
            buffers=int(sum(usage["backingStorageSize"] for usage in found)),
        )


def resident_bytes(kind: str, profile: Path) -> int:
    """Bytes in memory of the process of a kind ("gpu-process") of the browser with this profile; Linux only."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            if f"--type={kind}".encode() in command and str(profile).encode() in command:
                pages = int((folder / "statm").read_text().split()[1])
                return pages * resource.getpagesize()
        except OSError:
            pass  # it has ended meanwhile
    raise LookupError(f"no {kind} runs with {profile}")
