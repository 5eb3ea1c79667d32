# Sourced by tools/gpu_test.sh: what its parts have in common. A part runs in a process of its own, which has from its environment `out`,
# the folder of the results, `root`, the bundle or build tree, `quick` and `part_seconds`, its limit; `part` is its name in files.
# shellcheck shell=bash disable=SC2154

skipped=77
skip() {
  say "$*"
  exit $skipped
}
say() { # The detail of the part's row: the last one counts.
  printf '%s\n' "$*" >"${out:?}/${part:?}.detail"
}
# A program of ours, with the libraries that came with it.
ours() {
  LD_LIBRARY_PATH=${root:?}/lib/shared${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}
heddle() {
  ours "$root/bin/heddle" "$@"
}
processes() { # Side by side: most of their time goes into compiling kernels, and each has half a gigabyte of the device (estimated, not measured).
  local cores
  cores=$(nproc)
  echo $((cores < 16 ? cores : 16))
}
gtest_failures() { # names, of a GoogleTest log's last list
  sed -n 's/^\[  FAILED  \] \([^ ,]*\)\(, where.*\)\?$/\1/p' "$1" | sort -u | tr '\n' ' '
}
gtest_passes() { # LOG: how many
  sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$1"
}
gtest_skips() {
  sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$1"
}
on_standin() {
  [ -n "${HEDDLE_CUDA_STANDIN:-}" ]
}
# The first number of a key in an object that `heddle --json` printed; empty where there is none.
json_number() { # KEY, the object on standard input
  awk -v key="\"$1\":" '(at = index($0, key)) && !is_found && match(substr($0, at + length(key)), /^ *-?[0-9][0-9.e+-]*/) {
    text = substr($0, at + length(key), RLENGTH); gsub(/ /, "", text); print text; is_found = 1
  }'
}
# The last message of its diagnostics, which is the error where there is one.
json_message() { # the object on standard input
  sed -nE 's/.*"message": "(.*)",?$/\1/p' | tail -n 1 | sed 's:\\":":g' | cut -c1-300
}
one_line() { # the object on standard input, in one line
  tr -d '\n' | sed -E 's/  +/ /g'
  echo
}
