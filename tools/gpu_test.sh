#!/bin/bash
# tools/gpu_test.sh [--quick] [--seconds N] [--out FOLDER] [FOLDER]: the CUDA plugin on this machine's GPU, in under ten minutes, and one table.
#
# FOLDER is a bundle (tools/bundle.sh, which has this script in it: then it is the default) or a build tree (else build/dev). Nothing is
# installed or fetched; NVIDIA's libraries are looked for in the usual places, pip's wheels included. Each part has a time limit of its own,
# and all of them N seconds (570). What they print lies in FOLDER/gpu_test, or in --out: a folder that is not there yet, is empty, or has the
# table of an earlier run, whose files are deleted. A part passes, fails, or is skipped with the reason:
#
# devices       what `heddle devices` says of device 0; without one all else is skipped
# facts         tools/gpu/gpu_facts.cu
# conformance   tests/device on it
# operators     every operator that has a kernel there, in all dtypes and shapes of tests/conformance, against references in long double;
#               a process for each, or four, so that one that breaks the device or hangs is one failure
# memcheck, racecheck   some of them under compute-sanitizer, where it is there and can attach
# NET xBATCH    heddle bench; "pytorch": the same in PyTorch, as it is and compiled, where it is there
#
# --quick takes few operators, nets and runs: to see that all of it works. Ends with 1 when a part failed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/gpu/libraries.sh
. "$here/gpu/libraries.sh"

# The table's columns, tab-separated on standard input. Its first line also marks a folder as one of this script's, from the start of a run.
table() {
  awk -F '\t' '{ printf "%-22s %-8s %7s  %s\n", $1, $2, $3, $4 }'
}
columns=$'part\tresult\tseconds\tdetail'
# Nothing is deleted that this script did not write.
is_replaceable() { # FOLDER
  [ -e "$1" ] || return 0
  [ -d "$1" ] || return 1
  [ -n "$(ls -A "$1")" ] || return 0
  [ -f "$1/table.txt" ] && [ "$(head -n 1 "$1/table.txt")" = "$(printf '%s\n' "$columns" | table)" ]
}
usage() {
  sed -n '2p' "$here/$(basename "$0")" | cut -c3-
}
part=
if [ "${1:-}" = --part ]; then # what run_part calls, with all else in the environment
  part=$2
else
  quick=0 seconds=570 out='' root=''
  while [ $# -gt 0 ]; do
    case $1 in
      --quick) quick=1; shift ;;
      --seconds) seconds=${2:?--seconds takes a number}; shift 2 ;;
      --out) out=${2:?--out takes a folder}; shift 2 ;;
      --help) usage; exit 0 ;;
      -*) echo "unknown option $1" >&2; usage >&2; exit 2 ;;
      *) root=$1; shift ;;
    esac
  done
  if [ -z "$root" ]; then
    root=$here
    [ -x "$here/bin/heddle" ] || root=$here/../build/dev
  fi
  [ -x "$root/bin/heddle" ] || {
    echo "gpu_test: $root has no bin/heddle: name a bundle or a build tree" >&2
    exit 2
  }
  root=$(cd "$root" && pwd)
  out=${out:-$root/gpu_test}
  is_replaceable "$out" || {
    echo "gpu_test: $out is neither empty nor the folder of an earlier run, so it stays as it is: name another with --out, or delete it" >&2
    exit 2
  }
  mkdir -p "$out"
  find "$out/" -mindepth 1 -delete
  out=$(cd "$out" && pwd)
  printf '%s\n' "$columns" | table >"$out/table.txt"
  export quick root out
fi

# ---------------------------------------------------------------- what parts have in common

