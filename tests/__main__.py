"""`python -m tests [pytest arguments]`: makes what the tests need, then checks and runs everything."""

from __future__ import annotations

import subprocess
import sys
import time

from environment import ROOT, SetupError, pyodide_folder, run_in_venv

CHECKS = (
    ("lint", ["ruff", "check", "."]),
    ("format", ["ruff", "format", "--check", "--quiet", "."]),
    ("types", ["mypy"]),
)
EXPORTS = (("exports", "export.goldens"), ("peer's cases", "tests.ops.peer_cases"))


def timed(name: str, command: list[str]) -> int:
    """Run a module of this interpreter in the checkout; its exit code, with its time said."""
    start = time.monotonic()
    code = subprocess.run([sys.executable, "-m", *command], cwd=ROOT).returncode
    print(f"{name}: {'ok' if code == 0 else f'failed ({code})'}, {time.monotonic() - start:.0f} s", flush=True)
    return code


def main() -> int:
    try:
        run_in_venv(["test"])
        pyodide_folder()
        from .chromium import find_chromium

        print(f"browser: {find_chromium()}", flush=True)
    except SetupError as error:
        print(f"python -m tests: {error}", file=sys.stderr)
        return 1
    failed = [name for name, command in CHECKS if timed(name, command)]
    for name, module in EXPORTS:
        if timed(name, [module]):
            failed.append(name)
    if failed:
        print(f"failed before the tests: {', '.join(failed)}", flush=True)
    code = subprocess.run([sys.executable, "-m", "pytest", *sys.argv[1:]], cwd=ROOT).returncode
    return code or int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
