#!/usr/bin/env python3
"""Writes the gallery: for every experiment its claim, what was predicted before the runs, what was found, and a small picture.

scripts/gallery.py FOLDER-OF-EXPERIMENTS README.md     (called by scripts/gallery.sh; needs nothing but Python)
"""

import json
import pathlib
import shutil
import sys
import tomllib

folder, readme = (pathlib.Path(argument) for argument in sys.argv[1:3])
root = readme.parent
pictures = root / "figures"
kept = json.loads((root / "gallery.json").read_text()) if (root / "gallery.json").exists() else {}


def picture(name, results):
    """The small picture of an experiment: the sweep where there is one, else the learning curves."""
    for figure in ("sweep", "accuracy", "loss"):
        source = folder / name / "figures" / f"{figure}.svg"
        if source.exists():
            pictures.mkdir(exist_ok=True)
            shutil.copyfile(source, pictures / f"{name}.svg")
            return f"figures/{name}.svg"
    return None


def found(name):
    """What the results of an experiment say, or what an earlier gallery recorded, or nothing."""
    path = folder / name / "results.json"
    if not path.exists():
        return kept.get(name)
    results = json.loads(path.read_text())
    timings = json.loads((folder / name / "timings.json").read_text())
    return {
        "sentence": results["answer"]["sentence"],
        "predictions": [[one["predicted"], one["fate"]] for one in results["predictions"]],
        "check": (results.get("check") or {}).get("sentence"),
        "interactions": [one["sentence"] for one in results.get("interactions", [])],
        "others": [one["sentence"] for one in results.get("verdicts", [])]
        if not results.get("sweeps") and len(results.get("verdicts", [])) > 1
        else [one["sentence"] for one in results.get("sweeps", [])] if len(results.get("sweeps", [])) > 1 else [],
        "minutes": round(timings["seconds"] / 60, 1),
        "picture": picture(name, results),
    }


lines = [
    "# Gallery",
    "",
    "What the experiments of this folder found, each with its prediction, which its file registers before the first run. Minutes are",
    "those of all its runs one after the other, by the clock, so other programs beside them count. `scripts/gallery.sh` makes all of it again, and",
    "`trainer compare FILE --check results.json` says whether a new result agrees with a recorded one.",
]
record = {}
groups = [
    ("How many heads", root.glob("*.toml")),
    ("What is said of multi-head attention", (root / "claims").glob("*.toml")),
    ("Beside published results", (root / "published").glob("*.toml")),
]
for title, files in groups:
    lines += ["", f"## {title}"]
    for path in sorted(files):
        about = tomllib.loads(path.read_text()).get("about", {})
        name = path.stem
        lines += ["", f"### [{name}]({path.relative_to(root)})", "", f"**{about.get('question', name)}**"]
        if about.get("prediction"):
            lines += ["", f"Expected: {' '.join(about['prediction'].split())}"]
        result = found(name)
        if result is None:
            before = " ".join(about.get("result", "").split())
            guess = f" About {about['minutes']} minutes on two cores, an estimate." if "minutes" in about else ""
            lines += ["", f"Not run again yet. Recorded by hand before: {before}" if before else f"Not run yet.{guess}"]
            continue
        record[name] = result
        lines += ["", f"Found: {result['sentence']}"]
        lines += [f"- {other}" for other in result["others"] + result["interactions"]]
        lines += ["", *(f"Prediction {fate}: {told}." for told, fate in result["predictions"])] if result["predictions"] else []
        lines += ["", f"Check: {result['check']}"] if result["check"] else []
        lines += ["", f"{result['minutes']} minutes."]
        if result["picture"]:
            lines += ["", f"![{name}]({result['picture']})"]
readme.write_text("\n".join(lines) + "\n")
(root / "gallery.json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
