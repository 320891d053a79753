"""Modules of a few operators for the tests: dtypes, views, several inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class SmallProgram:
    """A module and the inputs that it is exported and run with.

    dynamic_shapes: as torch.export takes them; others: inputs of more runs; plain: exported with
    executorch's defaults, which leave some operators on the CPU; on_cpu: operators kept there.
    """

    module: nn.Module
    inputs: tuple[Any, ...]
    dynamic_shapes: Any = None
    others: tuple[tuple[Any, ...], ...] = ()
    plain: bool = False
    on_cpu: tuple[str, ...] = ()


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


class Attention(nn.Module):
    """Self-attention of four heads over a sequence, with layer norm and residual."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.norm = nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape

        def heads(layer: nn.Linear, y: torch.Tensor) -> torch.Tensor:
            return layer(y).view(batch, length, 4, width // 4).transpose(1, 2)

        y = self.norm(x)
        mixed = F.scaled_dot_product_attention(*(heads(layer, y) for layer in (self.query, self.key, self.value)))
        return x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Cache(nn.Module):
    """A key cache written by index_copy, as decoders are commonly written."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(6)
        self.key = nn.Linear(8, 8)

    def forward(self, cache: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        new = self.key(cache[:, :1])
        return torch.index_copy(cache, 1, position, new).relu() * 2


class Counter(nn.Module):
    """A sum over all runs, read before and after this run's part is added."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.ones(3, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before, half = self.total.sigmoid(), self.total[1:] + 0
        self.total.add_(x)
        return self.total * 2 + before, half


class Decoder(nn.Module):
    """One layer of a decoder: keys and values of all steps so far are kept in buffers of its own."""

    def __init__(self, width: int = 16, heads: int = 4, groups: int = 2, capacity: int = 12) -> None:
        super().__init__()
        import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401 - registers llama

        torch.manual_seed(7)
        self.depth = width // heads
        self.query, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.key, self.value = nn.Linear(width, groups * self.depth), nn.Linear(width, groups * self.depth)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, capacity, groups, self.depth))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        start = position[0].item()
        torch._check(start >= 0)
        torch._check(start + x.shape[1] <= self.keys.shape[1])
        q, k, v = (layer(x).view(1, x.shape[1], -1, self.depth) for layer in (self.query, self.key, self.value))
        torch.ops.llama.update_cache(k, self.keys, start)
        torch.ops.llama.update_cache(v, self.values, start)
        mixed = torch.ops.llama.custom_sdpa(q, self.keys, self.values, start, None, 0.0, True)
        return x + self.out(mixed.reshape(x.shape))


class Upscale(nn.Module):
    """Convolution, nearest upsampling, convolution."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.before, self.after = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(F.interpolate(F.relu(self.before(x)), scale_factor=2.0))


class Wide(nn.Module):
    """Two layers whose weights, of 5 MB each, are longer than the chunks in which files are kept."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(12)
        self.first, self.second = nn.Linear(1024, 1200), nn.Linear(1200, 1024)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu())


def dynamic_attention() -> SmallProgram:
    length = torch.export.Dim("length", min=2, max=48)
    others = tuple((randn(1, n, 32, seed=n),) for n in (2, 48, 3, 17, 31))
    return SmallProgram(Attention().eval(), (randn(1, 16, 32),), ({1: length},), others)


def decoder(*lengths: int, dynamic: bool) -> SmallProgram:
    """Steps of these many tokens, each after the ones before."""
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    first, *others = [(randn(1, n, 16, seed=at), torch.tensor([at])) for n, at in zip(lengths, starts, strict=True)]
    shapes = ({1: torch.export.Dim("length", min=1, max=6)}, None) if dynamic else None
    return SmallProgram(Decoder().eval(), first, shapes, tuple(others))


def dynamic_upscale() -> SmallProgram:
    height, width = (torch.export.Dim(name, min=4, max=24) for name in ("height", "width"))
    sizes = ((4, 4), (24, 24), (5, 9), (16, 7), (12, 23))
    others = tuple((randn(1, 3, h, w, seed=h * w),) for h, w in sizes)
    return SmallProgram(Upscale().eval(), (randn(1, 3, 12, 12),), ({2: height, 3: width},), others)


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
    "dynamic_attention": dynamic_attention,
    "dynamic_upscale": dynamic_upscale,
    "plain_attention": lambda: SmallProgram(Attention().eval(), (randn(1, 6, 32),), plain=True),
    "plain_cache": lambda: SmallProgram(Cache().eval(), (randn(1, 4, 8), torch.tensor([2])), plain=True),
    "counter": lambda: SmallProgram(
        Counter().eval(), (randn(3, 4),), others=tuple((randn(3, 4, seed=i),) for i in range(1, 4))
    ),
    "decoder": lambda: decoder(1, 1, 1, 1, dynamic=False),
    "dynamic_decoder": lambda: decoder(3, 1, 1, 5, 2, dynamic=True),
    "wide": lambda: SmallProgram(Wide().eval(), (torch.arange(1024.0).sin()[None],)),
    "convolutions": lambda: SmallProgram(ConvNet().eval(), (randn(1, 4, 14, 18),)),
}
