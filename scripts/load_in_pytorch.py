#!/usr/bin/env python3
"""Load an exported run in PyTorch and check that it gives the same logits.

    trainer export runs/h8-seed0-1a2b3c4d --output h8.safetensors
    python scripts/load_in_pytorch.py h8.safetensors

Needs: pip install torch numpy safetensors. Headcount multiplies x @ W + b with W [d_in, d_out]: nn.Linear holds the
transpose. Columns h*K .. (h+1)*K of the query projection belong to head h. The file holds the weights by path, the config
as TOML in its metadata, and an example: tokens (as f32), what an encoder reads where there is one, and the logits that
Headcount computed for them.
"""
import math, sys, tomllib

import torch
import torch.nn.functional as F
from safetensors import safe_open

from positions import add_positions, rotate


class Decoder:
    def __init__(self, weights, config):
        self.w, self.model = weights, config["model"]

    def linear(self, path, x):
        y = x @ self.w[f"{path}.weight"]
        return y + self.w[f"{path}.bias"] if f"{path}.bias" in self.w else y

    def norm(self, path, x):
        if f"{path}.gamma" not in self.w:
            return x
        return F.layer_norm(x, x.shape[-1:], self.w[f"{path}.gamma"], self.w[f"{path}.beta"], 1e-5)

    def attention(self, path, x, memory=None, forbidden=None):
        """x reads itself, or memory (nothing is rotated then); forbidden broadcasts to [B, H, Lq, Lk]."""
        read = x if memory is None else memory
        heads = self.model["heads"]
        kv_heads = self.model.get("kv_heads", heads)
        width = self.model.get("d_head", x.shape[-1] // heads)
        split = lambda name, z, h: self.linear(f"{path}.{name}", z).unflatten(2, (h, width)).transpose(1, 2)
        q, k, v = split("query", x, heads), split("key", read, kv_heads), split("value", read, kv_heads)
        if memory is None:
            q, k = (rotate(self.model["positions"], z) for z in (q, k))
        k, v = (z.repeat_interleave(heads // kv_heads, dim=1) for z in (k, v))
        scores = q @ k.transpose(-2, -1) / (math.sqrt(width) if self.model["scale"] == "sqrt_d_head" else 1)
        if forbidden is not None:
            scores = scores.masked_fill(forbidden, -math.inf)
        context = scores.softmax(dim=-1) @ v
        merged = context.mean(dim=1) if self.model["merge"] == "mean" else context.transpose(1, 2).flatten(2)
        return self.linear(f"{path}.output", merged)

    def stack(self, path, tokens, forbidden, memory=None, padding=None):
        """tokens [B, L] to the normed output [B, L, D] of the blocks under path."""
        x = self.w[f"{path}token.weight"][tokens]
        x = add_positions(self.model["positions"], x, lambda: self.w[f"{path}position.weight"])
        add = (lambda x, change: x + change) if self.model["residual"] else (lambda x, change: change)
        for i in range(self.model["layers"]):
            block = f"{path}blocks.{i}"
            x = add(x, self.attention(f"{block}.attention", self.norm(f"{block}.norm1", x), forbidden=forbidden))
            if memory is not None:
                z = self.norm(f"{block}.norm_cross", x)
                x = add(x, self.attention(f"{block}.cross_attention", z, memory, padding))
            if self.model["mlp"]:
                up = self.linear(f"{block}.mlp.up", self.norm(f"{block}.norm2", x))
                x = add(x, self.linear(f"{block}.mlp.down", F.gelu(up)))
        return self.norm(f"{path}norm", x)

    def __call__(self, tokens, source=None, padding=None):
        memory = None
        if source is not None:
            padding = padding[:, None, None, :]
            memory = self.stack("encoder.", source, padding)
        length = tokens.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1) if self.model["causal"] else None
        x = self.stack("", tokens, future, memory, padding)
        return x @ self.w["token.weight"].T if self.model["tied"] else self.linear("logits", x)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with safe_open(sys.argv[1], framework="pt") as file:
        if "config" not in (file.metadata() or {}):
            sys.exit(f"{sys.argv[1]} is no export: `trainer export RUN` makes one")
        config = tomllib.loads(file.metadata()["config"])
        weights = {name: file.get_tensor(name) for name in file.keys()}
    tokens, expected = weights.pop("example.tokens").long(), weights.pop("example.logits")
    source = [weights.pop(name) for name in ("example.source", "example.source_padding") if name in weights]
    source = [z.to(kind) for z, kind in zip(source, (torch.long, torch.bool))]
    with torch.no_grad():
        logits = Decoder(weights, config)(tokens, *source)
    difference = (logits - expected).abs().max().item()
    parameters = sum(tensor.numel() for tensor in weights.values())
    print(f"{config['name']}: {parameters} parameters, logits {list(logits.shape)}, largest difference {difference:.2e}")
    if not difference < 1e-4:
        sys.exit("the logits differ")


if __name__ == "__main__":
    main()
