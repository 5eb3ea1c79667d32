#!/bin/bash
# tools/gpu_test.sh [--plan full|speed] [--only PART[,PART]] [--list] [--quick] [--seconds N] [--out FOLDER] [FOLDER]: the CUDA plugin on this machine's GPU, in under ten minutes, and one table.
#
# FOLDER is a bundle (tools/bundle.sh, which has this script in it: then it is the default) or a build tree (else build/dev). Nothing is
# installed or fetched; NVIDIA's libraries are looked for in the usual places, pip's wheels included. Each part has a time limit of its own,
# and all of them N seconds (570). What they print lies in FOLDER/gpu_test, or in --out: a folder that is not there yet, is empty, or has the
# table of an earlier run, whose files are deleted. A part passes, fails, or is skipped with the reason; a failing one stops no other. Rows
# are written as they come, to table.txt and results.tsv: a run that is cut short keeps those that it had.
#
# --plan full    what the plugin can do (the default): all operators, tests of devices, whole nets. plan_full below has its parts
# --plan speed   what a run on a GPU has not said yet: operators that have changed since, fused attention, training, three precisions,
#                collectives, what may be captured, PyTorch at the end. plan_speed below has its parts
# --only PART,PART   these parts alone, and `devices`; "training" takes all whose first word it is. The folder of an earlier run keeps its
#                other rows and its compiled kernels, so that one part can be asked again
# --list         says which parts the plan has, with their limits in seconds and what they call, and runs none
# --quick        few operators, nets and runs: to see that all of it works
#
# docs/gpu_testing.md says what each part does. Parts are functions in tools/gpu/parts_*.sh. Ends with 1 when a part failed, with 2 where it
# can not begin.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/gpu/libraries.sh
. "$here/gpu/libraries.sh"
for topic in common device operators attention training nets; do
  # shellcheck source=/dev/null
  . "$here/gpu/parts_$topic.sh"
done

# ---------------------------------------------------------------- the plans

part_names=() part_limits=() part_calls=()
add() { # NAME LIMIT FUNCTION ARGUMENT...
  part_names+=("$1") part_limits+=("$2")
  shift 2
  part_calls+=("$*")
}
plan_full() {
  local -a nets=(resnet50 encoder) batches=(1 32)
  local net batch
  [ "$quick" -eq 0 ] || { nets=(mlp) batches=(1); }
  add devices 30 part_devices
  add facts 60 part_facts
  add conformance 60 part_conformance
  add operators 250 part_operators
  add memcheck 50 part_sanitizer memcheck
  add racecheck 50 part_sanitizer racecheck
  for net in "${nets[@]}"; do
    for batch in "${batches[@]}"; do add "$net x$batch" 40 part_bench "$net" "$batch"; done
  done
  for net in "${nets[@]}"; do
    [ "$quick" -eq 0 ] || net=resnet50
    for batch in "${batches[@]}"; do add "pytorch $net x$batch" 55 part_pytorch "$net" "$batch"; done
  done
}
# What is new comes first, and PyTorch, whose compiler takes what time there is, last.
plan_speed() {
  local -a nets=(resnet50 encoder inception_v3 lstm_tagger dlrm) batches=(1 32)
  local net batch
  [ "$quick" -eq 0 ] || { nets=(mlp) batches=(1); }
  add devices 15 part_devices
  add facts 40 part_facts --short
  add capture 20 part_capture
  add nccl 40 part_nccl
  add 'operators changed' 90 part_operators changed
  add attention 50 part_attention
  add 'training mlp' 20 part_training mlp 32
  if [ "$quick" -eq 0 ]; then
    add 'training dlrm' 30 part_training dlrm 128
    add 'training encoder x8' 50 part_training encoder 8
    add 'training resnet50 x32' 75 part_training resnet50 32
  fi
  for net in "${nets[@]}"; do
    for batch in "${batches[@]}"; do add "nets $net x$batch" 25 part_precisions "$net" "$batch"; done
  done
  add 'memcheck new' 25 part_sanitizer memcheck new
  add 'racecheck new' 25 part_sanitizer racecheck new
  add pytorch 120 part_pytorch_all
}

# ---------------------------------------------------------------- options

