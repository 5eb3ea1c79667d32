#!/bin/bash
# tools/soak.sh [--seconds N] [--seed S] [--libfuzzer | --steady]
#
# The long hunts, for a night rather than for every change: net files, damaged in all ways, through load, resolve, infer, transform, verify and
# compile, and half of the time a run, under AddressSanitizer and UndefinedBehaviorSanitizer for N seconds (default 600). A crash, a hang, a
# report, a broken promise of the library or a case over one second ends it with 1; the case lies in build/soak. The seed is printed; the same
# seed gives the same cases. --libfuzzer: the same under libFuzzer, guided by coverage; needs clang and its runtime (libclang-rt-dev).
# --steady instead counts the allocations of 1,000 runs of every demo net (tests/steady_state), which takes most of an hour.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=600
seed=$(date +%s)
libfuzzer=0
steady=0
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:?--seconds takes a number}; shift 2 ;;
    --seed) seed=${2:?--seed takes a number}; shift 2 ;;
    --libfuzzer) libfuzzer=1; shift ;;
    --steady) steady=1; shift ;;
    *) sed -n '2p' "$0" | cut -c3- >&2; exit 2 ;;
  esac
done
if [ $steady -eq 1 ]; then
  tools/install_packages.sh
  cmake --preset dev
  cmake --build --preset dev --target heddle_steady_state_tests cpu
  HEDDLE_LONG_TESTS=1 exec build/dev/bin/heddle_steady_state_tests
fi
mkdir -p build/soak

if [ $libfuzzer -eq 1 ]; then
  tools/install_packages.sh clang libclang-rt-dev
  cmake -S . -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -DHEDDLE_BUILD_FUZZERS=ON -DHEDDLE_SANITIZE=address,undefined
  cmake --build build/fuzz --target heddle_net_libfuzzer
  mkdir -p build/soak/corpus
  echo "soak: $seconds s under libFuzzer, seed $seed"
  exec build/fuzz/bin/heddle_net_libfuzzer build/soak/corpus -artifact_prefix=build/soak/ -seed="$((seed % 4294967296))" \
    -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=4096 -malloc_limit_mb=512 -print_final_stats=1
fi

tools/install_packages.sh
cmake --preset asan
cmake --build --preset asan --target heddle_net_fuzz
for run in "" --run; do
  echo "soak: $((seconds / 2)) s with seed $seed, ${run:-as far as compile}"
  build/asan/bin/heddle_net_fuzz --seconds $((seconds / 2)) --seed "$seed" --keep build/soak/net.case $run
done
