#!/bin/bash
# tests/fuzz/planted/hunt.sh [--preset NAME] [--seed S] [PATCH...]
#
# Puts one planted bug after the other into a copy of the sources, builds what it touches, and runs the fuzzer that should find it, until it
# does. Prints after how many cases; ends with 1 when one was not found. Started by tools/soak.sh --planted.
# Without sanitizers (--preset dev) the ONNX fuzzer runs under valgrind; the operators' has guard pages of its own.
set -uo pipefail
cd "$(dirname "$0")/../../.."
preset=asan
seed=1
patches=()
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?}; shift 2 ;;
    --seed) seed=${2:?}; shift 2 ;;
    *) patches+=("$1"); shift ;;
  esac
done
[ ${#patches[@]} -gt 0 ] || patches=(tests/fuzz/planted/*.patch)

copy=build/planted
mkdir -p $copy build/soak
find $copy -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +  # sources that have moved or gone since
git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -xmf - -C $copy || exit 2  # -m: what a patch changed is newer, and has to be built again
(cd $copy && cmake --preset "$preset" >/dev/null) || exit 2
bin=$copy/build/$preset/bin
under=()
[ "$preset" = asan ] || under=(valgrind -q --error-exitcode=99 --exit-on-first-error=yes)
python=build/soak/venv/bin/python

build() {
  cmake --build $copy/build/"$preset" -j "${HEDDLE_BUILD_JOBS:-2}" --target heddle_differential_driver heddle_operator_fuzz heddle_onnx_fuzz cpu >$copy/build.log 2>&1 ||
    { tail -20 $copy/build.log; exit 2; }
}
differential() { $python $copy/tests/differential/fuzz.py --driver $bin/heddle_differential_driver --seed "$seed" --keep $copy/cases "$@"; }

build
if printf '%s\n' "${patches[@]}" | grep -q '/0[1-6]_'; then
  echo "planted: what the fuzzers say of the sources as they are"
  differential --cases "${HEDDLE_PLANTED_CASES:-4000}" --write-unclassified $copy/known >$copy/baseline.log
  echo "  differential: $(wc -l <$copy/known) cases with differences that are not the planted bugs'"
fi

# A hostile fuzzer on $1 cases: 0 when it found nothing, 124 when it did not come to its end.
operators() { timeout 900 $bin/heddle_operator_fuzz --seed "$seed" --cases "$1" --seconds 800 --keep $copy/operator.case; }
onnx() { timeout 900 "${under[@]}" $bin/heddle_onnx_fuzz --seed "$seed" --cases "$1" --seconds 800 --keep $copy/onnx.case; }
if printf '%s\n' "${patches[@]}" | grep -q '/0[78]_'; then
  operators 16000 >$copy/baseline.log 2>&1 || { echo "planted: heddle_operator_fuzz finds something, or does not end, in the sources as they are"; exit 2; }
fi
if printf '%s\n' "${patches[@]}" | grep -q '/\(09\|10\)_'; then
  onnx 4000 >$copy/baseline.log 2>&1 || { echo "planted: heddle_onnx_fuzz finds something, or does not end, in the sources as they are"; exit 2; }
fi

lost=0
applied=
trap '[ -z "$applied" ] || patch -d $copy -p1 -R -F3 -s <"$applied"' EXIT
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  patch -d $copy -p1 -F3 -s <"$patch" || { echo "$name: the patch no longer fits"; lost=1; continue; }
  applied=$patch
  build
  rm -f $copy/operator.case* $copy/onnx.case*
  found=
  case $name in
    0[1-6]_*)
      differential --cases "${HEDDLE_PLANTED_CASES:-4000}" --ignore $copy/known --stop-at-first >$copy/$name.log
      [ $? -eq 1 ] && found="case $(sed -n 's/^case \([0-9]*\):.*/\1/p' $copy/$name.log | head -1) of the differential fuzzer, $(sed -n 's/^case [0-9]*: //p' $copy/$name.log | head -1)" ;;
    07_* | 08_*)
      operators 40000 >$copy/$name.log 2>&1
      status=$?
      [ $status -eq 0 ] || [ $status -eq 124 ] || found="heddle_operator_fuzz $(cat $copy/operator.case.txt)" ;;
    *)
      onnx 40000 >$copy/$name.log 2>&1
      status=$?
      [ $status -eq 0 ] || [ $status -eq 124 ] || found="heddle_onnx_fuzz $(cat $copy/onnx.case.txt)" ;;
  esac
  if [ -n "$found" ]; then echo "$name: found, $found"; else echo "$name: NOT FOUND"; lost=1; fi
  patch -d $copy -p1 -R -F3 -s <"$patch"
  applied=
done
exit $lost
