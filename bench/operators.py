"""The operator suites on another machine's adapter: a page that runs all cases and posts what failed.

python -m bench.operators --build DIR        beside a site that `bench.compare --build` wrote
python DIR/bench/collect.py DIR --page bench/operators.html --chromium PATH --flags "..." --out FILE
python -m bench.operators --keep FILE --name operators-h200 --hardware "NVIDIA H200"
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from environment import ROOT

from .compare import record


def encode(array: np.ndarray[Any, Any] | bytes) -> str:
    data = array if isinstance(array, bytes) else np.ascontiguousarray(array).tobytes()
    return base64.b64encode(data).decode()


def tensor(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {"dtype": array.dtype.name, "dims": list(array.shape), "data": encode(array)}


def own_cases() -> Iterator[dict[str, Any]]:
    """The rows of tests/ops/rows.py, in f32 and in f16."""
    from tests.ops.cases import prepare
    from tests.ops.rows import HALF_ROWS, ROWS

    for suite, rows in (("rows", ROWS), ("rows in f16", HALF_ROWS)):
        for row in rows:
            prepared = prepare(row)
            yield {
                "suite": suite,
                "name": f"{row.op} {row.name}",
                "pte": encode(prepared.pte),
                "inputs": [tensor(a) for a in prepared.inputs],
                "outputs": [
                    {**tensor(want), "rtol": row.rtol, "atol": row.atol, "index": i}
                    for i, want in enumerate(prepared.outputs)
                    if want is not None
                ],
            }


def peer_cases() -> Iterator[dict[str, Any]]:
    """The peer's suite (tests/ops/peer_cases.py)."""
    from tests.ops.peer_cases import find_cases
    from tests.ops.test_peer import ALL, name_of, read

    folder = find_cases()
    for case in ALL:
        assert folder is not None
        golden = case["golden"]
        output = {**tensor(read(folder, golden)), "rtol": case["rtol"], "atol": case["atol"]}
        yield {
            "suite": "peer",
            "name": name_of(case),
            "pte": encode((folder / case["pte"]).read_bytes()),
            "inputs": [tensor(read(folder, entry)) for entry in case["inputs"]],
            "outputs": [{**output, "index": golden["output_index"]}],
        }


def summary(posted: dict[str, Any]) -> dict[str, Any]:
    """Counts by suite, and every case that failed."""
    run = Counter(row["suite"] for row in posted["rows"])
    failed = [row for row in posted["rows"] if row["problem"]]
    lost = Counter(row["suite"] for row in failed)
    return {
        **{key: posted[key] for key in ("adapter", "browser")},
        "suites": {suite: {"run": count, "passed": count - lost[suite]} for suite, count in run.items()},
        "failed": failed,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.operators", description=__doc__)
    parser.add_argument("--build", type=Path, metavar="DIR")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--name", default="operators")
    parser.add_argument("--hardware", default="")
    options = parser.parse_args()
    if options.keep:
        print(record(summary(json.loads(options.keep.read_text())), options.name, options.hardware))
        return 0
    if options.build:
        target = options.build / "bench"
        target.mkdir(exist_ok=True)
        for name in ("operators.html", "operators.js", "collect.py"):
            shutil.copy(ROOT / "bench" / name, target)
        (target / "cases.json").write_text(json.dumps([*own_cases(), *peer_cases()]))
        return 0
    parser.print_help()
    return 1


if __name__ == "__main__":
    sys.exit(main())
