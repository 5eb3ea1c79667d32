#!/bin/bash
# new_plugin_cuda.sh PREFIX WORK COMPILER: what `heddle plugin new --cuda` writes, built with nvcc from the installed package alone: both kernels
# are in it, that for the host passes, and plans for a GPU take the other one. Then the same project where there is no nvcc. Nothing runs on a
# GPU here. 77: there is no nvcc.
set -euo pipefail
prefix=$1 work=$2 compiler=$3
heddle=$prefix/bin/heddle
nvcc=$(command -v "${CUDACXX:-nvcc}" || true)
[ -n "$nvcc" ] || {
  echo "skipped: there is no nvcc"
  exit 77
}
fail() {
  echo "$1"
  exit 1
}
rm -rf "$work"
mkdir -p "$work"
cd "$work"
unset HEDDLE_PLUGIN_DIR
"$heddle" plugin new mine --cuda

# One architecture: the test is of the project, and builds in a fifth of the time.
cmake -S mine -B with -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES=80
cmake --build with
"$heddle" plugin check with/mine.so
"$heddle" inspect with/mine.so >inspected
grep -qF 'plugin "mine" 0.1.0: 1 operators, 2 kernels' inspected || fail "inspect says: $(cat inspected)"
for kind in cpu cuda; do
  grep -q "^    kernel .*mine:Scale on $kind, x: f32$" inspected || fail "no kernel for $kind: $(cat inspected)"
done
listed=$("$heddle" plugin list --plugin with/mine.so)
grep -q '^"mine" 0.1.0 from .*: 1 operators, 2 kernels$' <<<"$listed" || fail "plugin list says: $listed"
# It carries code for GPUs, exports its one function, and needs no library of CUDA's to be loaded.
readelf --wide --sections with/mine.so | grep -q '\.nv_fatbin' || fail "there is no code for GPUs in it"
exported=$(readelf --wide --dyn-syms with/mine.so | awk '$7 != "UND" && $5 != "LOCAL" && NR > 3 { print $8 }')
[ "$exported" = heddle_plugin_query ] || fail "it exports: $exported"
needed=$(readelf -d with/mine.so | grep NEEDED)
if grep cuda <<<"$needed"; then fail "it would not load where there is no CUDA"; fi

cat >net.json <<'NET'
{"heddle": 1, "name": "scaled", "operator_sets": [{"domain": "", "version": 17}], "inputs": ["x"], "outputs": ["y"],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [3]}],
 "nodes": [{"name": "y", "type": "Scale", "domain": "mine", "inputs": ["x"], "outputs": ["y"], "attributes": {"factor": {"float": -10}}}]}
NET
if "$heddle" plugin list | grep -q '^"cuda" '; then
  planned=$("$heddle" plan net.json --plugin with/mine.so --device cuda:0 --dry)
  grep -q '"y" Scale kernel mine:Scale on cuda:0' <<<"$planned" || fail "the plan for a GPU: $planned"
fi

cmake -S mine -B without -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_COMPILER= >configured
grep -q 'there is no CUDA compiler here, it is built without its kernel for GPUs' configured || fail "cmake said: $(cat configured)"
cmake --build without
"$heddle" plugin check without/mine.so
"$heddle" inspect without/mine.so >inspected
grep -qF 'plugin "mine" 0.1.0: 1 operators, 1 kernels' inspected || fail "without nvcc, inspect says: $(cat inspected)"
