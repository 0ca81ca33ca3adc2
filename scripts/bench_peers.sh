#!/usr/bin/env bash
# A training step of Headcount against the same step in PyTorch (scripts/torch_step.py): same machine, same threads, in turn,
# so that whatever else the machine does meets both. Prints a Markdown table; the single figures stay in
# target/bench-peers/figures.jsonl. Takes about 10 minutes on an idle machine of 2 cores, after the setup.
#
#   scripts/bench_peers.sh                       makes target/bench-peers/venv with the CPU build of PyTorch (200 MB)
#   PYTHON=python3 scripts/bench_peers.sh        takes a Python that has PyTorch and NumPy
#
# Tested with PyTorch 2.15. The mode "compile" needs a C++ compiler. Others of these may be set too:
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# d_model, layers, heads, batch, length, vocabulary
SHAPES=${SHAPES:-"64,2,8,32,64,64 64,2,1,32,64,64 128,2,8,32,64,64 64,1,8,64,32,16 256,4,8,16,128,64"}
THREADS=${THREADS:-"1 2"}
MODES=${MODES:-"sdpa compile"}
REPETITIONS=${REPETITIONS:-3}
STEPS=${STEPS:-40}
BACKEND=${BACKEND:-flex}

folder=target/bench-peers
mkdir -p "$folder"
if [ -z "${PYTHON:-}" ]; then
  PYTHON=$folder/venv/bin/python
  if ! "$PYTHON" -c 'import torch, numpy' 2>/dev/null; then
    python3 -m venv "$folder/venv"
    "$PYTHON" -m pip install --quiet numpy
    # Where PyTorch's own index can't be reached, the default one has it too, larger for the sake of GPUs.
    "$PYTHON" -m pip install --quiet 'torch==2.15.*' --index-url https://download.pytorch.org/whl/cpu ||
      "$PYTHON" -m pip install --quiet 'torch==2.15.*'
  fi
fi
"$PYTHON" -c 'import torch, numpy' || { echo "error: $PYTHON has no PyTorch and NumPy: leave PYTHON unset" >&2; exit 2; }

cargo build -p trainer
trainer=$(cargo metadata --format-version 1 --no-deps |
  "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/debug/trainer

figures=$folder/figures.jsonl
: > "$figures"
# A run that fails is left out and shows in the table as such.
take() { "$@" >> "$figures" || echo "failed: $*" >&2; }
for shape in $SHAPES; do
  IFS=, read -r d_model layers heads batch seq vocab <<< "$shape"
  for threads in $THREADS; do
    sizes=(--d-model "$d_model" --layers "$layers" --heads "$heads" --batch "$batch" --seq "$seq" --vocab "$vocab"
      --steps "$STEPS" --threads "$threads")
    for repetition in $(seq "$REPETITIONS"); do
      echo "($shape) with threads = $threads, repetition $repetition of $REPETITIONS" >&2
      take "$trainer" bench --json --backend "$BACKEND" "${sizes[@]}"
      for mode in $MODES; do
        take "$PYTHON" scripts/torch_step.py "${sizes[@]}" --mode "$mode"
      done
    done
  done
done
"$PYTHON" scripts/bench_table.py "$figures"
