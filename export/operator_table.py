"""`docs/operators.md` from the registry: `python -m export.operator_table`."""

from __future__ import annotations

import sys
from collections import defaultdict

from py_runtime.ops import OPERATORS

from .fetch import ROOT

PAGE = ROOT / "docs" / "operators.md"
HEAD = """\
# Operators

What a delegate may contain, by the module in `py_runtime/ops/` that lowers it (`python -m export.operator_table`).
Floats are stored as f32 or f16 (f32 where the adapter has no `shader-f16`) and summed in f32; int32, int64 (32 bits on
the GPU, checked at the input), uint8, int8 and bool are stored in 32 bits. What is not here is named at load.
"""


def page() -> str:
    """The page's text."""
    families: dict[str, list[str]] = defaultdict(list)
    for name, lower in sorted(OPERATORS.items()):
        families[lower.__module__.rpartition(".")[2]].append(name)
    parts = [HEAD]
    for family in sorted(families):
        doc = (sys.modules[f"py_runtime.ops.{family}"].__doc__ or "").splitlines()[0]
        listed = "\n".join(f"- `{name}`" for name in families[family])
        parts.append(f"## {family}\n\n{doc}\n\n{listed}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
