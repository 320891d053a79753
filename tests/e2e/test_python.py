"""The Python face, used in the browser as a notebook would: NumPy in, NumPy out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from export.small_programs import SMALL

SCRIPT = """
import io, json
import numpy as np
from pyodide.http import pyfetch
from py_runtime.errors import ClosedError, InputShapeError
from py_runtime import Runtime

async def fetch(path):
    return await (await pyfetch(path)).bytes()

seen = []
runtime = await Runtime.create()
assert runtime.info.vendor
results = {}
for name in NAMES:
    golden = np.load(io.BytesIO(await fetch(f"/test-data/goldens/{name}.npz")))
    source = await fetch(f"/test-data/goldens/{name}.pte")
    program = await runtime.load_program(source, progress=lambda *step: seen.append(step))
    method = await program.load_method("forward")
    inputs = [golden[k] for k in golden.files if k.startswith("in")]
    expected = [golden[k] for k in golden.files if k.startswith("out")]
    assert [(i.dtype, i.shape) for i in method.metadata.inputs if not i.dynamic] == [
        (a.dtype.name, a.shape) for a, i in zip(inputs, method.metadata.inputs) if not i.dynamic
    ]
    outputs = await method.execute(inputs)
    assert [o.dtype for o in outputs] == [e.dtype for e in expected], name
    close = [np.allclose(o, e, rtol=1e-3, atol=1e-4) for o, e in zip(outputs, expected)]
    results[name] = bool(close) and all(close)
    try:
        await method.execute([np.zeros((1, 2), a.dtype) for a in inputs])
        results[name] = "a wrong shape passed"
    except InputShapeError:
        pass
    report = await method.report(rounds=1)
    results[name] = results[name] and report.dispatches == len(report.kernels)
    program.close()
    try:
        await method.execute(inputs)
        results[name] = "a closed method ran"
    except ClosedError:
        pass
assert {stage for stage, _, _ in seen} >= {"download"}
runtime.close()
json.dumps(results)
"""


def test_numpy_in_and_out(python: Any, goldens: Path) -> None:
    """Every small program: every dtype, several inputs and outputs, dynamic ones, ones with CPU parts."""
    import json

    results = json.loads(python(SCRIPT.replace("NAMES", repr(list(SMALL)))))
    assert results == dict.fromkeys(SMALL, True)
