"""Makes what crates/model/tests compares with: outputs, maps and gradients of PyTorch 2.15, computed in f64.

    python3 scripts/attention_fixtures.py        # writes crates/model/tests/fixtures/*.safetensors

Weights are laid out as in crates/model: a linear layer computes x @ W + b, so W is the transpose of PyTorch's.
In every mask True = forbidden (scaled_dot_product_attention means the opposite, nn.MultiheadAttention the same).
"""

import json
import math
import struct
from pathlib import Path

import torch
import torch.nn.functional as F

from positions import TRAINED, add_positions, rotate

FOLDER = Path(__file__).resolve().parent.parent / "crates/model/tests/fixtures"
B, LQ, LK, D = 2, 4, 5, 16  # self-attention has LQ keys, cross-attention LK


def save(name, tensors):
    """A safetensors file: length of the header, header, data. f64 becomes f32, bool stays."""
    header, data = {}, b""
    for key in sorted(tensors):
        tensor = tensors[key].detach().contiguous()
        kind, tensor = ("BOOL", tensor) if tensor.dtype == torch.bool else ("I64", tensor)
        if tensor.dtype == torch.float64:
            kind, tensor = "F32", tensor.float()
        raw = tensor.numpy().tobytes()
        header[key] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (FOLDER / name).write_bytes(struct.pack("<Q", len(text)) + text + data)
    print(f"{name}: {len(tensors)} tensors, {8 + len(text) + len(data)} bytes")


def normal(*shape, scale=1.0):
    return scale * torch.randn(*shape, dtype=torch.float64)


def leaf(tensor):
    return tensor.detach().clone().requires_grad_(True)


def gradients(loss, leaves):
    found = torch.autograd.grad(loss, leaves.values(), allow_unused=True)
    return {key: torch.zeros_like(leaves[key]) if g is None else g for key, g in zip(leaves, found)}


# --- One attention ----------------------------------------------------------------------------------------------------


def split(z, heads):
    """[B, L, heads*K] to [B, heads, L, K]."""
    return z.unflatten(2, (heads, -1)).transpose(1, 2)


def attention(p, x, memory, heads, kv_heads, forbidden):
    """Output [B, Lq, D] and maps [B, H, Lq, Lk] by scaled_dot_product_attention."""
    q = split(x @ p["query.weight"] + p["query.bias"], heads)
    k = split(memory @ p["key.weight"], kv_heads)
    v = split(memory @ p["value.weight"] + p["value.bias"], kv_heads)
    allowed = ~forbidden.expand(x.shape[0], heads, x.shape[1], memory.shape[1])
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, enable_gqa=True)
    # Values that are the identity give the maps themselves.
    identity = torch.eye(memory.shape[1], dtype=torch.float64).expand(x.shape[0], kv_heads, -1, -1)
    maps = F.scaled_dot_product_attention(q, k, identity, attn_mask=allowed, enable_gqa=True)
    return context.transpose(1, 2).flatten(2) @ p["output.weight"] + p["output.bias"], maps


def multihead(p, x, memory, heads, forbidden):
    """The same by nn.MultiheadAttention, for as many key/value heads as heads."""
    state = {
        "in_proj_weight": torch.cat([p[f"{name}.weight"].T for name in ("query", "key", "value")]),
        "in_proj_bias": torch.cat([p["query.bias"], torch.zeros_like(p["query.bias"]), p["value.bias"]]),
        "out_proj.weight": p["output.weight"].T,
        "out_proj.bias": p["output.bias"],
    }
    module = torch.nn.MultiheadAttention(D, heads, batch_first=True, dtype=torch.float64)
    mask = forbidden.expand(x.shape[0], heads, x.shape[1], memory.shape[1]).flatten(0, 1)
    options = {"attn_mask": mask, "average_attn_weights": False}
    return torch.func.functional_call(module, state, (x, memory, memory), options)


def masks(lq, lk):
    """[B|1, 1, Lq, Lk] each; in every row of "both" something stays readable."""
    causal = torch.ones(lq, lk, dtype=torch.bool).triu(1 + lk - lq)[None, None]
    padding = torch.zeros(B, 1, 1, lk, dtype=torch.bool)
    padding[0, ..., -1] = padding[1, ..., 1:3] = True
    none = torch.zeros(1, 1, 1, 1, dtype=torch.bool)
    return {"none": none, "causal": causal, "padding": padding, "both": causal | padding}


