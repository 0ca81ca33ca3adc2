#!/usr/bin/env bash
# Runs the experiments of the gallery, one after the other, and writes experiments/README.md with what came of each. Stopped or
# killed, the same command goes on. Names of experiments as arguments take only these; the others keep what their folders hold. Those of
# published/ take hours each, and are run where they are named or with HEADCOUNT_LONG=1.
#
# scripts/gallery.sh [FOLDER=runs/gallery] [NAME...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-runs/gallery}
shift || true
program=${HEADCOUNT_TRAINER:-cargo run -q -p trainer --}
for file in experiments/*.toml experiments/claims/*.toml experiments/published/*.toml; do
  name=$(basename "$file" .toml)
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  if [[ $file == */published/* ]] && [ $# -eq 0 ] && [ "${HEADCOUNT_LONG:-}" != 1 ]; then continue; fi
  # An experiment whose runs diverge or whose prediction fails is a result; one that can't run is named at the end.
  $program compare "$file" --out "$folder" || printf 'gallery: %s ended with code %s\n' "$name" "$?" >&2
done
python3 scripts/gallery.py "$folder" experiments/README.md
