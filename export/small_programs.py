"""Modules of a few operators for the tests: dtypes, views, several inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class SmallProgram:
    """A module and the inputs that it is exported and run with."""

    module: nn.Module
    inputs: tuple[torch.Tensor, ...]


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> object:
        return self.function(*inputs)


def program(function: Callable[..., object], *inputs: torch.Tensor) -> SmallProgram:
    return SmallProgram(Function(function).eval(), inputs)


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randint(-50, 50, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


class ConvNet(nn.Module):
    """Convolutions with every route's shape, cats that nest, and an input that is a cat's part."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Conv2d(4, 12, 3, padding=1)
        self.depthwise = nn.Conv2d(12, 12, (3, 5), stride=(1, 2), padding=(1, 2), groups=12)
        self.grouped = nn.Conv2d(12, 8, 3, padding=2, dilation=2, groups=4)
        self.up = nn.ConvTranspose2d(20, 5, 3, stride=2, padding=1, output_padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a = F.silu(self.first(x))
        b = F.leaky_relu(self.depthwise(a), 0.2)
        c = torch.cat([self.grouped(b), b], 1)
        both = torch.cat([c[:, :8], c], 1)
        return self.up(c), torch.cat([both, both.relu()], 1)


SMALL: dict[str, Callable[[], SmallProgram]] = {
    "relu": lambda: program(lambda x: x.relu(), randn(2, 3, 5)),
    "square": lambda: program(lambda x: x * x + x, randn(7, 11)),
    "two_inputs": lambda: program(lambda x, y: (x + y, (x - 2 * y).sigmoid()), randn(2, 3, 4), randn(3, 1, seed=1)),
    "int64": lambda: program(lambda x: x + x, integers(3, 5, dtype=torch.int64)),
    "int32": lambda: program(lambda x: x * x, integers(3, 5, dtype=torch.int32)),
    "half": lambda: program(lambda x: (x + 1).relu(), randn(3, 7).half()),
    "to_bool": lambda: program(lambda x: x > 0, randn(3, 7)),
    "from_bool": lambda: program(lambda mask, x: torch.where(mask, x, -x), randn(3, 7) > 0, randn(3, 7, seed=1)),
    "views": lambda: program(
        lambda x: (x.reshape(6, 20)[2:4].reshape(2, 4, 5).permute(1, 0, 2), x.transpose(0, 1).flatten(1)),
        randn(2, 3, 20),
    ),
    "convolutions": lambda: SmallProgram(ConvNet().eval(), (randn(1, 4, 14, 18),)),
}
