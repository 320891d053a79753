"""Export a model: `python -m export NAME -o FOLDER`; `check FILE` and `inspect FILE` say what a `.pte` is."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .fetch import WeightsError


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m export", description="Lower a model to a .pte and its manifest.")
    parser.epilog = "python -m export check FILE and python -m export inspect FILE say what a .pte needs and holds."
    parser.add_argument("model", nargs="?", help="a recipe's name; --list shows them")
    parser.add_argument("-o", "--output", type=Path, default=Path(), help="folder to write to (default: here)")
    parser.add_argument("--weights", type=Path, help="a weights file instead of the recipe's own")
    parser.add_argument("--fp16", action=argparse.BooleanOptionalAction, default=True, help="constants in f16")
    parser.add_argument("--list", action="store_true", help="list the recipes and stop")
    return parser.parse_args()


def main() -> int:
    if sys.argv[1:2] in (["check"], ["inspect"]):
        from . import inspection

        return inspection.main(sys.argv[1], sys.argv[2:])
    options = arguments()
    try:
        import torch  # noqa: F401 - asked for first, to say how to get it
    except ImportError:
        print("python -m export needs torch and executorch: pip install -e '.[export]'", file=sys.stderr)
        return 1
    from .models import RECIPES

    if options.list or not options.model:
        for name, build in RECIPES.items():
            print(f"{name:12} {(sys.modules[build.__module__].__doc__ or '').splitlines()[0]}")
        return 0
    if options.model not in RECIPES:
        print(f"there is no recipe {options.model!r}; there are {', '.join(RECIPES)}", file=sys.stderr)
        return 1
    try:
        export(options.model, options.output, weights=options.weights, fp16=options.fp16)
    except WeightsError as error:
        print(f"python -m export: {error}", file=sys.stderr)
        return 1
    return 0


def export(name: str, folder: Path, *, weights: Path | None, fp16: bool) -> None:
    """Write NAME.pte and NAME.json to a folder, saying what is done."""
    from .lower import lower
    from .manifest import make_manifest
    from .models import RECIPES

    def progress(stage: str, seconds: float) -> None:
        print(f"  {stage:10} {seconds:6.1f} s", flush=True)

    print(f"{name}: weights …", flush=True)
    recipe = RECIPES[name](weights)
    lowered = lower(recipe.module, recipe.example_inputs, force_fp16=fp16, progress=progress)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.pte").write_bytes(lowered.pte)
    manifest = make_manifest(recipe, lowered.pte)
    (folder / f"{name}.json").write_text(json.dumps(manifest, indent=1) + "\n")
    print(f"{folder / name}.pte: {lowered.summary()}")
    for operator, count in lowered.operators.items():
        print(f"  {count:5} {operator}")


if __name__ == "__main__":
    sys.exit(main())