skipped=77
skip() {
  say "$*"
  exit $skipped
}
say() { # The detail of the part's row: the last one counts.
  printf '%s\n' "$*" >"$out/$part.detail"
}
# A program of ours, with the libraries that came with it.
ours() {
  LD_LIBRARY_PATH=$root/lib/shared${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}
processes() { # Side by side: most of their time goes into compiling kernels, and each has half a gigabyte of the device (estimated, not measured).
  local cores
  cores=$(nproc)
  echo $((cores < 16 ? cores : 16))
}
gtest_failures() { # names, of a GoogleTest log's last list
  sed -n 's/^\[  FAILED  \] \([^ ,]*\)\(, where.*\)\?$/\1/p' "$1" | sort -u | tr '\n' ' '
}

# ---------------------------------------------------------------- the parts

part_devices() {
  ours "$root/bin/heddle" devices
  local line
  line=$(grep '^cuda:0 ' "$out/devices.log") || skip "no device: $(sed -n 's/^cuda: none, //p' "$out/devices.log")"
  say "$line"
}

part_facts() {
  [ -x "$root/bin/gpu_facts" ] || skip "no bin/gpu_facts: there was no nvcc when the bundle was made, or this is a build tree"
  local status=0
  LD_LIBRARY_PATH=$HEDDLE_CUDA_LIBRARIES:$root/lib/shared "$root/bin/gpu_facts" || status=$?
  [ $status -ne 2 ] || skip "$(tail -n 1 "$out/facts.log")"
  [ $status -eq 0 ] || say "$(tail -n 1 "$out/facts.log")"
  [ $status -ne 0 ] || say "$(head -n 1 "$out/facts.log")"
  return $status
}

part_conformance() {
  local filter='*/cuda' status=0
  [ "$quick" -eq 0 ] || filter='*DeviceNets.*/cuda:*DevicePlacement.*/cuda'
  ours env HEDDLE_TEST_GPU=1 "$root/bin/heddle_device_tests" --gtest_filter="$filter" || status=$?
  local passed not_for_it
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$out/conformance.log")
  not_for_it=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$out/conformance.log")
  if [ $status -ne 0 ]; then
    say "${passed:-0} tests passed; failed: $(gtest_failures "$out/conformance.log")"
    return 1
  fi
  say "${passed:-0} tests passed, ${not_for_it:-0} are not for such a device"
  [ "${passed:-0}" -gt 0 ]
}

one_operator() { # NAME[:PART/OF] LIMIT: the tests of one operator on the device, or every OF-th of them, its own process
  local name=${1%:*} log=$out/operators/${1//[:\/]/_}.log status=0 which=1/1
  [ "$name" = "$1" ] || which=${1#*:}
  ours env HEDDLE_CONFORMANCE_DEVICE=cuda:0 HEDDLE_CONFORMANCE_PART="$which" timeout --foreground --kill-after=5 "$2" \
    "$root/bin/heddle_conformance_tests" --gtest_filter="Operators/OnDevice.AgreesWithItsReference/$name" >"$log" 2>&1 || status=$?
  case $status in
    0) if grep -q '^\[  SKIPPED \]' "$log"; then echo "without $1"; else echo "right $1"; fi ;;
    124 | 137) echo "wrong $1" && echo "time limit of $2 s" >>"$log" ;;
    *) echo "wrong $1" ;;
  esac
}
operator_names() { # those that have the most kernels to compile first, and in parts
  if [ "$quick" -eq 1 ]; then
    printf '%s\n' Relu Transpose Gather
    return
  fi
  ours env HEDDLE_CONFORMANCE_DEVICE=cuda:0 "$root/bin/heddle_conformance_tests" --gtest_list_tests --gtest_filter='Operators/OnDevice.*' |
    sed -nE 's/^ +AgreesWithItsReference\/(\S+).*/\1/p' |
    awk '/^(Max|Min|heddle_Pointwise|Resize|ArgMax|ArgMin|SoftmaxCrossEntropyLoss)$/ { for (part = 1; part <= 4; ++part) print $0 ":" part "/4"; next }
         { others[++count] = $0 } END { for (i = 1; i <= count; ++i) print others[i] }'
}
first_failure() { # LOG: in one line
  sed -nE '/: Failure$/{n;/^Failed$/n;p;q}' "$1" | cut -c1-300
}

