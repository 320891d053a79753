"""Each fast route of a convolution against the direct one, on the same input."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from .cases import output_specs, randn
from .write_program import write_program

# name: (x, weight, stride, padding, dilation, groups)
SHAPES = {
    "3x3": ((1, 8, 13, 17), (12, 8, 3, 3), [1, 1], [1, 1], [1, 1], 1),
    "strided 5x3": ((2, 5, 15, 16), (7, 5, 5, 3), [2, 3], [2, 0], [1, 1], 1),
    "dilated": ((1, 4, 16, 16), (9, 4, 3, 3), [1, 1], [2, 2], [2, 2], 1),
    "pointwise": ((1, 33, 9, 11), (65, 33, 1, 1), [1, 1], [0, 0], [1, 1], 1),
    "many channels": ((1, 160, 6, 6), (40, 160, 3, 3), [1, 1], [1, 1], [1, 1], 1),
    "depthwise": ((1, 10, 12, 19), (10, 1, 3, 3), [1, 1], [1, 1], [1, 1], 10),
    "depthwise strided": ((2, 6, 14, 13), (6, 1, 5, 5), [2, 2], [2, 2], [1, 1], 6),
    "one output": ((1, 3, 8, 8), (1, 3, 3, 3), [1, 1], [1, 1], [1, 1], 1),
    "1-D": ((1, 6, 70), (9, 6, 4), [2], [1], [1], 1),
}

SCRIPT = """
import io, json
from dataclasses import replace
import numpy as np
from pyodide.http import pyfetch
from py_runtime import Runtime
from py_runtime.device import Device
from py_runtime.kernels import Target
from py_runtime.ops import convolution

runtime = await Runtime.create()
target_of, every = Device.target, convolution.ROUTES
*fast, direct = every

async def run(source, inputs, routes, software):
    convolution.ROUTES = routes
    Device.target = lambda device: replace(target_of(device), software=software)
    program = await runtime.load_program(source)
    method = await program.load_method("forward")
    (output,) = await method.execute(inputs)
    used = list((await method.report(rounds=1)).routes)
    program.close()
    return output, used

results = []
for name in NAMES:
    stored = np.load(io.BytesIO(await (await pyfetch(f"/test-data/{name}.npz")).bytes()))
    source, inputs = stored["program"].tobytes(), [stored[key] for key in ("x", "weight", "bias")]
    plain, used = await run(source, inputs, (direct,), True)
    assert used == ["conv_direct"], used
    spread = float(np.ptp(plain))
    for route in fast:
        for software in (True, False):
            output, used = await run(source, inputs, (route, direct), software)
            if used != ["conv_direct"]:
                results.append([name, route[0], software, used, float(np.abs(output - plain).max()) / spread])
convolution.ROUTES, Device.target = every, target_of
runtime.close()
json.dumps(results)
"""

#: Of the spread; sums of up to 1,440 products in f32, in another order.
TOLERANCE = 1e-5


@pytest.fixture
def results(python: Any, site: Any) -> list[Any]:
    for i, (x, weight, stride, padding, dilation, groups) in enumerate(SHAPES.values()):
        arrays = {"x": randn(*x), "weight": randn(*weight, seed=1), "bias": randn(weight[0], seed=2)}
        transposed = [0] * len(stride)
        args = (*arrays.values(), stride, padding, dilation, False, transposed, groups)
        sizes = [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(x[2:], weight[2:], stride, padding, dilation, strict=True)
        ]
        spec = output_specs([np.zeros((x[0], weight[0], *sizes), np.float32)])
        data, _ = write_program("aten.convolution.default", args, spec)
        file = io.BytesIO()
        np.savez(file, program=np.frombuffer(data, np.uint8), **arrays)
        site.put(f"route-{i}.npz", file.getvalue())
    names = [f"route-{i}" for i in range(len(SHAPES))]
    return json.loads(python(SCRIPT.replace("NAMES", repr(names))))


def test_fast_routes_equal_the_direct_one(results: list[Any]) -> None:
    worst = {f"{name} {route} {used}": error for name, route, _, used, error in results if error > TOLERANCE}
    assert worst == {}
    taken = {kernel for _, _, _, used, _ in results for kernel in used}
    assert taken >= {"conv_depthwise", "conv_register", "conv_tile", "conv_split_sum"}
    assert len(results) > 3 * len(SHAPES) / 2
