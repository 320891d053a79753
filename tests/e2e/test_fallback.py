"""CPU kernels in the browser's NumPy, where the default integer has 32 bits, against PyTorch."""

from __future__ import annotations

import json
import pickle
from typing import Any

from py_runtime.fallback.elementwise import BINARY, UNARY
from tests.unit.kernel_calls import golden
from tests.unit.kernel_rows import ROWS, binary_arguments, unary_arguments

SCRIPT = """
import json, pickle
import numpy as np
from pyodide.http import pyfetch
from py_runtime.fallback import KERNELS, call_kernel

assert np.array([1]).dtype == np.int32, "this NumPy's default integer is no longer what is tested here"

def check(name, arguments, expected):
    results = []
    for result in call_kernel(KERNELS["aten::" + name], arguments):
        results += result if isinstance(result, list) else [result]
    assert len(results) == len(expected), len(results)
    for result, want in zip(results, expected):
        stored = np.asarray(result).astype(want.dtype).reshape(want.shape)
        if want.dtype.kind in "fc":
            half = want.dtype == np.float16
            np.testing.assert_allclose(stored, want, rtol=1e-3 if half else 1e-4, atol=1e-3 if half else 1e-5)
        else:
            np.testing.assert_array_equal(stored, want)

wrong = []
rows = pickle.loads(await (await pyfetch(URL)).bytes())
for name, arguments, expected in rows:
    try:
        check(name, arguments, expected)
    except Exception as error:
        wrong.append(f"{name}: {type(error).__name__} {error}"[:400])
json.dumps({"rows": len(rows), "kernels": len({name for name, _, _ in rows}), "wrong": wrong})
"""


def test_kernels_equal_pytorch_in_the_browser(python: Any, site: Any) -> None:
    calls = [(row[0], row[1:]) for row in ROWS]
    calls += [(name, unary_arguments(name)) for name in sorted(UNARY)]
    calls += [(name, binary_arguments(name)) for name in sorted(BINARY)]
    rows = [(name, given, [want.resolve_conj().numpy() for want in golden(name, *given)]) for name, given in calls]
    url = site.put("kernel-rows.pickle", pickle.dumps(rows))
    result = json.loads(python(SCRIPT.replace("URL", repr(url))))
    assert result["kernels"] > 180 and result["rows"] == len(rows)
    assert not result["wrong"], "\n".join(result["wrong"])
