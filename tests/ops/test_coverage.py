"""No operator that the installed exporter can put in a delegate is missing, and none is untested."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from export.lower import describe
from py_runtime.ops import OPERATORS
from py_runtime.passes.specialize import SYMBOLIC

from .operator_table import PAGE, page
from .peer_cases import find_cases
from .rows import ROWS
from .test_peer import ALL

#: In the partitioner's list, but gone before a graph is serialized: checks of sizes, and tuple indexing.
NEVER_SERIALIZED = {"_assert_scalar.default", "sym_constrain_range_for_size.default", "getitem"}
#: Integers of sizes: resolved before planning, not kernels.
ON_SIZES = {*SYMBOLIC, "sym_size.int", "et_vk.select_as_symint.default"}
ROWS_EACH = 5


def partitioner_names() -> set[str]:
    """What the partitioner of the installed package takes, as a graph would name it."""
    from executorch.backends.vulkan.op_registry import vulkan_supported_ops

    names = set()
    for key in vulkan_supported_ops:
        name = key.replace("::", ".") + ".default" if isinstance(key, str) else key.__name__
        names.add(name)
    return names


def test_all_that_the_partitioner_takes_is_there() -> None:
    names = partitioner_names()
    assert len(names) > 150
    assert names - NEVER_SERIALIZED - ON_SIZES - OPERATORS.keys() == set()


def test_all_of_the_delegates_own_operators_are_there() -> None:
    import executorch.backends.vulkan.custom_ops_lib as library

    names = {"".join(name.split()).replace("::", ".") for name in library.lib._op_defs}
    defined = {f"{name}.default" for name in names if not name.endswith(("_out", ".out"))}
    assert len(defined) > 20
    assert defined - OPERATORS.keys() - ON_SIZES == set()


def test_all_that_the_written_lists_name_is_there(shared: Path) -> None:
    named = set(re.findall(r"`((?:\w+\.)+\w+)`", (shared / "OPERATORS.md").read_text()))
    assert len(named) > 140
    assert named - OPERATORS.keys() - ON_SIZES - {"aten.sym_size.int"} == set()


def test_every_operator_has_rows() -> None:
    """Five for each operator that the peer's suite leaves out; llama.x is x under another name."""
    folder = find_cases()
    assert folder is not None
    peer = Counter(
        op for pte in {case["pte"] for case in ALL} for op in describe((folder / pte).read_bytes()).operators
    )
    own = Counter(row.op.removeprefix("llama.") for row in ROWS)
    few = {op: own[op.removeprefix("llama.")] for op in OPERATORS if not peer[op]}
    assert {op: count for op, count in few.items() if count < ROWS_EACH} == {}


def test_the_operator_table_is_up_to_date() -> None:
    assert page() == PAGE.read_text(), "run `python -m tests.ops.operator_table`"
