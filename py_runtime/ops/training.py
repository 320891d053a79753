"""Operators of training steps: cross entropy with its gradient, and a weight's gradient."""

from __future__ import annotations

from ..expression import literal
from ..kernels import Dispatch, linear_grid, read, write
from .generated import emit_compute
from .registry import Call, operator


@operator("et_vk.linear_dW.default")
def linear_weight_gradient(call: Call) -> None:
    """d_out [.., N] transposed times x [.., K]: [N, K]."""
    elem = call.lowering.elem
    n, k = call.tensor(0).shape[-1], call.tensor(1).shape[-1]
    rows = call.tensor(0).count // max(n, 1)
    body = (
        f"    let o = i / {k}u;\n    let c = i % {k}u;\n    var sum = 0.0;\n"
        f"    for (var row = 0u; row < {rows}u; row++) {{\n"
        f"        sum += f32(d_out[d_out_offset + row * {n}u + o]) * f32(x[x_offset + row * {k}u + c]);\n    }}\n"
        f"    return {elem(call.out)}(sum);\n"
    )
    d_out, x = call.tensor_id(0), call.tensor_id(1)
    emit_compute(call, body, (read("d_out", d_out, elem(d_out)), read("x", x, elem(x))))


@operator("et_vk.fused_ce.default")
def cross_entropy(call: Call) -> None:
    """logits [M, C], labels [M] (negative ones do not count), their number; outputs: loss [], its gradient [M, C]."""
    elem = call.lowering.elem
    rows, classes = call.tensor(0).shape
    logits, labels = call.tensor_id(0), call.tensor_id(1)
    bindings = (read("logits", logits, elem(logits)), read("labels", labels, elem(labels)))
    factor = literal(1 / call.number(2), "f32")
    log_sum = (
        f"fn logit(row: u32, c: u32) -> f32 {{\n    return f32(logits[logits_offset + row * {classes}u + c]);\n}}\n"
        f"fn log_sum(row: u32) -> f32 {{\n    var top = logit(row, 0u);\n"
        f"    for (var c = 1u; c < {classes}u; c++) {{\n        top = max(top, logit(row, c));\n    }}\n"
        "    var sum = 0.0;\n"
        f"    for (var c = 0u; c < {classes}u; c++) {{\n        sum += exp(logit(row, c) - top);\n    }}\n"
        "    return top + log(sum);\n}\n"
    )
    loss, gradient = call.node.outputs
    total = (
        f"    var sum = 0.0;\n    for (var row = 0u; row < {rows}u; row++) {{\n"
        "        let label = i32(labels[labels_offset + row]);\n"
        "        if (label >= 0) {\n            sum += log_sum(row) - logit(row, u32(label));\n        }\n    }\n"
        f"    return {elem(loss)}(sum * {factor});\n"
    )
    emit_compute(call, total, bindings, loss, functions=log_sum)
    each = (
        f"    let row = i / {classes}u;\n    let c = i % {classes}u;\n"
        "    let label = i32(labels[labels_offset + row]);\n"
        "    let hit = select(0.0, 1.0, label == i32(c));\n"
        "    let slope = exp(logit(row, c) - log_sum(row)) - hit;\n"
        f"    return {elem(gradient)}(select(0.0, slope * {factor}, label >= 0));\n"
    )
    emit_compute(call, each, bindings, gradient, functions=log_sum)


@operator("et_vk.adamw_step.default")
def adamw_step(call: Call) -> None:
    """One step of AdamW in place (Loshchilov and Hutter, 2019): parameter, both moments, then the gradient.

    Arguments from 4 on: learning rate, beta1, beta2, eps, weight decay, and the two bias corrections 1 - betaᵗ.
    """
    elem = call.lowering.elem
    names = ("LR", "BETA1", "BETA2", "EPS", "DECAY", "CORRECTION1", "CORRECTION2")
    count = call.tensor(0).count
    written = zip(("param", "m", "v"), call.node.outputs, strict=False)
    call.emit(
        Dispatch(
            op=call.op,
            route="adamw_step",
            shader="adamw_step.wgsl",
            bindings=(
                read("grad", call.tensor_id(3), elem(call.tensor_id(3))),
                *(write(name, tensor, elem(tensor)) for name, tensor in written),
            ),
            grid=linear_grid(count, 64, call.target),
            constants={
                "count": count,
                **{name: call.number(4 + i) for i, name in enumerate(names)},
                "REST1": 1 - call.number(5),
                "REST2": 1 - call.number(6),
            },
            code=f"alias elem = {elem(call.node.outputs[0])};\n",
        )
    )