columns=$'part\tresult\tseconds\tdetail'
# The table's columns, tab-separated on standard input. Its first line also marks a folder as one of this script's, from the start of a run.
table() {
  awk -F '\t' '{ printf "%-22s %-8s %7s  %s\n", $1, $2, $3, $4 }'
}
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
# A part's name as it stands in the plan or in files, or the first word of several. `devices` is always asked: the others depend on it.
is_asked() { # NAME
  local asked
  [ -n "$only" ] && [ "$1" != devices ] || return 0
  for asked in "${only_parts[@]}"; do
    [[ ${1// /_} != "${asked// /_}" && ${1// /_} != "${asked// /_}_"* ]] || return 0
  done
  return 1
}
check_only() {
  local asked name is_known
  for asked in "${only_parts[@]}"; do
    is_known=0
    for name in "${part_names[@]}"; do
      only_parts=("$asked")
      ! is_asked "$name" || [[ $name = devices && $asked != devices ]] || is_known=1
    done
    [ $is_known -eq 1 ] || {
      echo "gpu_test: the plan $plan has no part \"$asked\"; it has: $(printf '%s, ' "${part_names[@]}" | sed 's/, $//')" >&2
      exit 2
    }
  done
  IFS=, read -ra only_parts <<<"$only"
}

if [ "${1:-}" = --part ]; then # what run_part calls, with all else in the environment
  # shellcheck disable=SC2034
  part=$2
  shift 2
  "$@"
  exit
fi

quick=0 seconds=570 out='' root='' plan=full only='' list=0
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=1; shift ;;
    --list) list=1; shift ;;
    --plan) plan=${2:?--plan takes full or speed}; shift 2 ;;
    --only) only=${2:?--only takes names of parts}; shift 2 ;;
    --seconds) seconds=${2:?--seconds takes a number}; shift 2 ;;
    --out) out=${2:?--out takes a folder}; shift 2 ;;
    --help) usage; exit 0 ;;
    -*) echo "unknown option $1" >&2; usage >&2; exit 2 ;;
    *) root=$1; shift ;;
  esac
done
case $plan in
  full | speed) ;;
  *) echo "gpu_test: there is no plan \"$plan\": full or speed" >&2; exit 2 ;;
esac
"plan_$plan"
IFS=, read -ra only_parts <<<"$only"
[ -z "$only" ] || check_only
if [ $list -eq 1 ]; then
  for i in "${!part_names[@]}"; do
    ! is_asked "${part_names[i]}" || printf '%s\t%s\t%s\n' "${part_names[i]}" "${part_limits[i]}" "${part_calls[i]}"
  done
  exit
fi
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
out=$(cd "$out" && pwd)
export quick root out

# ---------------------------------------------------------------- rows

results=$out/results.tsv
write_table() {
  table <"$results" >"$out/table.part"
  mv "$out/table.part" "$out/table.txt"
}
begin_results() {
  if [ -z "$only" ] || [ ! -f "$results" ]; then
    find "$out/" -mindepth 1 -delete
    printf '%s\n' "$columns" >"$results"
  fi
  write_table
}
row() { # PART RESULT SECONDS DETAIL: in place of the row that an earlier run has of that part
  local detail
  detail=$(tr '\t\n' '  ' <<<"$4" | sed 's/ $//')
  ROW=$(printf '%s\t%s\t%s\t%s' "$1" "$2" "$3" "$detail") awk -F '\t' -v name="$1" '
    $1 == name { print ENVIRON["ROW"]; is_there = 1; next }
    { print }
    END { if (!is_there) print ENVIRON["ROW"] }' "$results" >"$results.part"
  mv "$results.part" "$results"
  write_table
  printf '%-16s %s (%s s)%s\n' "$1" "$2" "$3" "${detail:+: $detail}"
}

