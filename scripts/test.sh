#!/usr/bin/env bash
# Everything that must hold before a change lands: format, lints, documentation, and all tests on flex, ndarray and wgpu.
#
# wgpu runs on any Vulkan driver; Mesa's software one will do (Debian, Ubuntu: apt-get install mesa-vulkan-drivers).
# HEADCOUNT_SKIP_WGPU=1 leaves out the tests that need it. The tests of report.html need Chromium and are skipped without it,
# unless HEADCOUNT_REQUIRE_BROWSER is set. HEADCOUNT_LONG=1 runs those of kills, damage, full disks and files made by chance at full
# length.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ -z "${XDG_RUNTIME_DIR:-}" ]; then # Mesa's drivers want one
  XDG_RUNTIME_DIR=$(mktemp -d)
  export XDG_RUNTIME_DIR
  trap 'rm -rf "$XDG_RUNTIME_DIR"' EXIT
fi

step() { printf '\n== %s\n' "$*" >&2; "$@"; }

step cargo fmt --all -- --check
if cargo nextest --version >/dev/null 2>&1; then
  step cargo nextest run --workspace --no-fail-fast
  step cargo test --workspace --doc
else
  step cargo test --workspace --no-fail-fast
fi
step cargo clippy --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --no-deps
