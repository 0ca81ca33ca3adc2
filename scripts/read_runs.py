"""Reads an experiment's run directories with pandas alone: no part of Headcount is needed.

    pip install pandas matplotlib
    python scripts/read_runs.py runs/h1-vs-h8
"""

import json
import sys
import tomllib
from pathlib import Path

import pandas as pd


def read_runs(experiment: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row a run (how it ended), and one row a logged step and split (losses in nats, accuracies 0 to 1)."""
    ends, curves = [], []
    # Runs of an earlier version of the experiment may lie there too: what counts is in results.json.
    results = json.loads((experiment / "results.json").read_text())
    for run in sorted(experiment / run["directory"] for arm in results["arms"] for run in arm["runs"]):
        summary = run / "summary.json"
        if not summary.exists():  # written last: a run without it is not done
            continue
        config = tomllib.loads((run / "config.toml").read_text())
        labels = {"arm": config["name"], "seed": config["seed"], "heads": config["model"]["heads"]}
        end = pd.json_normalize(json.loads(summary.read_text())).to_dict("records")[0]
        ends.append(labels | end)
        curves.append(pd.read_json(run / "metrics.jsonl", lines=True).assign(**labels))
    if not ends:
        sys.exit(f"{experiment}: no finished run here")
    return pd.DataFrame(ends), pd.concat(curves, ignore_index=True)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    experiment = Path(sys.argv[1])
    runs, metrics = read_runs(experiment)

    # A run that diverged has no test score; count it as 0 rather than leave it out.
    runs["test.accuracy"] = runs.get("test.accuracy", pd.Series(dtype=float)).where(runs["status"] == "finished", 0.0)
    print(runs.groupby("arm")["test.accuracy"].describe().round(4), end="\n\n")

    # Seeds are paired: differences are taken within a seed.
    table = runs.pivot(index="seed", columns="arm", values="test.accuracy")
    baseline = tomllib.loads((experiment / "experiment.toml").read_text())["baseline"]
    print(f"minus {baseline}, seed by seed:")
    print(table.drop(columns=baseline).sub(table[baseline], axis=0).round(4), end="\n\n")

    validation = metrics[metrics["split"] == "validation"]
    means = validation.pivot_table(index="step", columns="arm", values="accuracy")
    print("mean validation accuracy:")
    print(means.round(3).to_string())
    # means.plot(xlabel="optimiser steps", ylabel="accuracy").figure.savefig("curves.png")


if __name__ == "__main__":
    main()
