#!/bin/bash
# hosts.sh PREFIX WORK COMPILER FLAGS: builds examples/hosts against the installed package and runs its programs.
set -euo pipefail
examples=$(cd "$(dirname "$0")/../../examples/hosts" && pwd)
prefix=$1 work=$2 compiler=$3 flags=${4:-}
rm -rf "$work"
cp -r "$examples" "$work"
cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_BUILD_TYPE=Release
cmake --build "$work/build"
"$work/build/frame_loop" "$work/edges.json"
"$work/build/server" "$work/edges.json"
"$prefix/bin/heddle" model lenet -o "$work/lenet.heddle"
"$work/build/classify" "$work/lenet.heddle"
"$work/build/look" "$work/lenet.heddle" >"$work/looked"
for seen in '^plan: [0-9]* steps, peak [0-9]* bytes' '^  at its fullest [0-9]* bytes' '^  [^ ]* *Conv *[0-9]* ns$' \
  '^  [^ ]* *largest magnitude [0-9]' '^the context holds [0-9]* bytes, exactly as planned$'; do
  grep -q "$seen" "$work/looked" || {
    echo "look: no line like $seen in"
    cat "$work/looked"
    exit 1
  }
done
for host in classify frame_loop look; do
  if "$work/build/$host" "$work/no_such.json" 2>"$work/error"; then
    echo "$host: a missing net was opened"
    exit 1
  fi
  grep -q '^error\[file-not-found\].*no_such.json' "$work/error" || {
    echo "$host: a missing net is reported as: $(cat "$work/error")"
    exit 1
  }
done
