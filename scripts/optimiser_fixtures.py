#!/usr/bin/env python3
"""Ten optimiser steps of a whole small decoder in PyTorch (double precision): AdamW, clipping of the global norm, warmup
and cosine. Writes crates/trainer/tests/fixtures/optimiser.json, which crates/trainer/tests/it/optimiser.rs compares with.

Needs torch (2.x); run from anywhere: python3 scripts/optimiser_fixtures.py
Linear layers are x @ W + b with W [in, out], as in the Rust model. Weights, tokens and targets follow formulas that the
test repeats, so that the file holds results alone.
"""

import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F

D, HEADS, LAYERS, FF, VOCAB, OUTPUTS, LENGTH, BATCH = 8, 2, 2, 16, 6, 5, 7, 3
STEPS, WARMUP, LR, MIN_LR, DECAY, CLIP = 10, 4, 2e-2, 1e-3, 0.1, 1.5
BETAS, EPS = (0.9, 0.98), 1e-8
IGNORE = -100


def shapes():
    yield "token.weight", [VOCAB, D]
    yield "position.weight", [LENGTH, D]
    for i in range(LAYERS):
        block = f"blocks.{i}"
        for norm in ("norm1", "norm2"):
            yield f"{block}.{norm}.gamma", [D]
            yield f"{block}.{norm}.beta", [D]
        for name in ("query", "key", "value", "output"):
            yield f"{block}.attention.{name}.weight", [D, D]
            if name != "key":  # the softmax cancels a bias there: its gradient is rounding alone
                yield f"{block}.attention.{name}.bias", [D]
        yield f"{block}.mlp.up.weight", [D, FF]
        yield f"{block}.mlp.up.bias", [FF]
        yield f"{block}.mlp.down.weight", [FF, D]
        yield f"{block}.mlp.down.bias", [D]
    yield "norm.gamma", [D]
    yield "norm.beta", [D]
    yield "logits.weight", [D, OUTPUTS]
    yield "logits.bias", [OUTPUTS]


def initial():
    parameters = {}
    for k, (path, shape) in enumerate(sorted(shapes())):
        wave = [math.sin(0.7 * i + k) for i in range(math.prod(shape))]
        values = [1 + 0.1 * x if path.endswith("gamma") else 0.4 * x for x in wave]
        tensor = torch.tensor(values, dtype=torch.float32).double().reshape(shape)
        parameters[path] = tensor.requires_grad_()
    return parameters


def batch(step):
    positions = range(BATCH * LENGTH)
    tokens = [(7 * i + 3 * step + i * i) % VOCAB for i in positions]
    targets = [IGNORE if i % 4 == 1 else (5 * i + step + i * i // 3) % OUTPUTS for i in positions]
    return torch.tensor(tokens).reshape(BATCH, LENGTH), torch.tensor(targets)


def forward(p, tokens):
    def linear(x, path):
        y = x @ p[f"{path}.weight"]
        return y + p[f"{path}.bias"] if f"{path}.bias" in p else y

    def norm(x, path):
        return F.layer_norm(x, [D], p[f"{path}.gamma"], p[f"{path}.beta"], 1e-5)

    x = p["token.weight"][tokens] + p["position.weight"]
    for i in range(LAYERS):
        block = f"blocks.{i}"
        y = norm(x, f"{block}.norm1")
        q, k, v = (
            linear(y, f"{block}.attention.{name}").reshape(BATCH, LENGTH, HEADS, D // HEADS).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(BATCH, LENGTH, D)
        x = x + linear(y, f"{block}.attention.output")
        y = F.gelu(linear(norm(x, f"{block}.norm2"), f"{block}.mlp.up"))
        x = x + linear(y, f"{block}.mlp.down")
    return linear(norm(x, "norm"), "logits").reshape(BATCH * LENGTH, OUTPUTS)


def main():
    parameters = initial()
    optimiser = torch.optim.AdamW(parameters.values(), lr=LR, betas=BETAS, eps=EPS, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimiser,
        [
            torch.optim.lr_scheduler.LinearLR(optimiser, start_factor=1 / WARMUP, total_iters=WARMUP - 1),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=STEPS - WARMUP + 1, eta_min=MIN_LR),
        ],
        milestones=[WARMUP - 1],
    )
    steps = []
    for step in range(STEPS):
        tokens, targets = batch(step)
        loss = F.cross_entropy(forward(parameters, tokens), targets, ignore_index=IGNORE)
        optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters.values(), CLIP)
        steps.append({"loss": loss.item(), "norm": norm.item(), "lr": optimiser.param_groups[0]["lr"]})
        optimiser.step()
        schedule.step()
    rounded = {path: [round(x, 7) for x in tensor.flatten().tolist()] for path, tensor in sorted(parameters.items())}
    fixture = {"torch": torch.__version__.split("+")[0], "steps": steps, "parameters": rounded}
    path = Path(__file__).parent.parent / "crates/trainer/tests/fixtures/optimiser.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(fixture, indent=1).replace(",\n   ", ", ").replace("[\n   ", "[").replace("\n  ]", "]") + "\n")
    print(f"{path}: {path.stat().st_size} bytes; losses {[round(s['loss'], 4) for s in steps]}")


if __name__ == "__main__":
    main()
