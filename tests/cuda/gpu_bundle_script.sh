#!/bin/bash
# gpu_bundle_script.sh SOURCE BUILD WORK: what a bundle brings to a machine with a GPU (tools/bundle.sh): the list of operators that have
# changed, and kernels that were compiled ahead. Ends with 77 where NVRTC is not installed, once the list is tested.
set -euo pipefail
trap 'echo "line $LINENO: not as expected"' ERR
source=$1 build=$2 work=$3
rm -rf "$work"
mkdir -p "$work"

# ---------------------------------------------------------------- the operators that have changed

copy=$work/copy
mkdir -p "$copy"/{plugins,docs,tools/gpu}
cp -r "$source/plugins/cuda" "$copy/plugins/"
cp "$source/docs/operators_by_device.md" "$copy/docs/"
cp "$source"/tools/gpu/{changed_operators.sh,last_run} "$copy/tools/gpu/"
in_copy() {
  git -C "$copy" -c user.name=test -c user.email=test@example.org -c commit.gpgsign=false "$@"
}
in_copy init -q
rm "$copy/plugins/cuda/kernels/topk.cc"
in_copy add -A
in_copy commit -qm "before"
# NAME EXPECTED: what is said of the copy as it is now, in one line; then it is again as it was.
changes_are() {
  local said
  said=$("$copy/tools/gpu/changed_operators.sh" --since HEAD | paste -sd' ' -)
  in_copy checkout -q .
  in_copy clean -qfd
  [ "$said" = "$2" ] || {
    printf '%s: said     "%s"\n' "$1" "$said"
    printf '%s: expected "%s"\n' "$1" "$2"
    exit 1
  }
}
changed() { # FILE
  echo 'static int planted = 1;' >>"$copy/plugins/cuda/$1"
}
changes_are nothing ''
changed text/pool.cuh
changes_are "a text" 'AveragePool own LpPool own MaxPool own'
changed generate/image/pool_launches.h
changes_are "what a kernel includes" 'AveragePool own LpPool own MaxPool own'
changed kernels/update.cc
changed kernels/pool.cc
changes_are "those of training first" 'heddle_AccumulateAdd own heddle_SgdUpdate own AveragePool own LpPool own MaxPool own heddle_Assign own heddle_StepIncrement own'
cp "$source/plugins/cuda/kernels/topk.cc" "$copy/plugins/cuda/kernels/"
changed kernels/pool.cc
changes_are "a new one before others" 'TopK new AveragePool own LpPool own MaxPool own'
sed -i 's:^// :// as it always did\n// :' "$copy/plugins/cuda/text/pool.cuh"
changes_are "comments" ''
changed text/element.cuh
all=$("$copy/tools/gpu/changed_operators.sh" --since HEAD)
in_copy checkout -q .
for operator in Relu Softmax Conv MatMul Gather heddle_SgdUpdate; do grep -qx "$operator common" <<<"$all"; done
[ "$(wc -l <<<"$all")" -gt 100 ]
# Without the commit all of them have changed, and none is called new.
[ "$("$copy/tools/gpu/changed_operators.sh" --since 0000000 2>"$work/unknown.txt")" = "$all" ]
grep -qx 'changed_operators: there is no commit 0000000 here, so all operators count as changed' "$work/unknown.txt"

# ---------------------------------------------------------------- kernels

heddle=$build/bin/heddle device=$build/lib/test/compiling_device.so
for built in "$heddle" "$device"; do
  [ -e "$built" ] || {
    echo "$built is not built"
    exit 1
  }
done
export HEDDLE_COMPILING_LOG=$work/compiled
# FOLDER: plans a net for the H200 that is not here; $work/compiled has a line for each kernel that NVRTC compiled for it.
prepare() {
  : >"$work/compiled"
  env HEDDLE_CUDA_STANDIN="$device" HEDDLE_CUDA_CACHE="$1" "$heddle" plan "$work/net.heddle" --device cuda:0 --copies auto >"$work/plan.txt" 2>&1
}
"$heddle" model lstm_tagger -o "$work/net.heddle" --quiet
if ! prepare "$work/kernels" && grep -q '^compiling_device: NVRTC can not be opened' "$work/plan.txt"; then
  cat "$work/plan.txt"
  exit 77
fi
first=$(wc -l <"$work/compiled")
[ "$first" -gt 0 ] && [ "$(find "$work/kernels" -name 'sm_90-[1-9]*.cubin' | wc -l)" -eq "$first" ]
# A second process finds them all.
prepare "$work/kernels"
[ ! -s "$work/compiled" ]

# A bundle's kernels become the first content of the cache, and the plugin takes them for its own.
bundle=$work/bundle
mkdir -p "$bundle/gpu/kernels"
cp "$source/tools/gpu_test.sh" "$bundle/"
cp "$source"/tools/gpu/parts_*.sh "$source"/tools/gpu/{libraries.sh,last_run} "$bundle/gpu/"
cp "$work"/kernels/*.cubin "$bundle/gpu/kernels/"
chmod 666 "$bundle"/gpu/kernels/*
(umask 0 && env HEDDLE_CUDA_STANDIN= CUDA_VISIBLE_DEVICES=-1 "$bundle/gpu_test.sh" --plan speed --quick --out "$work/out" "$build") >"$work/out.txt"
[ "$(wc -l <"$work/out/kernels.before")" -eq "$first" ]
prepare "$work/out/kernels"
[ ! -s "$work/compiled" ]
# What the plugin has read is known by its time.
[ "$(find "$work/out/kernels" -name '*.cubin' -newer "$work/out/kernels.begin" | wc -l)" -eq "$first" ]
# One that is damaged is compiled again.
file=$(find "$work/out/kernels" -name '*.cubin' | head -n 1)
printf x | dd of="$file" bs=1 seek=100 conv=notrunc status=none
prepare "$work/out/kernels"
[ "$(wc -l <"$work/compiled")" -eq 1 ]

# The list of what is compiled ahead begins with a net that is trained.
"$source/tools/gpu/warm_kernels.sh" "$build" "$work/warm" 200 1 >"$work/warm.txt"
cat "$work/warm.txt"
grep -qE '^warm_kernels: 1 of 1 nets and operators asked; ([1-9][0-9]*) programs compiled in [0-9.]+ s of NVRTC, \1 in the folder$' "$work/warm.txt"
