#!/bin/bash
# new_plugin.sh PREFIX WORK COMPILER: a stranger's first operator, with the installed package alone: `heddle plugin new` writes a project, cmake
# builds it, `heddle plugin check` passes it, and a net that uses the operator gives what it should.
set -euo pipefail
prefix=$1 work=$2 compiler=$3
heddle=$prefix/bin/heddle
rm -rf "$work"
mkdir -p "$work"
cd "$work"
unset HEDDLE_PLUGIN_DIR
"$heddle" plugin new mine
cmake -S mine -B mine/build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release
cmake --build mine/build
"$heddle" plugin check mine/build/mine.so
cat >net.json <<'NET'
{"heddle": 1, "name": "scaled", "operator_sets": [{"domain": "", "version": 17}], "inputs": [], "outputs": ["z"],
 "values": [{"name": "x", "kind": "constant", "dtype": "f32", "dims": [3], "data": [1, -2, 3]}],
 "nodes": [
  {"name": "y", "type": "Scale", "domain": "mine", "inputs": ["x"], "outputs": ["y"], "attributes": {"factor": {"float": -10}}},
  {"name": "z", "type": "Relu", "inputs": ["y"], "outputs": ["z"]}
 ]}
NET
printed=$("$heddle" run net.json --plugin mine/build/mine.so --quiet --print z)
[ "$printed" = '"z" f32[3] = 0 20 0' ] || {
  echo "the net printed: $printed"
  exit 1
}
# Without the plugin the net is refused by name.
if "$heddle" run net.json 2>error; then
  echo "the net ran without its plugin"
  exit 1
fi
grep -q '^error\[unknown-operator\] "scaled": "y" (mine::Scale)' error || {
  echo "without the plugin: $(cat error)"
  exit 1
}
