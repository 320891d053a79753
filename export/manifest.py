"""The manifest beside a `.pte`: what the page and the tasks need to know of a model."""

from __future__ import annotations

import hashlib
from typing import Any

from py_runtime.program import TensorValue, parse_program

from .recipe import Recipe

FORMAT = 1
METHOD = "forward"


def make_manifest(recipe: Recipe, pte: bytes) -> dict[str, Any]:
    """A manifest for a lowered recipe; shapes and dtypes are read from the program itself."""
    method = parse_program(pte, len(pte)).methods[METHOD]

    def ports(names: tuple[str, ...], values: tuple[int, ...]) -> list[dict[str, Any]]:
        described = []
        for name, index in zip(names, values, strict=True):
            value = method.values[index]
            assert isinstance(value, TensorValue)
            described.append({"name": name, "dtype": value.dtype.name, "dims": list(value.shape)})
        return described

    return {
        "format": FORMAT,
        "name": recipe.name,
        "title": recipe.title,
        "task": recipe.task,
        "program": f"{recipe.name}.pte",
        "method": METHOD,
        "bytes": len(pte),
        "sha256": hashlib.sha256(pte).hexdigest(),
        "inputs": ports(recipe.inputs, method.inputs),
        "outputs": ports(recipe.outputs, method.outputs),
        "preprocessing": recipe.preprocessing,
        "postprocessing": recipe.postprocessing,
        "labels": list(recipe.labels),
        "source": recipe.source,
        "licence": recipe.licence,
        "notice": recipe.notice,
    }
