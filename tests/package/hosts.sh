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
"$work/build/train" "$work/points.json" "$work/predictor.heddle" >"$work/trained"
for seen in '^step 500: loss 0\.[0-9]*, accuracy 0\.[89]' '^step 2000: loss 0\.[0-9]*, accuracy \(0\.9[5-9]\|1\)' \
  '^saved and loaded: accuracy \(0\.9[5-9]\|1\)[0-9.]*, 19 variables$' '^(0.6, 0.2) lies in the ring$' '^(0.1, 0.1) lies outside the ring$'; do
  grep -q "$seen" "$work/trained" || {
    echo "train: no line like $seen in"
    cat "$work/trained"
    exit 1
  }
done
"$work/build/train_ranks" "$work/points.json" "file:$work/meeting" 1 2 &
"$work/build/train_ranks" "$work/points.json" "file:$work/meeting" 0 2 >"$work/of_ranks"
wait $!
for seen in '^step 500: accuracy 0\.[89]' '^step 2000: accuracy \(0\.9[5-9]\|1\)'; do
  grep -q "$seen" "$work/of_ranks" || {
    echo "train_ranks: no line like $seen in"
    cat "$work/of_ranks"
    exit 1
  }
done
"$prefix/bin/heddle" check "$work/predictor.heddle" --symbol N=2
for host in classify frame_loop look train train_ranks; do
  other=()
  [ "$host" = train ] && other=("$work/none.heddle")
  [ "$host" = train_ranks ] && other=("file:$work/meeting" 0 1)
  if "$work/build/$host" "$work/no_such.json" "${other[@]}" 2>"$work/error"; then
    echo "$host: a missing net was opened"
    exit 1
  fi
  grep -q '^error\[file-not-found\].*no_such.json' "$work/error" || {
    echo "$host: a missing net is reported as: $(cat "$work/error")"
    exit 1
  }
done
