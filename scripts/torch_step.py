#!/usr/bin/env python3
"""Time one training step of the reference decoder in PyTorch: the yardstick for Headcount's speed.

The model is a decoder of crates/model with key_bias = true: token + learned position embeddings, pre-norm blocks of causal
attention and an MLP of width 4*d_model with exact (erf) GELU, final norm, untied output layer, cross-entropy over
all positions, fused AdamW. A step is: forward, backward, optimiser step, gradients cleared; the loss is read each step.

    python torch_step.py --d-model 64 --layers 2 --heads 8 --batch 32 --seq 64 --vocab 64 --mode sdpa --threads 1

Needs: pip install torch numpy (CPU use only). Prints one JSON line: median milliseconds a step, tokens a second.
Modes: naive (scores materialised), sdpa (fused attention), compile (sdpa under torch.compile).
Compare in one run on one machine, alternating the two programs, with the same number of threads.
"""
import argparse, json, math, statistics, time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, heads, mode):
        super().__init__()
        self.heads, self.mode = heads, mode
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, length, d = x.shape
        q, k, v = (z.view(b, length, self.heads, d // self.heads).transpose(1, 2)
                   for z in self.qkv(self.norm1(x)).split(d, dim=2))
        if self.mode == "naive":
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            score = (q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)).masked_fill(future, float("-inf"))
            y = torch.softmax(score, dim=-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, length, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.token, self.position = nn.Embedding(a.vocab, a.d_model), nn.Embedding(a.seq, a.d_model)
        self.blocks = nn.ModuleList(Block(a.d_model, a.heads, a.mode) for _ in range(a.layers))
        self.norm, self.logits = nn.LayerNorm(a.d_model), nn.Linear(a.d_model, a.vocab)

    def forward(self, x):
        h = self.token(x) + self.position(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.logits(self.norm(h))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in dict(d_model=64, layers=2, heads=8, batch=32, seq=64, vocab=64, steps=40, threads=1).items():
        p.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    p.add_argument("--mode", choices=["naive", "sdpa", "compile"], default="sdpa")
    a = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(a.threads)
    model = Decoder(a)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loss_of = lambda x: F.cross_entropy(model(x).view(-1, a.vocab), x.view(-1))
    if a.mode == "compile":
        loss_of = torch.compile(loss_of)
    seconds = []
    for step in range(a.steps):
        start = time.perf_counter()
        loss = loss_of(torch.randint(0, a.vocab, (a.batch, a.seq)))
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        loss.item()
        if step >= a.steps // 4:
            seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    print(json.dumps(dict(program="torch " + torch.__version__, **vars(a), ms_per_step=round(median * 1e3, 2),
                          tokens_per_s=round(a.batch * a.seq / median))))


if __name__ == "__main__":
    main()
