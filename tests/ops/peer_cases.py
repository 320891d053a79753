"""The cases of ExecuTorch's own WebGPU suite, as files: from an archive, or exported from the installed package.

    python -m tests.ops.peer_cases

Exporting takes about ten minutes on two cores and is done once for a version of the package.
"""

from __future__ import annotations

import importlib.metadata
import json
import multiprocessing
import os
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

from export.fetch import cache_folder, test_data

ARCHIVE = "optests.tar.xz"


def find_cases() -> Path | None:
    """The folder with manifest.json, unpacked from the test data if it is there; None when nothing was made yet."""
    data = test_data()
    if data is not None and (data / ARCHIVE).is_file():
        folder = cache_folder() / "optests"
        if not (folder / "optests" / "manifest.json").exists():
            folder.mkdir(parents=True, exist_ok=True)
            with tarfile.open(data / ARCHIVE) as tar:
                tar.extractall(folder, filter="data")
        return folder / "optests"
    made = made_folder()
    return made if (made / "manifest.json").exists() else None


def made_folder() -> Path:
    versions = "-".join(importlib.metadata.version(name) for name in ("executorch", "torch"))
    return cache_folder() / f"peer-{versions.replace('+', '-')}"


def export_share(share: int, shares: int, folder: str) -> list[dict[str, Any]]:
    """Export every shares-th case, from one on; their manifest entries."""
    import logging

    import torch
    from executorch.backends.webgpu.test.op_tests import generate_op_tests as package

    from export.lower import cache_fusion_patterns

    logging.getLogger().setLevel(logging.ERROR)
    torch.set_num_threads(1)
    cache_fusion_patterns()
    entries = []
    cases = [(op, suite, case) for op, suite in package.op_test_registry.items() for case in suite.cases]
    for op, suite, case in cases[share::shares]:
        if case.heavy:
            continue
        try:
            entries += package.generate_case(op, suite, case, folder)
        except Exception as error:  # the package's own; the count of cases is asserted by the test
            print(f"peer case {op} {case.name} is not exported: {type(error).__name__}: {error}"[:300], flush=True)
    return entries


def main() -> int:
    if find_cases() is not None:
        return 0
    start, shares = time.monotonic(), os.cpu_count() or 1
    folder = made_folder()
    folder.mkdir(parents=True, exist_ok=True)
    print(f"exporting the peer's cases in {shares} processes, once; about 20 minutes of one core", flush=True)
    with multiprocessing.get_context("spawn").Pool(shares) as pool:
        parts = pool.starmap(export_share, [(i, shares, str(folder)) for i in range(shares)])
    entries = sorted((entry for part in parts for entry in part), key=lambda e: (e["op"], e["case"]))
    (folder / "manifest.json").write_text(json.dumps(entries))
    print(f"{len(entries)} peer checks, {time.monotonic() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