def parameters(heads, kv_heads, d_head):
    p = {"query": heads * d_head, "key": kv_heads * d_head, "value": kv_heads * d_head}
    p = {f"{name}.{part}": normal(*shape, scale=D**-0.5) for name, width in p.items()
         for part, shape in (("weight", (D, width)), ("bias", (width,))) if (name, part) != ("key", "bias")}
    return p | {"output.weight": normal(heads * d_head, D, scale=0.25), "output.bias": normal(D, scale=0.25)}


def narrowed(p, width):
    """Keys and values of fewer heads: the first columns."""
    return {key: value[..., :width] if key.startswith(("key", "value")) else value for key, value in p.items()}


def record(out, case, p, x, memory, cotangent, heads, kv_heads, forbidden):
    """Output, maps and gradients of sum(output * cotangent); checks both of PyTorch's ways against each other."""
    leaves = {key: leaf(value) for key, value in (p | {"x": x} | ({} if memory is None else {"memory": memory})).items()}
    inputs = (leaves["x"], leaves.get("memory", leaves["x"]))
    output, maps = attention(leaves, *inputs, heads, kv_heads, forbidden)
    grads = gradients((output * cotangent).sum(), leaves)
    if heads == kv_heads and p["query.weight"].shape[1] == D:
        other, other_maps = multihead(leaves, *inputs, heads, forbidden)
        if forbidden.all(-1).any():
            assert other.isnan().any()  # nn.MultiheadAttention on a row with nothing readable: pytorch#41508
        else:
            torch.testing.assert_close((other, other_maps), (output, maps), rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(gradients((other * cotangent).sum(), leaves), grads, rtol=1e-12, atol=1e-12)
    out |= {f"{case}/output": output, f"{case}/maps": maps}
    out |= {f"{case}/gradient.{key}": value for key, value in grads.items()}


def attention_fixtures():
    torch.manual_seed(0)
    x, memory, cotangent = normal(B, LQ, D), normal(B, LK, D), normal(B, LQ, D)
    full, wide = parameters(8, 8, D // 8), parameters(4, 2, 6)
    out = {"x": x, "memory": memory, "cotangent": cotangent}
    out |= {f"full/{key}": value for key, value in full.items()} | {f"wide/{key}": value for key, value in wide.items()}
    for kind, keys, other in (("self", LQ, None), ("cross", LK, memory)):
        for name, forbidden in masks(LQ, keys).items():
            out[f"mask.{kind}.{name}"] = forbidden
            for heads in (1, 2, 4, 8):
                for kv_heads in sorted({1, max(1, heads // 2), heads}):
                    p = narrowed(full, kv_heads * D // heads)
                    record(out, f"{kind}.h{heads}.g{kv_heads}.{name}", p, x, other, cotangent, heads, kv_heads, forbidden)
            # A head wider than D / H: d_head = 6.
            if name == "both":
                record(out, f"{kind}.wide.{name}", wide, x, other, cotangent, 4, 2, forbidden)
    # Rows with nothing readable: all of sample 0's first two queries.
    forbidden = torch.zeros(B, 1, LQ, LQ, dtype=torch.bool)
    forbidden[0, :, :2] = True
    out["mask.self.empty"] = forbidden
    record(out, "self.h4.g4.empty", full, x, None, cotangent, 4, 4, forbidden)
    save("attention.safetensors", out)


# --- A whole decoder --------------------------------------------------------------------------------------------------

V, OUTPUTS, L, FF, LAYERS = 11, 7, 6, 32, 2


def embedded(p, tokens, path, positions):
    x = F.embedding(tokens, p[f"{path}token.weight"])
    return add_positions(positions, x, lambda: p[f"{path}position.weight"])


def stack(p, path, x, forbidden, memory=None, memory_forbidden=None, heads=4, kv_heads=4, positions="learned",
          merge="concat", norm=True, residual=True, mlp=True, post=False, activation=F.gelu, **_):
    """The normed output [B, L, D] of the blocks under a path, their maps, and those of their cross-attentions."""

    def linear(name, z):
        z = z @ p[f"{name}.weight"]
        return z + p[f"{name}.bias"] if f"{name}.bias" in p else z

    def any_norm(name, z):
        if f"{name}.factor" in p:
            return F.normalize(z, dim=-1) * p[f"{name}.factor"]
        return F.layer_norm(z, (D,), p[f"{name}.gamma"], p[f"{name}.beta"]) if norm else z

    def normed(name, z):
        return z if post else any_norm(name, z)

    def after(name, z):
        return any_norm(name, z) if post else z

    def attend(name, z, other, forbidden, positions):
        q = split(linear(f"{name}.query", z), heads)
        k, v = (split(linear(f"{name}.{part}", other), kv_heads) for part in ("key", "value"))
        q, k = rotate(positions, q), rotate(positions, k)
        k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(forbidden, -math.inf)
        maps = scores.softmax(-1)
        context = maps @ v
        merged = context.mean(1) if merge == "mean" else context.transpose(1, 2).flatten(2)
        return linear(f"{name}.output", merged), maps

    all_maps, all_cross_maps = [], []
    for layer in range(LAYERS):
        block = f"{path}blocks.{layer}"
        z = normed(f"{block}.norm1", x)
        change, maps = attend(f"{block}.attention", z, z, forbidden, positions)
        all_maps.append(maps)
        x = after(f"{block}.norm1", x + change if residual else change)
        if memory is not None:
            z = normed(f"{block}.norm_cross", x)
            change, maps = attend(f"{block}.cross_attention", z, memory, memory_forbidden, "none")
            all_cross_maps.append(maps)
            x = after(f"{block}.norm_cross", x + change if residual else change)
        if mlp:
            up = linear(f"{block}.mlp.up", normed(f"{block}.norm2", x))
            change = linear(f"{block}.mlp.down", activation(up))
            x = after(f"{block}.norm2", x + change if residual else change)
    return normed(f"{path}norm", x), all_maps, all_cross_maps


def output(p, x, tied):
    return x @ p["token.weight"].T if tied else x @ p["logits.weight"] + p["logits.bias"]


def decoder(p, tokens, padding, causal=True, tied=False, **options):
    """Logits [B, L, outputs] and the maps of each layer."""
    length = tokens.shape[1]
    forbidden = torch.zeros(1, 1, length, length, dtype=torch.bool)
    if causal:
        forbidden = forbidden | torch.ones(length, length, dtype=torch.bool).triu(1)
    if padding is not None:
        forbidden = forbidden | padding[:, None, None, :]
    x = embedded(p, tokens, "", options.get("positions", "learned"))
    x, all_maps, _ = stack(p, "", x, forbidden, **options)
    return output(p, x, tied), all_maps


def decoder_parameters():
    """Parameters of the plainest variant; the others take parts of them."""
    p = {"token.weight": normal(V, D), "position.weight": normal(L, D)}
    for layer in range(LAYERS):
        block = f"blocks.{layer}"
        for name, rows, columns in (("attention.query", D, D), ("attention.key", D, D), ("attention.value", D, D),
                                    ("attention.output", D, D), ("mlp.up", D, FF), ("mlp.down", FF, D)):
            p[f"{block}.{name}.weight"] = normal(rows, columns, scale=rows**-0.5)
            p[f"{block}.{name}.bias"] = normal(columns, scale=0.2)
    for name in [f"blocks.{layer}.norm{i}" for layer in range(LAYERS) for i in (1, 2)] + ["norm"]:
        p[f"{name}.gamma"], p[f"{name}.beta"] = 1 + normal(D, scale=0.2), normal(D, scale=0.2)
    return p | {"logits.weight": normal(D, OUTPUTS, scale=0.25), "logits.bias": normal(OUTPUTS, scale=0.2)}


def chosen(p, options):
    """The parameters that a variant has, cut to its shapes."""
    out = {}
    for key, value in p.items():
        if (
            "position" in key and options.get("positions", "learned") not in TRAINED
            or key.startswith("logits") and options.get("tied")
            or "norm" in key and not options.get("norm", True)
            or "mlp" in key and not options.get("mlp", True)
            or "norm2" in key and not options.get("mlp", True)
            or key.endswith("key.bias") and not options.get("key_bias")
        ):
            continue
        heads = options.get("heads", 4)
        if ".key." in key or ".value." in key:
            value = value[..., : options.get("kv_heads", 4) * D // heads]
        if "attention.output.weight" in key and options.get("merge") == "mean":
            value = value[: D // heads]
        out[key] = value
    return out


VARIANTS = {
    "learned": {},
    "one_head": {"heads": 1, "kv_heads": 1},
    "rope": {"positions": "rope"},
    "sinusoidal": {"positions": "sinusoidal"},
    "tied": {"tied": True},
    "multi_query": {"kv_heads": 1},
    "encoder": {"causal": False, "positions": "none"},
    "key_bias": {"key_bias": True},
    "bare": {"norm": False, "residual": False, "mlp": False, "merge": "mean"},
}


def decoder_fixtures():
    torch.manual_seed(1)
    p = decoder_parameters()
    tokens = torch.randint(0, V, (B, L))
    padding = torch.zeros(B, L, dtype=torch.bool)
    padding[1, 4:] = True
    # What F.cross_entropy calls ignore_index: positions without a target. Padding has none.
    targets = torch.randint(0, OUTPUTS, (B, L))
    targets[0, :2] = targets[1, 0] = targets[1, 4:] = -100
    out = {f"parameters/{key}": value for key, value in p.items()}
    out |= {"tokens": tokens, "padding": padding, "targets": targets}
    for name, options in VARIANTS.items():
        leaves = {key: leaf(value) for key, value in chosen(p, options).items()}
        logits, maps = decoder(leaves, tokens, padding, **options)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        out |= {f"{name}/logits": logits, f"{name}/loss": loss[None], f"{name}/maps": torch.stack(maps)}
        out |= {f"{name}/gradient.{key}": value for key, value in gradients(loss, leaves).items()}
    save("decoder.safetensors", out)


# --- An encoder-decoder -----------------------------------------------------------------------------------------------

SOURCE_V, SOURCE_L = 9, 5


def encoder_decoder(p, tokens, source, source_padding, tied=False, **options):
    """Logits [B, L, outputs] and the maps of each layer: encoder, decoder, cross-attention."""
    positions = options.get("positions", "learned")
    read = source_padding[:, None, None, :]
    memory, encoder_maps, _ = stack(p, "encoder.", embedded(p, source, "encoder.", positions), read, **options)
    future = torch.ones(L, L, dtype=torch.bool).triu(1)
    x, maps, cross_maps = stack(p, "", embedded(p, tokens, "", positions), future, memory, read, **options)
    return output(p, x, tied), encoder_maps, maps, cross_maps


def by_torch_layers(p, tokens, source, source_padding, heads):
    """The same logits by nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, for learned positions."""

    def attention_state(path, name):
        bias = torch.cat([p[f"{path}.query.bias"], torch.zeros(D, dtype=torch.float64), p[f"{path}.value.bias"]])
        return {
            f"{name}.in_proj_weight": torch.cat([p[f"{path}.{part}.weight"].T for part in ("query", "key", "value")]),
            f"{name}.in_proj_bias": bias,
            f"{name}.out_proj.weight": p[f"{path}.output.weight"].T,
            f"{name}.out_proj.bias": p[f"{path}.output.bias"],
        }

    def run(kind, block, norms, *inputs, **masks):
        layer = kind(D, heads, FF, activation="gelu", norm_first=True, batch_first=True, dtype=torch.float64).eval()
        state = attention_state(f"{block}.attention", "self_attn")
        if kind is torch.nn.TransformerDecoderLayer:
            state |= attention_state(f"{block}.cross_attention", "multihead_attn")
        for theirs, ours in norms.items():
            state |= {f"{theirs}.weight": p[f"{block}.{ours}.gamma"], f"{theirs}.bias": p[f"{block}.{ours}.beta"]}
        for theirs, ours in (("linear1", "up"), ("linear2", "down")):
            state |= {f"{theirs}.weight": p[f"{block}.mlp.{ours}.weight"].T, f"{theirs}.bias": p[f"{block}.mlp.{ours}.bias"]}
        return torch.func.functional_call(layer, state, inputs, masks)

    def normed(path, z):
        return F.layer_norm(z, (D,), p[f"{path}.gamma"], p[f"{path}.beta"])

    memory, x = (embedded(p, z, path, "learned") for z, path in ((source, "encoder."), (tokens, "")))
    for layer in range(LAYERS):
        norms = {"norm1": "norm1", "norm2": "norm2"}
        memory = run(torch.nn.TransformerEncoderLayer, f"encoder.blocks.{layer}", norms, memory,
                     src_key_padding_mask=source_padding)
    memory = normed("encoder.norm", memory)
    future = torch.ones(L, L, dtype=torch.bool).triu(1)
    for layer in range(LAYERS):
        norms = {"norm1": "norm1", "norm2": "norm_cross", "norm3": "norm2"}
        x = run(torch.nn.TransformerDecoderLayer, f"blocks.{layer}", norms, x, memory, tgt_mask=future,
                memory_key_padding_mask=source_padding)
    return output(p, normed("norm", x), False)


def encoder_decoder_parameters():
    p, other, cross = decoder_parameters(), decoder_parameters(), decoder_parameters()
    p |= {f"encoder.{key}": value for key, value in other.items() if not key.startswith("logits")}
    p["encoder.token.weight"] = p["encoder.token.weight"][:SOURCE_V]
    p["encoder.position.weight"] = p["encoder.position.weight"][:SOURCE_L]
    for key, value in cross.items():
        if ".attention." in key:
            p[key.replace(".attention.", ".cross_attention.")] = value
        elif ".norm1." in key:
            p[key.replace(".norm1.", ".norm_cross.")] = value
    return p


def encoder_decoder_fixtures():
    torch.manual_seed(2)
    p = encoder_decoder_parameters()
    tokens, source = torch.randint(0, V, (B, L)), torch.randint(0, SOURCE_V, (B, SOURCE_L))
    source_padding = torch.zeros(B, SOURCE_L, dtype=torch.bool)
    source_padding[1, 3:] = True
    targets = torch.randint(0, OUTPUTS, (B, L))
    targets[1, 4:] = -100
    out = {f"parameters/{key}": value for key, value in p.items()}
    out |= {"tokens": tokens, "source": source, "source_padding": source_padding, "targets": targets}
    for name in ("learned", "one_head", "rope", "sinusoidal", "tied", "multi_query", "bare"):
        options = VARIANTS[name]
        leaves = {key: leaf(value) for key, value in chosen(p, options).items()}
        logits, encoder_maps, maps, cross_maps = encoder_decoder(leaves, tokens, source, source_padding, **options)
        if name in ("learned", "one_head"):
            other = by_torch_layers(leaves, tokens, source, source_padding, options.get("heads", 4))
            torch.testing.assert_close(other, logits, rtol=1e-12, atol=1e-12)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        out |= {f"{name}/logits": logits, f"{name}/loss": loss[None], f"{name}/maps": torch.stack(maps)}
        out |= {f"{name}/encoder_maps": torch.stack(encoder_maps), f"{name}/cross_maps": torch.stack(cross_maps)}
        out |= {f"{name}/gradient.{key}": value for key, value in gradients(loss, leaves).items()}
    save("encoder_decoder.safetensors", out)


# --- Models that read and say numbers ---------------------------------------------------------------------------------

I, O = 3, 2  # numbers read and said at a position


def number_parameters():
    p = {key: value for key, value in decoder_parameters().items() if "token" not in key and "position" not in key}
    for name, rows, columns in (("input.linear", I, D), ("input.up", I, FF), ("input.down", FF, D), ("logits", D, O)):
        p[f"{name}.weight"], p[f"{name}.bias"] = normal(rows, columns, scale=rows**-0.5), normal(columns, scale=0.2)
    for layer in range(LAYERS):
        for norm in ("norm1", "norm2"):
            p[f"blocks.{layer}.{norm}.factor"] = 1 + normal(1, scale=0.2)
    p["norm.factor"] = 1 + normal(1, scale=0.2)
    return p | {"readout": normal(D)}


def number_model(p, numbers, padding, input_layers=1, output_layer=True, readout=False, **options):
    """What is said [B, L, O] (or [B, L, D]), and the maps of each layer."""

    def linear(name, z):
        return z @ p[f"{name}.weight"] + p[f"{name}.bias"]

    read = numbers[:, 1:] if readout else numbers
    x = {0: lambda: read, 1: lambda: linear("input.linear", read),
         2: lambda: linear("input.down", F.relu(linear("input.up", read)))}[input_layers]()
    if readout:
        x = torch.cat([p["readout"].expand(len(x), 1, D), x], dim=1)
    forbidden = padding[:, None, None, :].expand(-1, 1, x.shape[1], -1)
    x, maps, _ = stack(p, "", x, forbidden, positions="none", **options)
    return (linear("logits", x) if output_layer else x), maps


def post_norm_by_torch_layers(p, numbers, padding):
    """The same as `post` says by nn.TransformerEncoderLayer."""
    x = numbers @ p["input.linear.weight"] + p["input.linear.bias"]
    for layer in range(LAYERS):
        block = f"blocks.{layer}"
        bias = torch.cat([p[f"{block}.attention.query.bias"], torch.zeros(D, dtype=torch.float64),
                          p[f"{block}.attention.value.bias"]])
        state = {
            "self_attn.in_proj_weight": torch.cat([p[f"{block}.attention.{part}.weight"].T for part in ("query", "key", "value")]),
            "self_attn.in_proj_bias": bias,
            "self_attn.out_proj.weight": p[f"{block}.attention.output.weight"].T,
            "self_attn.out_proj.bias": p[f"{block}.attention.output.bias"],
        }
        for theirs, ours in (("linear1", "mlp.up"), ("linear2", "mlp.down")):
            state |= {f"{theirs}.weight": p[f"{block}.{ours}.weight"].T, f"{theirs}.bias": p[f"{block}.{ours}.bias"]}
        for norm in ("norm1", "norm2"):
            state |= {f"{norm}.weight": p[f"{block}.{norm}.gamma"], f"{norm}.bias": p[f"{block}.{norm}.beta"]}
        module = torch.nn.TransformerEncoderLayer(D, 4, FF, activation="relu", batch_first=True, dtype=torch.float64).eval()
        x = torch.func.functional_call(module, state, (x,), {"src_key_padding_mask": padding})
    return x @ p["logits.weight"] + p["logits.bias"]


NUMBER_VARIANTS = {
    "pre": {},
    "post": {"post": True, "activation": F.relu},
    "length": {"post": True, "activation": F.relu, "length": True, "input_layers": 0, "output_layer": False},
    "pre_length": {"length": True},
    "readout": {"input_layers": 2, "readout": True, "norm": False, "residual": False},
}


def chosen_numbers(p, input_layers=1, output_layer=True, readout=False, norm=True, length=False, post=False, **_):
    keep = {0: (), 1: ("input.linear",), 2: ("input.up", "input.down")}[input_layers]
    out = {}
    for key, value in p.items():
        is_norm = key.split(".")[-2] in ("norm", "norm1", "norm2") if "." in key else False
        if (
            key.startswith("input") and not key.startswith(keep or "-")
            or key.startswith("logits") and not output_layer
            or key == "readout" and not readout
            or is_norm and (not norm or length != key.endswith("factor"))
            or post and key.startswith("norm.")
            or key.endswith("key.bias")
        ):
            continue
        out[key] = value
    return out


def number_fixtures():
    torch.manual_seed(3)
    p = number_parameters()
    padding = torch.zeros(B, L, dtype=torch.bool)
    padding[1, 4:] = True
    scored = ~padding & (torch.rand(B, L) < 0.7)
    scored[:, 0] = True
    out = {f"parameters/{key}": value for key, value in p.items()} | {"padding": padding, "scored": scored}
    for name, options in NUMBER_VARIANTS.items():
        wide = options.get("input_layers") == 0
        numbers, wanted = normal(B, L, D if wide else I), normal(B, L, D if wide else O)
        asked = scored.clone()
        if options.get("readout"):
            asked[:, 1:] = False
        leaves = {key: leaf(value) for key, value in chosen_numbers(p, **options).items()}
        said, maps = number_model(leaves, numbers, padding, **options)
        if name == "post":
            other = post_norm_by_torch_layers(leaves, numbers, padding)
            torch.testing.assert_close(other[~padding], said[~padding], rtol=1e-12, atol=1e-12)
        loss = F.mse_loss(said[asked], wanted[asked])
        out |= {f"{name}/numbers": numbers, f"{name}/wanted": wanted, f"{name}/scored": asked}
        out |= {f"{name}/said": said, f"{name}/loss": loss[None], f"{name}/maps": torch.stack(maps)}
        out |= {f"{name}/gradient.{key}": value for key, value in gradients(loss, leaves).items()}
    save("numbers.safetensors", out)


if __name__ == "__main__":
    assert torch.__version__.startswith("2.15"), torch.__version__
    FOLDER.mkdir(parents=True, exist_ok=True)
    attention_fixtures()
    decoder_fixtures()
    encoder_decoder_fixtures()
    number_fixtures()
