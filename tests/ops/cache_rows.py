"""Rows of operators that write their arguments: key-value caches, attention over them, optimizer steps.

Goldens are PyTorch's own attention over the whole context, in fp64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .cases import Case, integers, positive, randn
from .write_program import Picked

ATTENTION, UPDATE = "sdpa_with_kv_cache.default", "update_cache.default"


def write_rows(value: torch.Tensor, cache: torch.Tensor, position: int) -> list[Any]:
    """update_cache: what it returns is nobody's to read."""
    cache[:, position : position + value.shape[1]] = value
    return [None]


def attend(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    position: int,
    mask: torch.Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
) -> list[Any]:
    """custom_sdpa: q [B, S, H, D] over the caches' first position + S rows."""
    rows = q.shape[1]
    context = position + rows
    if mask is not None:
        mask = mask[..., :context]
    elif causal:
        mask = torch.full((rows, context), float("-inf"), dtype=q.dtype).triu(position + 1)
    k, v = (t[:, :context].transpose(1, 2).to(q.dtype) for t in (keys, values))
    shared = q.shape[2] // keys.shape[2]
    k, v = (t.repeat_interleave(shared, dim=1) for t in (k, v))
    out = torch.nn.functional.scaled_dot_product_attention(q.transpose(1, 2), k, v, mask, scale=scale)
    return [out.transpose(1, 2).contiguous()]


def attend_and_write(
    q: Any, k: Any, v: Any, keys: Any, values: Any, position: int, length: int, *rest: Any
) -> list[Any]:
    """sdpa_with_kv_cache: both caches written, then attention."""
    write_rows(k, keys, position)
    write_rows(v, values, position)
    return attend(q, keys, values, position, *rest)


def position(value: int) -> list[Any]:
    """A position as a number of the graph, and as an element that a run reads."""
    return [value, Picked(np.array([7, value, 9], np.int64), 1)]


def updates() -> list[Case]:
    rows = []
    for rows_in, heads, depth, capacity, at in ((2, 2, 4, 8, 0), (3, 1, 5, 16, 10), (1, 4, 3, 5, 4), (8, 2, 4, 8, 0)):
        for start in position(at):
            args = (randn(1, rows_in, heads, depth), randn(1, capacity, heads, depth, seed=1), start)
            name = f"{rows_in}x{heads}x{depth} into {capacity} at {start}"
            rows.append(Case(name, UPDATE, args, written=(1,), reference=write_rows))
    args = (randn(2, 3, 2, 4), randn(2, 8, 2, 4, seed=1), 3)
    rows.append(Case("batch of 2", "llama.update_cache.default", args, written=(1,), reference=write_rows))
    return rows


def attention() -> list[Case]:
    rows = []
    for length, heads, groups, depth, capacity, at in (
        (4, 6, 2, 8, 16, 0),
        (3, 4, 4, 16, 8, 0),
        (2, 6, 2, 8, 16, 2),
        (1, 8, 4, 6, 130, 129),
        (5, 2, 1, 130, 70, 64),
    ):
        for start in position(at):
            q = randn(1, length, heads, depth)
            k, v = randn(1, length, groups, depth, seed=1), randn(1, length, groups, depth, seed=2)
            caches = (randn(1, capacity, groups, depth, seed=3), randn(1, capacity, groups, depth, seed=4))
            name = f"{length} rows, {heads} heads on {groups}, depth {depth}, {capacity} at {start}"
            args = (q, k, v, *caches, start, length, None, 0.0, True, None)
            rows.append(Case(name, ATTENTION, args, written=(3, 4), reference=attend_and_write))
    q, caches = randn(2, 3, 4, 5), (randn(2, 9, 2, 5, seed=3), randn(2, 9, 2, 5, seed=4))
    mask = np.where(integers(3, 9, low=0, high=4) == 0, -np.inf, randn(3, 9)).astype(np.float32)
    mask[:, 0] = 0
    for name, own, causal, scale in (
        ("causal", None, True, None),
        ("mask", mask, False, 0.5),
        ("all", None, False, 2.0),
    ):
        args = (q, *caches, 4, own, 0.0, causal, scale)
        rows.append(Case(name, "llama.custom_sdpa.default", args, reference=attend))
        rows.append(
            Case(name, "custom_sdpa.default", (q[:1], *(c[:1] for c in caches), *rows[-1].args[3:]), reference=attend)
        )
    large = (q * np.float32(60), *caches, 4, None, 0.0, True, None)
    rows.append(Case("large scores", "llama.custom_sdpa.default", large, reference=attend))
    return rows


def optimizer() -> list[Case]:
    rows = []
    for count, decay, step in ((1, 0.01, 1), (64, 0.01, 1), (67, 0.0, 1), (1000, 0.1, 10), (5, 0.01, 1000)):
        args = (randn(count), randn(count, seed=1) * np.float32(0.1), positive(count) * np.float32(0.01))
        rest = (1e-3, 0.9, 0.999, 1e-8, decay, 1 - 0.9**step, 1 - 0.999**step)
        name = f"{count} weights, decay {decay}, step {step}"
        rows.append(Case(name, "et_vk.adamw_step.default", (*args, randn(count, seed=3), *rest), written=(0, 1, 2)))
    return rows


ROWS = [row for family in (updates, attention, optimizer) for row in family()]
