#!/bin/bash
# host_on_a_gpu.sh PREFIX WORK COMPILER STANDIN FLAGS: examples/hosts/device_loop, built against the installed package and NVIDIA's runtime, and
# run with the library STANDIN in the place of that runtime and of what the plugin calls: in several orders of the streams' work the numbers
# arrive, and no rule of NVIDIA's is broken. 77: there is no toolkit to build with, or no stand-in.
set -euo pipefail
examples=$(cd "$(dirname "$0")/../../examples/hosts" && pwd)
prefix=$1 work=$2 compiler=$3 standin=$4 flags=${5:-}
rm -rf "$work"
cp -r "$examples" "$work"
unset HEDDLE_PLUGIN_DIR
cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" \
  -DCMAKE_BUILD_TYPE=Release >"$work/configured"
if grep 'device_loop is left out' "$work/configured"; then exit 77; fi
cmake --build "$work/build" --target device_loop
[ -f "$standin" ] || {
  echo "skipped: it is built, and there is no stand-in for NVIDIA's libraries to run it with"
  exit 77
}

# By the name that the program asks the loader for.
runtime=$(readelf -d "$work/build/device_loop" | sed -n 's/.*(NEEDED).*\[\(libcudart\.so[^]]*\)\].*/\1/p')
[ -n "$runtime" ] || {
  echo "device_loop does not link to NVIDIA's runtime"
  exit 1
}
mkdir "$work/standin"
ln -s "$standin" "$work/standin/$runtime"
export HEDDLE_CUDA_STANDIN=$standin HEDDLE_CUDA_CACHE=$work/cache LD_LIBRARY_PATH=$work/standin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for seed in 1 2 3 4 5; do
  HEDDLE_CUDA_STANDIN_SEED=$seed "$work/build/device_loop" "$work/relax.json" >"$work/out" 2>"$work/error" || {
    echo "seed $seed: $(cat "$work/out" "$work/error")"
    exit 1
  }
  grep -q '^1024 numbers, at most [0-9.e-]* from 2$' "$work/out" || {
    echo "seed $seed: it printed: $(cat "$work/out")"
    exit 1
  }
  if grep 'cuda stand-in:' "$work/error"; then exit 1; fi
done
# A net that would leave the GPU is refused, not copied about.
sed 's/"type": "Mul", /&"device": "cpu", /' "$work/relax.json" >"$work/crossing.json"
if "$work/build/device_loop" "$work/crossing.json" 2>"$work/error"; then
  echo "a net with an operator on the host ran"
  exit 1
fi
grep -q '^error\[wrong-device\]' "$work/error" || {
  echo "a net with an operator on the host: $(cat "$work/error")"
  exit 1
}
