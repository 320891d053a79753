"""Small programs that use what a program can be besides one graph: branches, loops, numbers, states, methods."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from .small_programs import Function, SmallProgram, randn


class Branch(nn.Module):
    """One of two branches, by the sum of the input."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(9)
        self.linear = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: self.linear(y).relu(), lambda y: (y - 1).cumsum(1), (x,)) * 2


class Loop(nn.Module):
    """The same for every row, which becomes a loop over the rows."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        from torch._higher_order_ops.map import map as map_rows

        return map_rows(lambda row, other: (row * other).cumsum(0).relu(), x, y) + 1


class RunningSum(nn.Module):
    """A buffer of the method itself, which the CPU reads and writes.

    start: what it holds first. The exporter's defaults keep no values of such a buffer: it starts as
    zeros. (They also take a buffer that only the GPU reads for a constant, so none does here.)
    """

    def __init__(self, start: float) -> None:
        super().__init__()
        self.register_buffer("total", torch.full((3, 4), start))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = self.total.cumsum(0)
        self.total.copy_((before * 0.5 + x).cumsum(1))
        return self.total * 2, before.sigmoid()


def running_sum(start: float, plain: bool) -> SmallProgram:
    others = tuple((randn(3, 4, seed=i),) for i in range(1, 4))
    return SmallProgram(RunningSum(start), (randn(3, 4),), others=others, plain=plain)


class Words(nn.Module):
    """An embedding for the CPU and a linear layer for the GPU."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(10)
        self.embedding, self.linear = nn.Embedding(50, 16), nn.Linear(16, 24)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.linear(self.embedding(tokens)).relu()


def filled(x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    """A number that the CPU reads out of a tensor goes into two graphs."""
    row = position[0].item()
    torch._check(row >= 0)
    torch._check(row < 64)
    return torch.full((1, 10, 6), row).relu() + x.cumsum(1)


def shape_arithmetic(x: torch.Tensor) -> torch.Tensor:
    """Shapes computed by prim operators between operators of the CPU and of the GPU."""
    half = x.shape[1] // 2
    return x.relu().cumsum(1).reshape(x.shape[0], half, 4).sigmoid() * half


def sized(kept: int, shift: int) -> SmallProgram:
    """Numbers among the inputs and the outputs."""
    length = torch.export.Dim("length", min=2, max=20)

    def function(x: torch.Tensor, n: int) -> tuple[torch.Tensor, int, int]:
        return (x + n).sigmoid(), x.shape[1] * 2, n + 1

    runs = tuple((randn(2, size, 3, seed=size), n) for size, n in ((2, 9), (20, -4)))
    shapes = ({1: length}, torch.export.Dim.DYNAMIC)
    return SmallProgram(Function(function), (randn(2, kept, 3), shift), (shapes,), runs, plain=True)


def shaped() -> SmallProgram:
    length = torch.export.Dim("half", min=1, max=8)
    runs = tuple((randn(3, size, 2, seed=size),) for size in (2, 16, 6))
    return SmallProgram(Function(shape_arithmetic), (randn(3, 10, 2),), (({1: 2 * length},),), runs, plain=True)


class Encode(nn.Module):
    """A linear layer that another method has too."""

    def __init__(self, shared: nn.Linear) -> None:
        super().__init__()
        self.shared = shared

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.shared(x).relu()


class Decode(Encode):
    """The same layer, and an operator for the CPU."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.shared(x) + y.cumsum(0)


def two_methods() -> dict[str, SmallProgram]:
    """Methods of one program, which share weights."""
    torch.manual_seed(11)
    shared = nn.Linear(4, 4)
    return {
        "encode": SmallProgram(Encode(shared).eval(), (randn(3, 4),)),
        "decode": SmallProgram(Decode(shared).eval(), (randn(3, 4), randn(3, 4, seed=1))),
    }


FLOW: dict[str, Callable[[], SmallProgram]] = {
    "branch": lambda: SmallProgram(
        Branch().eval(), (randn(3, 6).abs(),), others=((-randn(3, 6).abs(),), (randn(3, 6).abs() + 1,)), plain=True
    ),
    "loop": lambda: SmallProgram(Loop(), (randn(4, 5), randn(5, seed=1)), plain=True),
    "running_sum": lambda: running_sum(0.0, plain=True),
    "started_sum": lambda: running_sum(1.5, plain=False),
    "on_the_cpu": lambda: SmallProgram(Function(lambda x: tuple(x.cumsum(1).sort(1))), (randn(3, 7),), plain=True),
    "filled": lambda: SmallProgram(
        Function(filled),
        (randn(1, 10, 6), torch.tensor([5])),
        others=((randn(1, 10, 6), torch.tensor([63])),),
        plain=True,
    ),
    "shaped": shaped,
    "sized": lambda: sized(5, 3),
}
