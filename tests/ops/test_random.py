"""Random shapes and arguments against PyTorch in fp64: a few hundred cases, the same each time.

What this layer finds becomes a row in rows.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.site import RuntimePage

from .cases import Case, integers, positive, randn
from .test_operators import check

EXAMPLES = 30
bounded = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

size = st.integers(1, 9)
shape = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@st.composite
def broadcast_pair(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    full = draw(shape)
    one = [n if draw(st.booleans()) else 1 for n in full]
    other = [n if draw(st.booleans()) else 1 for n in full]
    return tuple(one[draw(st.integers(0, len(full) - 1)) :]), tuple(other)


@given(broadcast_pair(), st.sampled_from(["add", "sub", "mul", "div", "minimum"]), st.sampled_from([1, 2, -0.5]))
@bounded
def test_broadcasting(runtime_page: RuntimePage, shapes: Any, name: str, alpha: float) -> None:
    a, b = randn(*shapes[0]), positive(*shapes[1], seed=1)
    if name in ("add", "sub"):
        row = Case("", f"aten.{name}.Tensor", (a, b, alpha), torch_args=2, torch_kwargs=(("alpha", alpha),))
    else:
        row = Case("", "aten.minimum.default" if name == "minimum" else f"aten.{name}.Tensor", (a, b))
    check(runtime_page, row)


@given(st.data())
@bounded
def test_convolution(runtime_page: RuntimePage, plain_gpu_page: RuntimePage, data: Any) -> None:
    """Both the routes of software adapters and those of GPUs."""
    draw = data.draw
    rank = draw(st.integers(1, 2))
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    transposed = draw(st.booleans())
    each_in, each_out = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    kernel = [draw(st.integers(1, 4)) for _ in range(rank)]
    stride = [draw(st.integers(1, 3)) for _ in range(rank)]
    dilation = [draw(st.integers(1, 2)) for _ in range(rank)]
    padding = [draw(st.integers(0, 2)) for _ in range(rank)]
    extra = [draw(st.integers(0, max(s, d) - 1)) if transposed else 0 for s, d in zip(stride, dilation, strict=True)]
    spatial = [draw(st.integers(1, 12)) for _ in range(rank)]
    for n, k, s, d, p, e in zip(spatial, kernel, stride, dilation, padding, extra, strict=True):
        reach = d * (k - 1) + 1
        assume((n - 1) * s - 2 * p + reach + e > 0 if transposed else n + 2 * p >= reach)
    x = randn(draw(st.integers(1, 2)), groups * each_in, *spatial)
    weight = randn(*((groups * each_in, each_out) if transposed else (groups * each_out, each_in)), *kernel, seed=1)
    bias = randn(groups * each_out, seed=2) if draw(st.booleans()) else None
    args = (x, weight, bias, stride, padding, dilation, transposed, extra, groups)
    for page in (runtime_page, plain_gpu_page):
        check(page, Case("", "aten.convolution.default", args))


@given(st.data())
@bounded
def test_pooling(runtime_page: RuntimePage, data: Any) -> None:
    draw = data.draw
    kernel = [draw(st.integers(1, 4)) for _ in range(2)]
    stride = [draw(st.integers(1, 3)) for _ in range(2)]
    padding = [draw(st.integers(0, k // 2)) for k in kernel]
    spatial = [draw(st.integers(k, 10)) for k in kernel]
    x = randn(draw(st.integers(1, 2)), draw(st.integers(1, 3)), *spatial)
    ceil = draw(st.booleans())
    if draw(st.booleans()):
        check(
            runtime_page, Case("", "aten.avg_pool2d.default", (x, kernel, stride, padding, ceil, draw(st.booleans())))
        )
    else:
        args = (x, kernel, stride, padding, [1, 1], ceil)
        check(runtime_page, Case("", "aten.max_pool2d_with_indices.default", args))


@given(st.integers(1, 3), size, st.integers(1, 70), size, st.booleans())
@bounded
def test_products(
    runtime_page: RuntimePage, plain_gpu_page: RuntimePage, batch: int, rows: int, k: int, columns: int, wide: bool
) -> None:
    scale = 9 if wide else 1
    a, b = randn(batch, rows * scale, k), randn(batch, k, columns * scale, seed=1)
    for page in (runtime_page, plain_gpu_page):
        check(page, Case("", "aten.bmm.default", (a, b)))


@given(shape, st.data(), st.sampled_from(["sum.dim_IntList", "mean.dim", "amax.default", "amin.default"]))
@bounded
def test_reductions(runtime_page: RuntimePage, sizes: list[int], data: Any, name: str) -> None:
    dims = data.draw(st.lists(st.integers(-len(sizes), len(sizes) - 1), min_size=1, unique_by=lambda d: d % len(sizes)))
    check(runtime_page, Case("", f"aten.{name}", (randn(*sizes), dims, data.draw(st.booleans()))))


@given(shape, st.data())
@bounded
def test_slices(runtime_page: RuntimePage, sizes: list[int], data: Any) -> None:
    dim = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    n = sizes[dim]
    start, end = data.draw(st.integers(-n, n - 1)), data.draw(st.integers(-n, n + 3))
    step = data.draw(st.integers(1, 3))
    first, last, _ = slice(start, end, step).indices(n)
    assume(first < last)
    check(runtime_page, Case("", "aten.slice_copy.Tensor", (randn(*sizes), dim, start, end, step)))


@given(shape, st.data())
@bounded
def test_permutes(runtime_page: RuntimePage, sizes: list[int], data: Any) -> None:
    dims = data.draw(st.permutations(range(len(sizes))))
    check(runtime_page, Case("", "aten.permute_copy.default", (integers(*sizes), list(dims))))


@given(st.data())
@bounded
def test_cats(runtime_page: RuntimePage, data: Any) -> None:
    sizes = data.draw(shape)
    dim = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    parts = []
    for i in range(data.draw(st.integers(1, 5))):
        own = list(sizes)
        own[dim] = data.draw(st.integers(1, 5))
        parts.append(randn(*own, seed=i))
    check(runtime_page, Case("", "aten.cat.default", (parts, dim)))


@given(shape, st.data())
@bounded
def test_padding(runtime_page: RuntimePage, sizes: list[int], data: Any) -> None:
    pads = []
    for n in reversed(sizes[-data.draw(st.integers(1, len(sizes))) :]):
        before = data.draw(st.integers(-(n // 2), 3))
        after = data.draw(st.integers(-(n // 2) + (n % 2 == 0), 3))
        assume(n + before + after > 0)
        pads += [before, after]
    check(runtime_page, Case("", "aten.constant_pad_nd.default", (randn(*sizes), pads, 0.5)))


@given(shape, st.data())
@bounded
def test_softmax(runtime_page: RuntimePage, sizes: list[int], data: Any) -> None:
    dim = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    name = data.draw(st.sampled_from(["_softmax", "_log_softmax"]))
    check(runtime_page, Case("", f"aten.{name}.default", (randn(*sizes) * np.float32(3), dim, False)))
