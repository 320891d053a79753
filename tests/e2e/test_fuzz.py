"""Damaged programs in the browser: each loads or is refused by name, and the runtime goes on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from tests.mutate import mutate, read_specimen
from tests.site import RuntimePage

COUNT = 300
LARGEST = 100_000  # bytes: each file is loaded in full, its weights too
NAMED = {
    "ProgramError",
    "TruncatedProgramError",
    "MissingOperatorError",
    "UnsupportedError",
    "LimitError",
}

LOAD = """async (urls) => {
  const ends = [];
  for (const url of urls) {
    try {
      const program = await window.runtime.loadProgram(url);
      await program.close();
      ends.push("valid");
    } catch (error) {
      ends.push(error.message.length > 20 ? error.name : `no message: ${error}`);
    }
  }
  return ends;
}"""


def test_damaged_programs_load_or_are_refused_by_name(runtime_page: RuntimePage, goldens: Path) -> None:
    paths = [path for path in sorted(goldens.glob("*.pte")) if path.stat().st_size <= LARGEST]
    specimens = [read_specimen(path) for path in paths]
    assert len(specimens) >= 20
    ends: Counter[str] = Counter()
    for first in range(0, COUNT, 50):
        labels, urls = [], []
        for seed in range(first, first + 50):
            label, data = mutate(specimens[seed % len(specimens)], seed)
            labels.append(label)
            urls.append(runtime_page.site.put(f"damaged-{seed}.pte", data))
        found = runtime_page.evaluate(LOAD, urls)
        strange = [pair for pair in zip(labels, found, strict=True) if pair[1] not in {"valid", *NAMED}]
        assert not strange, strange
        ends.update(found)
    assert ends.total() == COUNT and ends["valid"] > 10 and ends["ProgramError"] > 100, ends
    (result,) = runtime_page.run("/test-data/goldens/relu.pte", [np.full((2, 3, 5), -1, np.float32)])
    assert np.array_equal(result, np.zeros((2, 3, 5), np.float32))
