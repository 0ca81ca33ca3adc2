#!/usr/bin/env python3
"""Go on training from a run's checkpoint in PyTorch, on the same samples at the same learning rates, and compare.

    trainer --config configs/h8.toml --set train.steps=220 --set train.checkpoint_every=20 --set train.keep_checkpoints=20
    trainer export runs/h8-seed0-... --step 20 --training 200 --output h8.safetensors
    python scripts/train_in_pytorch.py h8.safetensors

Needs: pip install torch numpy safetensors. The file holds the weights and both moments at the checkpoint, and of each step after
it the samples, the learning rate, the loss before the update and the norm of the gradient before it was clipped. Here the same
steps are taken with torch.optim.AdamW and clip_grad_norm_: the largest relative differences are printed, and above 1e-4 the
script fails.
"""
import json, sys, tomllib

import torch
import torch.nn.functional as F
from safetensors import safe_open

from load_in_pytorch import Decoder, inputs

LARGEST = 1e-4


def loss_of(model, tensors, prefix):
    read, others = inputs(tensors, prefix)
    said = model(read, **others)
    if f"{prefix}.wanted" in tensors:
        scored = tensors[f"{prefix}.scored"].bool()
        return F.mse_loss(said[scored], tensors[f"{prefix}.wanted"][scored])
    return F.cross_entropy(said.flatten(0, 1), tensors[f"{prefix}.targets"].long().flatten(), ignore_index=-100)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with safe_open(sys.argv[1], framework="pt") as file:
        if "steps" not in (file.metadata() or {}):
            sys.exit(f"{sys.argv[1]} holds no training: `trainer export RUN --step N --training N` makes one that does")
        config, steps = tomllib.loads(file.metadata()["config"]), json.loads(file.metadata()["steps"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    others = ("example.", "optimiser.", "training.")
    weights = {name: z.requires_grad_(True) for name, z in tensors.items() if not name.startswith(others)}
    train = config["train"]
    optimiser = torch.optim.AdamW(
        weights.values(), lr=1.0, betas=(train["beta1"], train["beta2"]), eps=train["eps"], weight_decay=train["weight_decay"]
    )
    for name, parameter in weights.items():
        moments = (tensors[f"optimiser.{name}.{moment}_moment"].clone() for moment in ("first", "second"))
        step = torch.tensor(float(steps[0]["step"] - 1))
        optimiser.state[parameter] = dict(zip(("step", "exp_avg", "exp_avg_sq"), (step, *moments)))

    model, worst = Decoder(weights, config), {"loss": 0.0, "grad_norm": 0.0}
    for number, ours in enumerate(steps):
        optimiser.zero_grad()
        loss = loss_of(model, tensors, f"training.{number}")
        loss.backward()
        largest = train["clip_norm"] or float("inf")
        norm = torch.nn.utils.clip_grad_norm_(weights.values(), largest)
        for what, found in (("loss", loss.item()), ("grad_norm", norm.item())):
            worst[what] = max(worst[what], abs(found - ours[what]) / max(1.0, abs(ours[what])))
        optimiser.param_groups[0]["lr"] = ours["lr"]
        optimiser.step()
    first, last = steps[0]["step"], steps[-1]["step"]
    print(f"{config['name']}: steps {first} to {last}, loss {steps[0]['loss']:.4f} to {steps[-1]['loss']:.4f}; largest difference "
          f"of the loss {worst['loss']:.1e}, of the gradient's norm {worst['grad_norm']:.1e}")
    if not max(worst.values()) < LARGEST:
        sys.exit("the trajectories differ")


if __name__ == "__main__":
    main()
