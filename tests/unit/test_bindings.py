"""The flatbuffer bindings in git are those of the installed executorch."""

from __future__ import annotations

import pytest

from export.bindings import TARGET, generate


def test_bindings_match_the_installed_schemas() -> None:
    pytest.importorskip("executorch")
    made = generate()
    assert set(made) == {path.stem for path in TARGET.glob("*.py")}
    for module, text in made.items():
        assert (TARGET / f"{module}.py").read_text() == text, f"run `python -m export.bindings`: {module} differs"
