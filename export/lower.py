"""Lower a module to a `.pte` that runs whole on the GPU.

The recipe, each part there because without it the graph breaks into pieces:
    1. partitioner options that keep texture layouts, and with them layout copies, out;
    2. scaled_dot_product_attention as et_vk.sdpa (the stock decomposition leaves CPU kernels);
    3. constant propagation, without which constant subgraphs stop the export;
    4. module rewrites: InstanceNorm2d as GroupNorm (mean over dims keeps its dims by itself
       in this version of the exporter; see docs/adding-a-model.md for what a model must avoid);
    5. fusion patterns built once instead of twice an export (25 of 31 s of a small one).
"""

from __future__ import annotations

import contextlib
import copy
import logging
import math
import operator
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn

from py_runtime.graph import Graph, parse_delegate
from py_runtime.program import KernelCall, parse_program

Progress = Callable[[str, float], None]

PARTITIONER_OPTIONS = {"skip_tag_memory_metadata": True, "texture_limits": (2**31 - 1,) * 3}


@dataclass(frozen=True)
class Lowered:
    """A lowered program and what became of it.

    delegates: how many subgraphs the GPU runs; one is best. cpu_kernels: what is left for
    the CPU, by operator; none is best. operators: the GPU's, by how often.
    data: `.ptd` files by name, when constants were kept out of the program.
    """

    pte: bytes
    delegates: int
    cpu_kernels: dict[str, int]
    operators: dict[str, int]
    data: dict[str, bytes] = field(default_factory=dict)

    def summary(self) -> str:
        left = ", ".join(f"{op} ({n})" for op, n in self.cpu_kernels.items()) or "none"
        return (
            f"{len(self.pte):,} bytes, {self.delegates} delegate{'s' * (self.delegates != 1)}, "
            f"{sum(self.operators.values())} operators of {len(self.operators)} kinds; CPU kernels: {left}"
        )


def lower(
    module: nn.Module,
    example_inputs: tuple[torch.Tensor, ...],
    *,
    dynamic_shapes: Any = None,
    force_fp16: bool = False,
    plain: bool = False,
    on_cpu: Sequence[str] = (),
    shard_bytes: int | None = None,
    progress: Progress | None = None,
) -> Lowered:
    """Export and lower a module.

    force_fp16: constants and activations in f16; inputs and outputs stay f32. plain:
    export with executorch's defaults and nothing of the recipe, as others do. on_cpu:
    operators that are not for the GPU, as "aten.embedding.default". shard_bytes: keep weights
    out of the program, in `.ptd` files; the GPU's in ones of at most so many bytes. progress
    gets the name of each stage and its seconds when it is done.
    """
    from executorch.backends.webgpu.partitioner import WebGPUPartitioner
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
    from executorch.exir.dialects._ops import ops
    from executorch.exir.passes.constant_prop_pass import constant_prop_pass
    from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

    logging.getLogger().setLevel(logging.ERROR)
    cache_fusion_patterns()
    options: dict[str, Any] = {} if plain else dict(PARTITIONER_OPTIONS)
    if force_fp16:
        options["force_fp16"] = True
    if shard_bytes is not None:
        options["external_constants_max_data_bytes"] = shard_bytes
    stage = _Stages(progress)
    module = module if plain else prepare(module)
    with torch.no_grad(), contextlib.nullcontext() if plain else gpu_attention():
        exported = torch.export.export(module, example_inputs, dynamic_shapes=dynamic_shapes, strict=False)
    stage.done("export")
    kept: list[str] = []  # buffers whose first values go into the program
    if not plain:
        # which buffers change shows only without in-place operators; those that do are no constants
        functional = exported.run_decompositions({})
        if functional.graph_signature.buffers_to_mutate:
            # without it what a buffer becomes is an output that nobody takes; operators that
            # write caches themselves need none, and stop the exporter with it
            options["alias_buffer_mutations"] = not any("llama" in str(n.target) for n in exported.graph.nodes)
            kept = list(functional.graph_signature.buffers_to_mutate.values())
        exported = constant_prop_pass(functional if kept else exported)
        stage.done("constants")
    edge = to_edge_transform_and_lower(
        exported,
        partitioner=[WebGPUPartitioner(options, [operator.attrgetter(name)(ops.edge) for name in on_cpu])],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    stage.done("lower")
    passes = [InitializedMutableBufferPass([name.replace(".", "_") for name in kept])]
    program = edge.to_executorch(ExecutorchBackendConfig(passes=passes, external_constants=shard_bytes is not None))
    pte = bytes(program.buffer)
    stage.done("write")
    data = {f"{name}.ptd": bytes(shard) for name, shard in (program._tensor_data or {}).items()}
    return replace(describe(pte), data=data)


class _Stages:
    def __init__(self, progress: Progress | None) -> None:
        self.progress, self.start = progress, time.monotonic()

    def done(self, name: str) -> None:
        now = time.monotonic()
        if self.progress is not None:
            self.progress(name, now - self.start)
        self.start = now


def delegate_graphs(pte: bytes) -> list[Graph]:
    """The graphs of a program's delegates, read back with the runtime's own reader."""
    graphs = []
    for method in parse_program(pte, len(pte)).methods.values():
        for delegate in method.delegates:
            if delegate.inline is not None:
                graphs.append(parse_delegate(delegate.inline))
            else:
                assert delegate.region is not None
                start = delegate.region.offset
                graphs.append(parse_delegate(pte[start : start + delegate.region.size], start))
    return graphs


def describe(pte: bytes) -> Lowered:
    """What a program consists of."""
    methods = parse_program(pte, len(pte)).methods.values()
    cpu = Counter(s.operator for m in methods for chain in m.chains for s in chain if isinstance(s, KernelCall))
    graphs = delegate_graphs(pte)
    gpu = Counter(node.op for graph in graphs for node in graph.nodes)
    return Lowered(pte, len(graphs), dict(cpu), dict(gpu.most_common()))


def prepare(module: nn.Module) -> nn.Module:
    """A copy of the module in which what would break the graph is replaced by its equal."""
    module = copy.deepcopy(module).eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.InstanceNorm2d) and not child.track_running_stats:
                setattr(parent, name, instance_as_group_norm(child))
    return module


