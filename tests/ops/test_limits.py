"""What needs more than WebGPU's default limits is split by the runtime, not refused."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from export.lower import lower
from tests.site import Failure, RuntimePage

ROWS, WIDTH = 50_000, 1_024  # of f32: 205 MB, where a binding has 128 MiB


def test_an_embedding_larger_than_a_binding(plain_gpu_page: RuntimePage) -> None:
    table = nn.Embedding(ROWS, WIDTH)
    indices = torch.tensor([[0, 1, ROWS - 1], [32_767, 32_768, 12_345]])
    pte = lower(table.eval(), (indices,)).pte
    outputs = plain_gpu_page.run(plain_gpu_page.site.put("large.pte", pte), [indices.numpy()])
    plain_gpu_page.site.given.pop("large.pte")
    assert not isinstance(outputs, Failure), outputs
    np.testing.assert_array_equal(outputs[0], table(indices).detach().numpy())


def test_twenty_parts_and_five_parameters_have_rows() -> None:
    """They run with default limits as rows of `test_operator_on_gpu_routes`."""
    from .rows import ROWS as cases

    assert any(len(row.args[0]) == 20 for row in cases if row.op == "aten.cat.default")
    norm = "aten._native_batch_norm_legit_no_training.default"
    assert any(all(isinstance(arg, np.ndarray) for arg in row.args[:5]) for row in cases if row.op == norm)
