#!/bin/bash
# tools/gpu/warm_kernels.sh BUILT FOLDER SECONDS [NUMBER]: compiles for sm_90 what the speed plan of tools/gpu_test.sh will ask for, without a GPU.
#
# BUILT is a build tree with lib/test/compiling_device.so, FOLDER gets the programs under the names that the plugin looks them up by: of
# source, architecture and version of NVRTC. First the nets and attention, then the operators that have changed, until the SECONDS are over;
# what FOLDER has already costs next to nothing, so that a second call goes on where the first one ended. With NUMBER, the first so many of
# them alone.
set -euo pipefail
[ $# -eq 3 ] || [ $# -eq 4 ] || {
  sed -n '2p' "$0" | cut -c3- >&2
  exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$1" && pwd)
mkdir -p "$2"
chmod 700 "$2"
folder=$(cd "$2" && pwd)
seconds=$3
quick=0
# shellcheck source=tools/gpu/parts_common.sh
. "$here/parts_common.sh"
# shellcheck source=tools/gpu/parts_attention.sh
. "$here/parts_attention.sh"
[ -f "$root/lib/test/compiling_device.so" ] || {
  echo "warm_kernels: $root/lib/test/compiling_device.so is not built; it is where the CUDA toolkit's headers are" >&2
  exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export root here quick work HEDDLE_CUDA_CACHE=$folder HEDDLE_CUDA_STANDIN=$root/lib/test/compiling_device.so HEDDLE_TEST_FOLDER=$root
export HEDDLE_COMPILING_LOG=$work/compiled HEDDLE_CONFORMANCE_DEVICE=cuda:0
touch "$HEDDLE_COMPILING_LOG"

prepare() { # NET
  heddle plan "$1" --device cuda:0 --copies auto >/dev/null
}
net_job() { # NET BATCH: in f32 and bf16
  local own=$work/$1_x$2
  mkdir "$own"
  heddle model "$1" --batch "$2" -o "$own/net.heddle" --quiet
  prepare "$own/net.heddle"
  heddle convert "$own/net.heddle" "$own/net.json" --quiet
  python3 "$here/net_in_bf16.py" "$own/net.json" "$own/bf16.json"
  prepare "$own/bf16.json" || true
  rm -r "$own"
}
training_job() { # NET BATCH
  local own=$work/train_$1
  mkdir "$own"
  heddle model "$1" --loss -o "$own/net.heddle" --quiet
  heddle train "$own/net.heddle" --devices cuda:0 --steps 1 --batch "$2" --data synthetic --samples "$2" --no-output --quiet
  rm -r "$own"
}
attention_job() { # what attention_net takes
  local net way
  net=$(mktemp -p "$work" attention.XXXXXX.json)
  for way in check alone; do
    attention_net "$@" $way >"$net"
    prepare "$net"
  done
}
# The numbers are wrong, so all tests fail, and what they have compiled stays.
operator_job() { # NAME
  "$root/bin/heddle_conformance_tests" --gtest_filter="Operators/OnDevice.AgreesWithItsReference/$1"
}
job() { # KIND ARGUMENT...
  "$1_job" "${@:2}" >"$work/log.$$" 2>&1 || true
  rm -f "$work/log.$$"
  echo "$*" >>"$work/done"
}
all_jobs() {
  "$here/../gpu_test.sh" --plan speed --list | cut -f3 | awk '
    $1 == "part_precisions" { print "net", $2, $3 }
    $1 == "part_training" { print "training", $2, $3 }'
  attention_cases | sed 's/^/attention /'
  "$here/changed_operators.sh" | awk '{ print "operator", $1 }'
}

all_jobs | awk -v most="${4:-1000000}" 'NR <= most' >"$work/jobs"
touch "$work/done"
export -f job prepare net_job training_job attention_job operator_job attention_net attention_nodes heddle ours
status=0
timeout --kill-after=5 "$seconds" xargs -P "$(processes)" -I{} bash -c 'job {}' <"$work/jobs" || status=$?
[ $status -eq 0 ] || [ $status -eq 124 ] || [ $status -eq 137 ] || exit $status
awk -v done="$(wc -l <"$work/done")" -v jobs="$(wc -l <"$work/jobs")" -v kept="$(find "$folder" -name '*.cubin' | wc -l)" '
  { sum += $1 }
  END { printf "warm_kernels: %d of %d nets and operators asked; %d programs compiled in %.1f s of NVRTC, %d in the folder\n", done, jobs, NR, sum / 1000, kept }' \
  "$HEDDLE_COMPILING_LOG"
