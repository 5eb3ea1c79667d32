#!/bin/bash
# gpu_test_script.sh SOURCE BUILD WORK: what tools/gpu_test.sh says where there is no device, on the stand-in, and on one that is broken.
set -euo pipefail
source=$1 build=$2 work=$3
for built in bin/heddle bin/heddle_conformance_tests bin/heddle_device_tests lib/cuda.so lib/test/cuda_standin.so; do
  [ -e "$build/$built" ] || {
    echo "$build/$built is not built"
    exit 1
  }
done
rm -rf "$work"
mkdir -p "$work"

# EXIT-STATUS NAME VARIABLE...: a quick run with these variables; its table is $work/NAME/table.txt.
quick() {
  local expected=$1 name=$2 status=0
  shift 2
  env "$@" "$source/tools/gpu_test.sh" --quick --out "$work/$name" "$build" >"$work/$name.txt" 2>&1 || status=$?
  cat "$work/$name.txt"
  [ $status -eq "$expected" ] || {
    echo "$name: exit status $status, expected $expected"
    exit 1
  }
}
# NAME RESULT PART...: these rows of the table have that result.
rows_are() {
  local name=$1 result=$2 part
  shift 2
  for part in "$@"; do
    grep -qE "^$part +$result " "$work/$name/table.txt" || {
      echo "$name: $part is not $result"
      exit 1
    }
  done
}

# What lies in a folder that is not its own stays there, and it says what to do.
mkdir -p "$work/foreign" "$work/other_table"
echo kept >"$work/foreign/letter"
echo kept >"$work/other_table/table.txt"
for name in foreign other_table; do
  quick 2 "$name" HEDDLE_CUDA_STANDIN= CUDA_VISIBLE_DEVICES=-1
  grep -q "^gpu_test: $work/$name is neither empty nor the folder of an earlier run, .*: name another with --out, or delete it\$" "$work/$name.txt"
done
grep -qx kept "$work/foreign/letter"
grep -qx kept "$work/other_table/table.txt"
# An empty one is taken, and one of an earlier run replaced.
mkdir "$work/no_device"
quick 0 no_device HEDDLE_CUDA_STANDIN= CUDA_VISIBLE_DEVICES=-1
touch "$work/no_device/old.log"
quick 0 no_device HEDDLE_CUDA_STANDIN= CUDA_VISIBLE_DEVICES=-1
[ ! -e "$work/no_device/old.log" ] || {
  echo "no_device: a file of the earlier run is left"
  exit 1
}
rows_are no_device skipped devices facts conformance operators memcheck racecheck 'mlp x1' 'pytorch resnet50 x1'
grep -q '^gpu_test: 0 passed, 0 failed, 8 skipped, ' "$work/no_device.txt"
grep -q '^gpu_test: no device: .' "$work/no_device.txt"

standin=HEDDLE_CUDA_STANDIN=$build/lib/test/cuda_standin.so
quick 0 standin "$standin"
rows_are standin passed devices conformance operators 'mlp x1'
rows_are standin skipped facts memcheck racecheck 'pytorch resnet50 x1'
grep -qE '^operators +passed .* 3 right, [1-9][0-9]* calls' "$work/standin/table.txt"

# Nothing fits into it.
quick 1 broken "$standin" HEDDLE_CUDA_STANDIN_MEMORY=3
rows_are broken FAILED conformance operators 'mlp x1'
grep -qE '^operators +FAILED .*wrong: Gather Relu Transpose' "$work/broken/table.txt"
