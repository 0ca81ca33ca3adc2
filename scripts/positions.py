"""Positions as crates/architecture/src/positions.rs describes them, in PyTorch; the other scripts ask here."""

import torch

TRAINED = ("learned",)  # kinds with a tensor position.weight

def angles(length, width):
    """[L, width/2]: position / 10000^(2i/width)."""
    return torch.arange(length)[:, None].double() / 10000 ** (torch.arange(0, width, 2).double() / width)


def add_positions(kind, x, trained):
    """x [B, L, D] with its positions added; trained gives position.weight."""
    length, width = x.shape[1:]
    if kind == "learned":
        return x + trained()[:length]
    if kind == "sinusoidal":
        angle = angles(length, width)
        return x + torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1).to(x.dtype)
    return x


def rotate(kind, x):
    """Queries or keys x [B, heads, L, K], column i turned with column i + K/2."""
    if kind != "rope":
        return x
    angle = angles(*x.shape[-2:])
    sin, cos = angle.sin().to(x.dtype), angle.cos().to(x.dtype)
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)
