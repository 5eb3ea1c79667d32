#!/bin/bash
# tools/test.sh [--preset dev|release|asan|tsan] [--jobs N] [-- CTEST-OPTION...]
#
# Installs what is missing, configures, builds and runs the tests. Can be run again at any time; only what changed is built. The preset "dev"
# is the default; "asan" is AddressSanitizer with UndefinedBehaviorSanitizer, "tsan" is ThreadSanitizer on the runtime's own tests, with a
# libtbb that is built for it first.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev
jobs=$(nproc)
usage() {
  sed -n '2p' "$0" | cut -c3-
}
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?--preset takes a name}; shift 2 ;;
    --jobs) jobs=${2:?--jobs takes a number}; shift 2 ;;
    --help) usage; exit 0 ;;
    --) shift; break ;;
    *) echo "unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
done
case $preset in
  dev | release | asan | tsan) ;;
  *) echo "unknown preset $preset" >&2; usage >&2; exit 2 ;;
esac

say() {
  printf '\n== %s (%d s)\n' "$*" "$SECONDS"
}

say "packages"
tools/install_packages.sh
if [ "$preset" = tsan ]; then
  say "an instrumented libtbb"
  tools/tsan_tbb.sh
fi
say "configuring build/$preset"
cmake --preset "$preset"
say "building with $jobs jobs"
targets=()
[ "$preset" = tsan ] && targets=(--target heddle_threaded_tests)
cmake --build --preset "$preset" --parallel "$jobs" "${targets[@]}"
say "testing"
# ThreadSanitizer watches the code that has threads; the folders that compute and convert on one are asan's, as are checks of many
# operators, whose processes have one thread each.
filter=()
[ "$preset" = tsan ] && filter=(-L threads -E 'ToolPlugin.CheckPassesTheCpuPlugin|ToolMistakes')
status=0
# One more than there are processors: some tests wait for a second or two, for what is not to come.
ctest --preset "$preset" --parallel $((jobs + 1)) "${filter[@]}" "$@" || status=$?
# g++ 12's ThreadSanitizer now and then finds no place for its own memory and ends the process, before the test has said anything. Where
# that is all that failed, those tests are run again.
results=build/$preset/Testing/Temporary
if [ "$preset" = tsan ] && [ $status -ne 0 ] &&
  [ "$(grep -c . "$results/LastTestsFailed.log")" = "$(grep -c "ThreadSanitizer failed to allocate" "$results/LastTest.log")" ]; then
  say "testing again what ThreadSanitizer found no memory for"
  status=0
  ctest --preset "$preset" --rerun-failed "$@" || status=$?
fi
say "done with preset $preset: $([ $status -eq 0 ] && echo "all tests passed" || echo "some tests FAILED")"
exit $status
