#!/usr/bin/env python3
"""Turn the figures of scripts/bench_peers.sh into a Markdown table.

    python3 scripts/bench_table.py target/bench-peers/figures.jsonl

Each line of the file is what `trainer bench --json` or scripts/torch_step.py printed. A cell is the median of the
repetitions' medians, with their smallest and largest. Needs nothing but Python.
"""
import json
import statistics
import sys

SHAPE = ["d_model", "layers", "heads", "batch", "seq", "vocab", "threads"]


def kind(figure):
    """Which column a figure belongs to."""
    return "PyTorch " + figure["mode"] if "mode" in figure else "Headcount"


def table(figures):
    """The table of all figures, as text."""
    cells, kinds, shapes = {}, ["Headcount"], []
    for figure in figures:
        shape = tuple(figure[key] for key in SHAPE)
        cells.setdefault((shape, kind(figure)), []).append(figure["ms_per_step"])
        if shape not in shapes:
            shapes.append(shape)
        if kind(figure) not in kinds:
            kinds.append(kind(figure))

    def shown(times):
        if not times:
            return "failed"
        return f"{statistics.median(times):.1f} ({min(times):.1f} to {max(times):.1f})"

    def ratio(shape):
        ours = cells.get((shape, "Headcount"))
        peers = [statistics.median(cells[shape, one]) for one in kinds[1:] if (shape, one) in cells]
        return f"{statistics.median(ours) / min(peers):.2f}" if ours and peers else ""

    heads = ["d_model", "layers", "heads", "batch", "length", "vocabulary", "threads", *kinds, "ratio"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for shape in shapes:
        row = [*map(str, shape), *(shown(cells.get((shape, one))) for one in kinds), ratio(shape)]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def conditions(figures):
    """What was measured on what, in two or three sentences."""
    ours = [figure for figure in figures if kind(figure) == "Headcount"]
    versions = sorted({figure["program"] for figure in figures if figure not in ours})
    text = "Milliseconds of a training step: median of the repetitions (smallest to largest). Ratio: Headcount over the faster PyTorch."
    if ours:
        one = ours[0]
        commit = f" ({one['commit'][:10]})" if one.get("commit") else ""
        machine = f"{one['device']}, {one['cores']} cores, {', '.join(one['vector_extensions'])}"
        text += f"\n{one['program']}{commit} on {one['backend']}, {', '.join(versions)}; {machine}."
        waiting = max(figure.get("share_waiting") or 0 for figure in ours)
        if waiting > 0.02:
            text += f"\nNote: up to {waiting:.0%} of the time Headcount waited for a core: something else ran."
    return text


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1]) as lines:
        figures = [json.loads(line) for line in lines if line.strip()]
    if not figures:
        sys.exit(f"error: {sys.argv[1]} holds no figures")
    print(table(figures), conditions(figures), sep="\n\n")


if __name__ == "__main__":
    main()
