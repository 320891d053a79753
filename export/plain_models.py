"""Models as others export them: architectures whose programs are part GPU, part CPU.

The sizes are small enough for a software adapter; the shape of each network is the real one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from .small_programs import SmallProgram, randn


class Block(nn.Module):
    """A transformer block: attention over fused q, k and v, then a perceptron, each with its residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.before(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.between(x))))


class VisionTransformer(nn.Module):
    """ViT-tiny/16 (Dosovitskiy et al., 2021; Touvron et al., 2021): 12 blocks of width 192, 3 heads."""

    def __init__(self, size: int = 224, width: int = 192, depth: int = 12, heads: int = 3) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.first = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (size // 16) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class InvertedResidual(nn.Module):
    """MobileNetV2's block (Sandler et al., 2018): widen, depthwise, narrow."""

    def __init__(self, inputs: int, outputs: int, stride: int, widen: int) -> None:
        super().__init__()
        inner = inputs * widen
        layers = [nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU6()] if widen > 1 else []
        layers += [nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.ReLU6()]
        self.layers = nn.Sequential(*layers, nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.residual else self.layers(x)


#: MobileNetV2's stages: how much to widen, channels, blocks, stride of the first.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet_features() -> nn.Sequential:
    """MobileNetV2's layers before its classifier, [N, 3, H, W] to [N, 1280, H/32, W/32]."""
    layers: list[nn.Module] = [nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6())]
    channels = 32
    for widen, outputs, blocks, stride in STAGES:
        for i in range(blocks):
            layers.append(InvertedResidual(channels, outputs, stride if i == 0 else 1, widen))
            channels = outputs
    layers.append(nn.Sequential(nn.Conv2d(channels, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()))
    return nn.Sequential(*layers)


class HalfInstanceNorm(nn.Module):
    """MODNet's IBNorm: batch norm for half of the channels, instance norm for the others."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.half = channels // 2
        self.batch, self.instance = nn.BatchNorm2d(self.half), nn.InstanceNorm2d(channels - self.half)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.batch(x[:, : self.half].contiguous()), self.instance(x[:, self.half :].contiguous())
        return torch.cat(parts, 1)


def normed(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2), HalfInstanceNorm(outputs), nn.ReLU())


class Matting(nn.Module):
    """After MODNet (Ke et al., 2022): low-resolution, high-resolution and fusion branches over MobileNetV2."""

    def __init__(self) -> None:
        super().__init__()
        layers = mobilenet_features()
        self.stages = nn.ModuleList([layers[0:2], layers[2:4], layers[4:7], layers[7:14], layers[14:19]])
        squeeze = (nn.Linear(1280, 320, bias=False), nn.ReLU(), nn.Linear(320, 1280, bias=False), nn.Sigmoid())
        self.squeeze = nn.Sequential(*squeeze)
        self.low16, self.low8 = normed(1280, 96, 5), normed(96, 32, 5)
        self.fine2, self.fine = normed(16, 32, 1), nn.Sequential(normed(35, 32, 3, 2), normed(32, 32, 3))
        self.joined = nn.Sequential(normed(64, 64, 3), normed(64, 32, 3))
        self.last = nn.Sequential(normed(35, 32, 3), nn.Conv2d(32, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def scaled(y: torch.Tensor, factor: float) -> torch.Tensor:
            return F.interpolate(y, scale_factor=factor, mode="bilinear", align_corners=False)

        features, y = [], x
        for stage in self.stages:
            y = stage(y)
            features.append(y)
        weights = self.squeeze(F.adaptive_avg_pool2d(y, 1).flatten(1))
        low = self.low8(scaled(self.low16(scaled(y * weights[:, :, None, None].expand_as(y), 2)), 2))
        fine = self.fine(torch.cat([scaled(x, 0.5), self.fine2(features[0])], 1))
        joined = self.joined(torch.cat([fine, scaled(low, 2)], 1))
        return torch.sigmoid(self.last(torch.cat([scaled(joined, 4), x], 1)))


class PromptedMasks(nn.Module):
    """SAM2's prompt encoder and mask decoder, as transformers has them, for pictures of 256 by 256."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import Sam2Config, Sam2Model

        stages = {"blocks_per_stage": [1, 1, 1, 1], "image_size": [256, 256], "global_attention_blocks": [3]}
        vision = {"backbone_config": {"model_type": "sam2_hiera_det_model", **stages}}
        vision["backbone_feature_sizes"] = [[64, 64], [32, 32], [16, 16]]
        model = Sam2Model(Sam2Config(vision_config=vision, prompt_encoder_config={"image_size": 256})).eval()
        self.prompts, self.decoder = model.prompt_encoder, model.mask_decoder
        with torch.no_grad():
            self.register_buffer("positions", model.get_image_wide_positional_embeddings())

    def forward(
        self, fine: torch.Tensor, middle: torch.Tensor, coarse: torch.Tensor, points: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        sparse, dense = self.prompts(points, labels, None, None)
        masks, scores, _, present = self.decoder(
            image_embeddings=coarse,
            image_positional_embeddings=self.positions,
            sparse_prompt_embeddings=sparse,
            dense_prompt_embeddings=dense,
            multimask_output=True,
            high_resolution_features=[fine, middle],
        )
        return masks, scores, present


class CachedDecoder(nn.Module):
    """A Bart decoder step, as Florence-2 has it: `index_copy_` writes keys and values to buffers of the module."""

    def __init__(self, width: int = 48, heads: int = 4, layers: int = 2, capacity: int = 8, words: int = 90) -> None:
        super().__init__()
        from transformers import BartConfig
        from transformers.models.bart.modeling_bart import BartDecoder

        sizes = {"d_model": width, "decoder_layers": layers, "decoder_attention_heads": heads}
        config = BartConfig(vocab_size=words, decoder_ffn_dim=4 * width, max_position_embeddings=32, **sizes)
        self.decoder, self.heads = BartDecoder(config).eval(), heads
        self.head = nn.Linear(width, words, bias=False)
        for i in range(layers):
            for name in ("keys", "values"):
                self.register_buffer(f"{name}{i}", torch.zeros(1, heads, capacity, width // heads))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(1, x.shape[1], self.heads, -1).transpose(1, 2)

    def joined(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2).reshape(1, x.shape[2], -1)

    def forward(
        self, token: torch.Tensor, position: torch.Tensor, mask: torch.Tensor, encoded: torch.Tensor
    ) -> torch.Tensor:
        d = self.decoder
        x = d.embed_tokens(token) + F.embedding(position + 2, d.embed_positions.weight)
        x = d.layernorm_embedding(x)
        for i, layer in enumerate(d.layers):
            own, cross = layer.self_attn, layer.encoder_attn
            keys, values = getattr(self, f"keys{i}"), getattr(self, f"values{i}")
            keys.index_copy_(2, position, self.split(own.k_proj(x)))
            values.index_copy_(2, position, self.split(own.v_proj(x)))
            y = F.scaled_dot_product_attention(self.split(own.q_proj(x)), keys, values, attn_mask=mask)
            x = layer.self_attn_layer_norm(x + own.out_proj(self.joined(y)))
            key, value = self.split(cross.k_proj(encoded)), self.split(cross.v_proj(encoded))
            y = F.scaled_dot_product_attention(self.split(cross.q_proj(x)), key, value)
            x = layer.encoder_attn_layer_norm(x + cross.out_proj(self.joined(y)))
            x = layer.final_layer_norm(x + layer.fc2(F.gelu(layer.fc1(x))))
        return self.head(x)


class Qwen(nn.Module):
    """Qwen3's shape: grouped heads, normed queries and keys, rotary positions, an embedding shared with the head."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import Qwen3Config, Qwen3ForCausalLM

        sizes = {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 2, "head_dim": 16}
        heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
        self.model = Qwen3ForCausalLM(Qwen3Config(vocab_size=300, use_cache=False, **sizes, **heads)).eval()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=tokens, use_cache=False).logits


class Window(nn.Module):
    """Attention to a dynamic number of tokens, with positions from a row on that is read from a tensor."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.register_buffer("positions", torch.randn(64, width))
        self.block = Block(width, 4)

    def forward(self, x: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        row = start.prod().item()
        torch._check(row >= 0)
        torch._check(row + x.shape[1] <= 64)
        return self.block(x + F.embedding(torch.arange(row, row + x.shape[1]), self.positions))


def spread_norms(module: nn.Module, *inputs: torch.Tensor) -> nn.Module:
    """Set batch norms to what they see on these inputs: with the first ones outputs all but vanish."""
    norms = [m for m in module.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    with torch.no_grad():
        module(*inputs)
    return module.eval()


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(8)
    return make().eval()


def vit_tiny() -> SmallProgram:
    return SmallProgram(seeded(VisionTransformer), (randn(1, 3, 224, 224),), plain=True)


def sam2_decoder() -> SmallProgram:
    features = (randn(1, 32, 64, 64), randn(1, 64, 32, 32, seed=1), randn(1, 256, 16, 16, seed=2))
    prompts = (torch.tensor([[[[70.0, 91.0], [200.0, 30.0]]]]), torch.ones(1, 1, 2, dtype=torch.int32))
    return SmallProgram(seeded(PromptedMasks), (*features, *prompts), plain=True)


def matting() -> SmallProgram:
    calibrated = spread_norms(seeded(Matting), randn(4, 3, 64, 64, seed=3))
    return SmallProgram(calibrated, (randn(1, 3, 64, 64),), plain=True)


def cached_decoder() -> SmallProgram:
    encoded, steps = randn(1, 9, 48, seed=5), []
    for i, token in enumerate((2, 17, 60, 5)):
        mask = torch.where(torch.arange(8) <= i, 0.0, -1e9).view(1, 1, 1, 8)
        steps.append((torch.tensor([[token]]), torch.tensor([i]), mask, encoded))
    return SmallProgram(seeded(CachedDecoder), steps[0], others=tuple(steps[1:]), plain=True)


def qwen3() -> SmallProgram:
    tokens = torch.randint(0, 300, (1, 12), generator=torch.Generator().manual_seed(6))
    return SmallProgram(seeded(Qwen), (tokens,), on_cpu=("aten.embedding.default",))


def window() -> SmallProgram:
    length = torch.export.Dim("length", min=2, max=24)
    runs = tuple((randn(1, n, 32, seed=n), torch.tensor([at])) for n, at in ((2, 0), (24, 40), (7, 11)))
    return SmallProgram(seeded(Window), (randn(1, 10, 32), torch.tensor([5])), ({1: length}, None), runs, plain=True)


PLAIN: dict[str, Callable[[], SmallProgram]] = {
    "vit_tiny": vit_tiny,
    "sam2_decoder": sam2_decoder,
    "matting": matting,
    "cached_decoder": cached_decoder,
    "qwen3": qwen3,
    "window": window,
}