def instance_as_group_norm(norm: nn.InstanceNorm2d) -> nn.GroupNorm:
    """InstanceNorm2d(C) as GroupNorm(C, C), the same function under another name."""
    channels = norm.num_features
    group = nn.GroupNorm(channels, channels, eps=norm.eps, affine=norm.affine)
    if norm.affine:
        group.load_state_dict({"weight": norm.weight, "bias": norm.bias})
    return group.eval()


@contextlib.contextmanager
def gpu_attention() -> Iterator[None]:
    """Let F.scaled_dot_product_attention be traced as the delegate's own attention."""
    import executorch.backends.vulkan.custom_ops_lib  # noqa: F401 - registers et_vk

    def attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        if is_causal:
            rows, columns = query.shape[-2], key.shape[-2]
            allowed = torch.ones(rows, columns, dtype=torch.bool).tril()
            attn_mask = torch.zeros(rows, columns).masked_fill(~allowed, float("-inf"))
        elif attn_mask is not None and attn_mask.dtype == torch.bool:
            attn_mask = torch.where(attn_mask, 0.0, float("-inf"))
        if enable_gqa:
            repeats = query.shape[-3] // key.shape[-3]
            key, value = (t.repeat_interleave(repeats, dim=-3) for t in (key, value))
        return torch.ops.et_vk.sdpa.default(
            query, key, value, attn_mask, scale if scale is not None else 1 / math.sqrt(query.shape[-1])
        )

    with mock.patch.object(F, "scaled_dot_product_attention", attention):
        yield


def cache_fusion_patterns() -> None:
    """Build each fusion pattern's graphs once; the exporter asks for them twice an export."""
    from executorch.backends.vulkan.patterns.pattern_registry import fusable_patterns

    for entry in fusable_patterns.values():
        build = entry.get_graphs_fn
        if build is not None and not hasattr(build, "graphs"):
            entry.get_graphs_fn = _Cached(build)


class _Cached:
    """A function without arguments that runs once."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self.build, self.graphs = build, None

    def __call__(self) -> Any:
        if self.graphs is None:
            self.graphs = self.build()
        return self.graphs
