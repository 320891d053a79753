"""`python -m tests.big_program FOLDER`: a program with 2.5 GB of weights, and what PyTorch makes of it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

from export.lower import lower

WIDTH = 4096
LAYERS = 38  # of 4 * WIDTH * WIDTH bytes each: 2.55 GB
NAME = "linears"


class Linears(nn.Module):
    """Linears without bias in a row; gives what the first two and the last one give."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = []
        for layer in self.layers:
            # about the size of its input again: else 38 layers leave nothing of it
            x = 2.4 * torch.relu(layer(x))
            given.append(x)
        return given[0], given[1], given[-1]


def main() -> int:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    module = Linears(LAYERS).eval()
    x = torch.randn(1, WIDTH)
    with torch.no_grad():
        outputs = module(x)
    arrays = {f"out{i}": output.numpy() for i, output in enumerate(outputs)}
    np.savez(folder / f"{NAME}.npz", in0=x.numpy(), **arrays)
    lowered = lower(module, (x,))
    (folder / f"{NAME}.pte").write_bytes(lowered.pte)
    return 0


if __name__ == "__main__":
    sys.exit(main())
