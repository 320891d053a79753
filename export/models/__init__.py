"""Model recipes: an architecture, its weights, and what its manifest says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..recipe import Recipe
from . import nanodet, srvgg, yolox

Build = Callable[[Path | None], Recipe]

RECIPES: dict[str, Build] = {
    "nanodet": nanodet.build,
    "yolox_nano": yolox.build,
    "srvgg": srvgg.build,
}
