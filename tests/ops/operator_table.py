"""`docs/operators.md` from the registry and what the tests run: `python -m tests.ops.operator_table`."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from environment import ROOT
from export.lower import delegate_graphs
from py_runtime.errors import PteronError
from py_runtime.graph import Graph
from py_runtime.kernels import Target
from py_runtime.ops import OPERATORS
from py_runtime.passes.specialize import specialize
from py_runtime.plan import make_plan

from .cases import prepare
from .peer_cases import find_cases
from .rows import HALF_ROWS, ROWS

PAGE = ROOT / "docs" / "operators.md"
HEAD = """\
# Operators

What a delegate may contain, by the module in `py_runtime/ops/` that lowers it. Made by
`python -m tests.ops.operator_table` from the registry and from the graphs that the tests run:

- dtypes: of the tensors in those graphs. Floats are stored as f32 or f16 (f32 where the adapter has no `shader-f16`)
  and summed in f32; int32, int64 (32 bits on the GPU, checked at the input), uint8, int8 and bool take 32 bits.
- ranks: of those tensors. No operator has a limit below 8 but those whose schema fixes the rank.
- routes: the kernels that software adapters and GPUs take for them; "view" is an address and no kernel.
- tests: rows of `tests/ops/rows.py` against PyTorch in fp64, in f32 and f16; programs of ExecuTorch's own suite.

Integers of sizes (`sym_size.int`, `add`, `sub`, `mul`, `floordiv`, `mod`, comparisons) are resolved when the shapes are
known; `et_vk.select_as_symint.default` is read on the GPU by the operator that takes it. What is not here is named at
load.
"""

SHORT = {
    "float32": "f32",
    "float16": "f16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "int8": "i8",
    "bool": "bool",
}
TARGETS = (Target(software=True), Target(f16=True))


@dataclass
class Seen:
    """What the tests run of one operator."""

    dtypes: set[str] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    routes: set[str] = field(default_factory=set)
    rows: int = 0
    peer: int = 0


def graphs() -> Iterator[tuple[str, str, Graph]]:
    """Of every case: "rows" or "peer", the operator in question ("" for the peer's) and the graph."""
    for row in (*ROWS, *HALF_ROWS):
        for graph in delegate_graphs(prepare(row).pte):
            yield "rows", row.op, graph
    folder = find_cases()
    assert folder is not None, "run `python -m tests.ops.peer_cases` first"
    for path in sorted(folder.glob("*.pte")):
        for graph in delegate_graphs(path.read_bytes()):
            yield "peer", "", graph


def collect() -> dict[str, Seen]:
    seen: dict[str, Seen] = defaultdict(Seen)
    for source, own, graph in graphs():
        names = {node.op for node in graph.nodes if node.outputs[0] not in graph.symbols}
        for name in names:
            if source == "peer":
                seen[name].peer += 1
            elif name == own:
                seen[name].rows += 1
        for node in graph.nodes:
            for tensor in (*node.tensors(), *node.outputs):
                if tensor in graph.tensors and node.op in names:
                    seen[node.op].dtypes.add(SHORT[graph.tensors[tensor].dtype.name])
                    seen[node.op].ranks.add(len(graph.tensors[tensor].shape))
        for target in TARGETS:
            try:
                plan = make_plan(specialize(graph, {}), target)
            except PteronError:  # sizes that only a run gives
                continue
            for name, route in plan.routes:
                seen[name].routes.add(route)
    return seen


def table_row(name: str, seen: Seen) -> str:
    dtypes = " ".join(kind for kind in SHORT.values() if kind in seen.dtypes)
    ranks = f"{min(seen.ranks)}–{max(seen.ranks)}" if len(seen.ranks) > 1 else "".join(map(str, seen.ranks))
    routes = ", ".join(sorted(seen.routes)) or "view"
    tests = ", ".join(f"{count} {what}" for count, what in ((seen.rows, "rows"), (seen.peer, "peer")) if count)
    return f"| `{name}` | {dtypes} | {ranks} | {routes} | {tests} |"


def page() -> str:
    """The page's text."""
    families: dict[str, list[str]] = defaultdict(list)
    for name, lower in sorted(OPERATORS.items()):
        families[lower.__module__.rpartition(".")[2]].append(name)
    seen = collect()
    parts = [HEAD]
    for family in sorted(families):
        doc = (sys.modules[f"py_runtime.ops.{family}"].__doc__ or "").splitlines()[0]
        rows = "\n".join(table_row(name, seen[name]) for name in families[family])
        head = "| operator | dtypes | ranks | routes | tests |\n| --- | --- | --- | --- | --- |"
        parts.append(f"## {family}\n\n{doc}\n\n{head}\n{rows}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
