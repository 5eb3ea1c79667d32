#!/bin/bash
# authors.sh PREFIX WORK COMPILER: the plugins of tests/authors/operators, built outside this tree from the installed package alone, pass the
# installed `heddle plugin check --strict`, and on the simulated accelerator what runs there; by clang++ too, where there is one, not optimised.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$1 work=$2 compiler=$3
unset HEDDLE_PLUGIN_DIR
compilers=("$compiler")
clang=$(command -v clang++ || true)
if [ -n "$clang" ] && ! "$compiler" --version | grep -q clang; then compilers+=("$clang"); fi

rm -rf "$work"
cp -r "$here/../authors/operators" "$work"
type=Release
for compiler in "${compilers[@]}"; do
  build=$work/build_$(basename "$compiler")
  cmake -S "$work" -B "$build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=$type
  cmake --build "$build"
  operators=0
  for plugin in "$build"/*.so; do
    "$prefix/bin/heddle" plugin check "$plugin" --strict --timeout 120 | tee "$build/verdicts" || {
      echo "$plugin did not pass"
      exit 1
    }
    operators=$((operators + $(grep -c '^ok   authors::' "$build/verdicts" || true)))
    # Steps that wait and outputs without a bound are the host's: not run there is no failure.
    "$prefix/bin/heddle" plugin check "$plugin" --device sim:0 --timeout 120
  done
  # All that the sources declare, one of them in C.
  declared=$(($(grep -ho 'Op("[A-Za-z0-9]*", "authors"' "$work"/*.cc | sort -u | wc -l) + 1))
  [ "$operators" -eq "$declared" ] && [ "$declared" -ge 38 ] || {
    echo "$operators operators were checked, $declared are declared"
    exit 1
  }
  type=Debug
done