# Compiled kernels: those that a bundle brings are the first content of the cache. The plugin touches what it reads.
begin_kernels() {
  export HEDDLE_CUDA_CACHE=$out/kernels
  [ -d "$HEDDLE_CUDA_CACHE" ] || mkdir -m 700 "$HEDDLE_CUDA_CACHE"
  if [ -d "$here/gpu/kernels" ] && ! on_standin; then
    # Thousands: more than fit into a command line. Others may not write what is loaded.
    cp -r "$here/gpu/kernels/." "$HEDDLE_CUDA_CACHE/"
    chmod -R go-w "$HEDDLE_CUDA_CACHE"
    find "$HEDDLE_CUDA_CACHE" -name '*.cubin' -exec touch -d @0 {} +
  fi
  find "$HEDDLE_CUDA_CACHE" -name '*.cubin' -printf '%f\n' >"$out/kernels.before"
  touch "$out/kernels.begin"
}
kernel_use() {
  local read compiled
  read=$(find "$HEDDLE_CUDA_CACHE" -name '*.cubin' -newer "$out/kernels.begin" -printf '%f\n' | grep -cxFf "$out/kernels.before" || true)
  compiled=$(find "$HEDDLE_CUDA_CACHE" -name '*.cubin' -printf '%f\n' | grep -cvxFf "$out/kernels.before" || true)
  echo "gpu_test: kernels: ${compiled:-0} compiled, ${read:-0} of the $(wc -l <"$out/kernels.before") that were there used"
}

passes=0 failures=0 skips=0 no_device='' group=''
trap '[ -z "$group" ] || kill -KILL -- -"$group"; exit 130' INT TERM
run_part() { # NAME LIMIT FUNCTION ARGUMENT...
  local name=$1 limit=$2 file left status=0 begin=$SECONDS detail=''
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
  # In a process group of its own, of which nothing is left after it.
  part_seconds=$limit timeout --kill-after=5 "$limit" "$here/$(basename "$0")" --part "$file" "$@" >"$out/$file.log" 2>&1 &
  group=$!
  wait $group || status=$?
  kill -KILL -- -$group 2>/dev/null || true
  group=
  # Weights of a part that was cut: hundreds of megabytes.
  find "$out" -name '*.safetensors' -delete
  [ ! -f "$out/$file.detail" ] || detail=$(cat "$out/$file.detail")
  case $status in
    0) passes=$((passes + 1)); row "$name" passed $((SECONDS - begin)) "$detail" ;;
    "${skipped:?}") skips=$((skips + 1)); row "$name" skipped $((SECONDS - begin)) "$detail" ;;
    124 | 137) failures=$((failures + 1)); row "$name" FAILED $((SECONDS - begin)) "time limit of $limit s${detail:+: $detail}" ;;
    *) failures=$((failures + 1)); row "$name" FAILED $((SECONDS - begin)) "${detail:-$(tail -n 1 "$out/$file.log" | cut -c1-300)}" ;;
  esac
}

# ---------------------------------------------------------------- all of it

begin_results
echo "gpu_test: $(heddle --version), $root, plan $plan${only:+: $only}"
if on_standin; then
  echo "gpu_test: $HEDDLE_CUDA_STANDIN stands in for NVIDIA's libraries: what follows says nothing of a GPU"
else
  # The plugin says which it opens.
  major=$(HEDDLE_CUDA_LIBRARIES=/nowhere heddle devices 2>&1 | sed -nE 's/.*libcudart\.so\.([0-9]+).*/\1/p' | head -n 1)
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
export HEDDLE_CUDA_LIBRARIES=${HEDDLE_CUDA_LIBRARIES:-/nowhere} HEDDLE_TEST_FOLDER=$root
# One device, whatever the machine has.
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0} HEDDLE_CUDA_STANDIN_DEVICES=1
CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%%,*}
begin_kernels

for i in "${!part_names[@]}"; do
  is_asked "${part_names[i]}" || continue
  read -ra call <<<"${part_calls[i]}"
  run_part "${part_names[i]}" "${part_limits[i]}" "${call[@]}"
  [ "${part_names[i]}" = devices ] || continue
  if ! grep -q '^cuda:0 ' "$out/devices.log"; then
    no_device=$(cat "$out/devices.detail" 2>/dev/null || echo "no device: heddle devices failed")
    echo "gpu_test: $no_device"
  fi
done

echo
cat "$out/table.txt"
[ -n "$no_device" ] || kernel_use
# All but what was compiled, to be carried away.
(cd "$out" && find . \( -path ./kernels -o -path ./pytorch_cache -o -name 'logs.tar.gz*' \) -prune -o -type f -print0 |
  tar --null -T - -czf logs.tar.gz.part && mv logs.tar.gz.part logs.tar.gz) || echo "gpu_test: the logs could not be packed"
echo "gpu_test: $passes passed, $failures failed, $skips skipped, $SECONDS s; logs in $out"
[ $failures -eq 0 ]