part_operators() {
  mkdir -p "$out/operators"
  export -f one_operator ours
  operator_names >"$out/operators.names"
  # What is still to be done in time is told: the rest of the part is short.
  timeout --foreground $((${part_seconds:?} - 10)) xargs -P "$(processes)" -I{} bash -c 'one_operator {} 120' \
    <"$out/operators.names" >"$out/operators.list" || true
  local right wrong without calls name why unfinished
  unfinished=$(grep -vxFf <(cut -d' ' -f2 "$out/operators.list") "$out/operators.names" | tr '\n' ' ' || true)
  right=$(sed -n 's/^right //p' "$out/operators.list" | cut -d: -f1 | sort -u |
    grep -cvxFf <({ sed -n 's/^wrong //p' "$out/operators.list"; tr ' ' '\n' <<<"$unfinished"; } | cut -d: -f1 | grep .) || true)
  without=$(sed -n 's/^without //p' "$out/operators.list" | cut -d: -f1 | sort -u | grep -c . || true)
  wrong=$(sed -n 's/^wrong //p' "$out/operators.list" | sort | tr '\n' ' ')
  calls=$(cat "$out"/operators/*.log | sed -nE 's/.* on cuda:0: ([0-9]+) calls judged.*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }')
  for name in $wrong; do
    why=$(first_failure "$out/operators/${name//[:\/]/_}.log")
    echo "wrong: $name: ${why:-$(tail -n 1 "$out/operators/${name//[:\/]/_}.log" | cut -c1-300)}"
  done
  [ -z "$unfinished" ] || echo "not finished: $unfinished"
  echo "without a kernel there: $(sed -n 's/^without //p' "$out/operators.list" | sort | tr '\n' ' ')"
  say "$right right, $calls calls, $without without a kernel${wrong:+, wrong: $wrong}${unfinished:+, $(wc -w <<<"$unfinished") not finished}"
  [ -z "$wrong" ] && [ -z "$unfinished" ] && [ "$right" -gt 0 ]
}

# Each in a process of its own; kernels are some hundred times slower so (estimated, not measured). Only what its time limit ended is
# unfinished: a crash is wrong.
sanitized() { # TOOL OPERATOR
  local log=$out/$1/$2.log status=0
  ours env HEDDLE_CONFORMANCE_DEVICE=cuda:0 timeout --foreground --kill-after=5 40 "$sanitizer" --tool "$1" --error-exitcode 99 \
    "$root/bin/heddle_conformance_tests" --gtest_filter="Operators/OnDevice.AgreesWithItsReference/$2" >"$log" 2>&1 || status=$?
  if grep -qE "$unattached" "$log"; then
    echo "unattached $2"
  elif [ $status -eq 0 ] && grep -qE 'ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards' "$log" && grep -q '^\[  PASSED  \] 1 test' "$log"; then
    echo "clean $2"
  elif [ $status -eq 124 ] || [ $status -eq 137 ]; then
    echo "unfinished $2"
  else
    # The shell's own line on a signal, which the status tells, is not the program's last.
    echo "wrong $2 (exit status $status: $(grep -v '^environment: line ' "$log" | tail -n 1 | cut -c1-200))"
  fi
}
part_sanitizer() { # TOOL
  sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer || true)
  [ -n "$sanitizer" ] || skip "compute-sanitizer is not installed"
  [ -z "${HEDDLE_CUDA_STANDIN:-}" ] || skip "the stand-in has no kernels that compute-sanitizer could look at"
  export sanitizer unattached='Device not supported|Unable to|failed to initialize|LibraryNotLoaded'
  export -f sanitized ours
  mkdir -p "$out/$1"
  local operators=(Relu Softmax ReduceSum Transpose Gather CumSum TopK GRU NonZero)
  [ "$quick" -eq 0 ] || operators=(Relu)
  printf '%s\n' "${operators[@]}" | xargs -P "$(processes)" -I{} bash -c "sanitized $1 {}" >"$out/$1.list"
  local clean wrong unfinished
  clean=$(sed -n 's/^clean //p' "$out/$1.list" | sort | tr '\n' ' ')
  wrong=$(sed -n 's/^wrong //p' "$out/$1.list" | sort | tr '\n' ' ')
  unfinished=$(sed -nE 's/^(unfinished|unattached) //p' "$out/$1.list" | sort | tr '\n' ' ')
  [ -z "$wrong" ] || { say "wrong: $wrong"; return 1; }
  if [ -z "$clean" ] && grep -q '^unattached ' "$out/$1.list"; then
    skip "compute-sanitizer can not attach: $(grep -hE "$unattached" "$out/$1"/*.log | head -n 1)"
  fi
  [ -n "$clean" ] || { say "none finished: $unfinished"; return 1; }
  say "clean: $clean${unfinished:+; not finished: $unfinished}"
}

part_bench() { # NET BATCH
  local net=$out/$1_x$2.heddle runs=(--repeat 20 --warmup 5)
  [ "$quick" -eq 0 ] || runs=(--repeat 3 --warmup 1)
  ours "$root/bin/heddle" model "$1" --batch "$2" -o "$net" --quiet
  ours "$root/bin/heddle" bench "$net" --device cuda:0 --copies auto --threads 1 "${runs[@]}"
  rm -f "$net" "${net%.heddle}.safetensors"
  say "$(sed -n 's/^1 threads: //p' "$out/$part.log")"
}

part_pytorch() { # NET BATCH
  command -v python3 >/dev/null || skip "there is no python3"
  [ -z "${HEDDLE_CUDA_STANDIN:-}" ] || skip "nothing to compare the stand-in with"
  local status=0 limit=$((${part_seconds:?} - 5))
  timeout --foreground --kill-after=2 "$limit" python3 "$here/gpu/pytorch_bench.py" "$1" "$2" || status=$?
  [ $status -ne 3 ] || skip "$(tail -n 1 "$out/$part.log")"
  local eager compiled
  eager=$(sed -n 's/^eager: //p' "$out/$part.log")
  compiled=$(sed -n 's/^compile: //p' "$out/$part.log")
  [ $status -ne 124 ] || compiled="not within $limit s"
  say "eager ${eager:-not measured}; compiled ${compiled:-not measured}"
  [ -n "$eager" ] && { [ $status -eq 0 ] || [ $status -eq 124 ]; }
}

if [ -n "$part" ]; then
  shift 2
  "$@"
  exit
fi

# ---------------------------------------------------------------- all of it

rows=()
row() { # PART RESULT SECONDS DETAIL
  rows+=("$1"$'\t'"$2"$'\t'"$3"$'\t'"$4")
  printf '%-16s %s (%s s)%s\n' "$1" "$2" "$3" "${4:+: $4}"
}
passes=0 failures=0 skips=0 no_device='' group=''
trap '[ -z "$group" ] || kill -KILL -- -"$group"; exit 130' INT TERM
run_part() { # NAME LIMIT FUNCTION ARGUMENT...
  local name=$1 limit=$2 file left status=0 begin=$SECONDS
  shift 2
  file=${name// /_}
  left=$((seconds - SECONDS))
  [ "$limit" -le "$left" ] || limit=$left
  if [ -n "$no_device" ] || [ "$limit" -lt 5 ]; then
    skips=$((skips + 1))
    row "$name" skipped 0 "${no_device:-no time is left of $seconds s}"
    return
  fi
  rm -f "$out/$file.detail"
  # In a process group of its own, of which nothing is left behind it.
  part_seconds=$limit timeout --kill-after=5 "$limit" "$here/$(basename "$0")" --part "$file" "$@" >"$out/$file.log" 2>&1 &
  group=$!
  wait $group || status=$?
  kill -KILL -- -$group 2>/dev/null || true
  group=
  local detail=''
  [ ! -f "$out/$file.detail" ] || detail=$(cat "$out/$file.detail")
  case $status in
    0) passes=$((passes + 1)); row "$name" passed $((SECONDS - begin)) "$detail" ;;
    "$skipped") skips=$((skips + 1)); row "$name" skipped $((SECONDS - begin)) "$detail" ;;
    124 | 137) failures=$((failures + 1)); row "$name" FAILED $((SECONDS - begin)) "time limit of $limit s${detail:+: $detail}" ;;
    *) failures=$((failures + 1)); row "$name" FAILED $((SECONDS - begin)) "${detail:-$(tail -n 1 "$out/$file.log" | cut -c1-300)}" ;;
  esac
}

echo "gpu_test: $(ours "$root/bin/heddle" --version), $root"
if [ -n "${HEDDLE_CUDA_STANDIN:-}" ]; then
  echo "gpu_test: $HEDDLE_CUDA_STANDIN stands in for NVIDIA's libraries: what follows says nothing of a GPU"
else
  # The plugin says which it opens.
  major=$(HEDDLE_CUDA_LIBRARIES=/nowhere ours "$root/bin/heddle" devices 2>&1 | sed -nE 's/.*libcudart\.so\.([0-9]+).*/\1/p' | head -n 1)
  [ -n "$major" ] || {
    echo "gpu_test: $root has no CUDA plugin" >&2
    exit 2
  }
  mapfile -t folders < <(cuda_folders "$major")
  echo "gpu_test: NVIDIA's libraries, of CUDA $major:"
  cuda_libraries "$major" "${folders[@]}"
  # Never empty, which would be no list at all.
  HEDDLE_CUDA_LIBRARIES=$(IFS=:; echo "${folders[*]:-/nowhere}")
fi
export HEDDLE_CUDA_LIBRARIES=${HEDDLE_CUDA_LIBRARIES:-/nowhere} HEDDLE_TEST_FOLDER=$root HEDDLE_CUDA_CACHE=$out/kernels
# One device, whatever the machine has.
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0} HEDDLE_CUDA_STANDIN_DEVICES=1
CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%%,*}

nets=(resnet50 encoder) batches=(1 32)
[ "$quick" -eq 0 ] || nets=(mlp) batches=(1)
run_part devices 30 part_devices
if ! grep -q '^cuda:0 ' "$out/devices.log"; then
  no_device=$(cat "$out/devices.detail" 2>/dev/null || echo "no device: heddle devices failed")
  echo "gpu_test: $no_device"
fi
run_part facts 60 part_facts
run_part conformance 60 part_conformance
run_part operators 250 part_operators
run_part memcheck 50 part_sanitizer memcheck
run_part racecheck 50 part_sanitizer racecheck
for net in "${nets[@]}"; do
  for batch in "${batches[@]}"; do run_part "$net x$batch" 40 part_bench "$net" "$batch"; done
done
for net in "${nets[@]}"; do
  [ "$quick" -eq 0 ] || net=resnet50
  for batch in "${batches[@]}"; do run_part "pytorch $net x$batch" 55 part_pytorch "$net" "$batch"; done
done

echo
{
  printf '%s\n' "$columns"
  printf '%s\n' "${rows[@]}"
} | table | tee "$out/table.txt"
echo "gpu_test: $passes passed, $failures failed, $skips skipped, $SECONDS s; logs in $out"
[ $failures -eq 0 ]
