#!/usr/bin/env python3
"""Load an exported run in PyTorch and check that it gives the same logits.

    trainer export runs/h8-seed0-1a2b3c4d --output h8.safetensors
    python scripts/load_in_pytorch.py h8.safetensors

Needs: pip install torch numpy safetensors. Headcount multiplies x @ W + b with W [d_in, d_out]: nn.Linear holds the
transpose. Columns h*K .. (h+1)*K of the query projection belong to head h. The file holds the weights by path, the config
as TOML in its metadata, and an example: tokens (as f32) or numbers, which of them are padding, what an encoder reads where there
is one, and the logits that Headcount computed for them.
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
        if f"{path}.factor" in self.w:
            return F.normalize(x, dim=-1) * self.w[f"{path}.factor"]
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

    def embedded(self, path, read):
        """Tokens [B, L] or numbers [B, L, F] to [B, L, D]; the first position is the read-out's, where there is one."""
        if path == "" and "readout" in self.w:
            first = self.w["readout"].expand(read.shape[0], 1, -1)
            return torch.cat([first, self.plain(path, read[:, 1:])], dim=1)
        return self.plain(path, read)

    def plain(self, path, read):
        if not read.is_floating_point():
            return self.w[f"{path}token.weight"][read]
        if "input.up.weight" in self.w:
            return self.linear("input.down", F.relu(self.linear("input.up", read)))
        return self.linear("input.linear", read) if "input.linear.weight" in self.w else read

    def stack(self, path, read, forbidden, memory=None, padding=None):
        """What is read [B, L] to the normed output [B, L, D] of the blocks under path."""
        x = self.embedded(path, read)
        x = add_positions(self.model["positions"], x, lambda: self.w[f"{path}position.weight"])
        add = (lambda x, change: x + change) if self.model["residual"] else (lambda x, change: change)
        # Norms stand before the sublayers, or after the sums.
        before, after = self.norm, lambda path, x: x
        if self.model["norm"] == "post":
            before, after = after, before
        activation = F.relu if self.model.get("activation") == "relu" else F.gelu
        for i in range(self.model["layers"]):
            block = f"{path}blocks.{i}"
            x = add(x, self.attention(f"{block}.attention", before(f"{block}.norm1", x), forbidden=forbidden))
            x = after(f"{block}.norm1", x)
            if memory is not None:
                z = before(f"{block}.norm_cross", x)
                x = after(f"{block}.norm_cross", add(x, self.attention(f"{block}.cross_attention", z, memory, padding)))
            if self.model["mlp"]:
                up = self.linear(f"{block}.mlp.up", before(f"{block}.norm2", x))
                x = after(f"{block}.norm2", add(x, self.linear(f"{block}.mlp.down", activation(up))))
        return self.norm(f"{path}norm", x)

    def __call__(self, read, source=None, source_padding=None, padding=None):
        """Tokens [B, L] or numbers [B, L, F] to what is said at each position, [B, L, outputs]."""
        memory = None
        if source is not None:
            source_padding = source_padding[:, None, None, :]
            memory = self.stack("encoder.", source, source_padding)
        length = read.shape[1]
        forbidden = torch.zeros(1, 1, length, length, dtype=torch.bool)
        if self.model["causal"]:
            forbidden = forbidden | torch.ones(length, length, dtype=torch.bool).triu(1)
        if padding is not None:
            forbidden = forbidden | padding[:, None, None, :]
        x = self.stack("", read, forbidden, memory, source_padding)
        if self.model["tied"]:
            return x @ self.w["token.weight"].T
        return self.linear("logits", x) if "logits.weight" in self.w else x


def inputs(tensors, prefix):
    """What a model is called with, from the tensors under prefix."""
    kinds = {"tokens": torch.long, "numbers": None, "source": torch.long, "source_padding": torch.bool, "padding": torch.bool}
    found = {name: tensors[f"{prefix}.{name}"] for name in kinds if f"{prefix}.{name}" in tensors}
    found = {name: tensor if kinds[name] is None else tensor.to(kinds[name]) for name, tensor in found.items()}
    read = found.pop("numbers") if "numbers" in found else found.pop("tokens")
    return read, found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with safe_open(sys.argv[1], framework="pt") as file:
        if "config" not in (file.metadata() or {}):
            sys.exit(f"{sys.argv[1]} is no export: `trainer export RUN` makes one")
        config = tomllib.loads(file.metadata()["config"])
        weights = {name: file.get_tensor(name) for name in file.keys()}
    expected = weights["example.logits"]
    read, others = inputs(weights, "example")
    weights = {name: z for name, z in weights.items() if not name.startswith(("example.", "optimiser.", "training."))}
    with torch.no_grad():
        logits = Decoder(weights, config)(read, **others)
    difference = (logits - expected).abs().max().item()
    parameters = sum(tensor.numel() for tensor in weights.values())
    print(f"{config['name']}: {parameters} parameters, logits {list(logits.shape)}, largest difference {difference:.2e}")
    if not difference < 1e-4:
        sys.exit("the logits differ")


if __name__ == "__main__":
    main()
