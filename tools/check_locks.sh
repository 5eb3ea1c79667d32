#!/bin/bash
# tools/check_locks.sh [SOURCE...]: has clang check the thread annotations of runtime/base/threads/mutex.h, in the sources of runtime/ that
# include this header, or a header which does. Needs no build. Ends with 1 where a guarded member is used
# without its lock, with 77 where there is no clang.
set -euo pipefail
cd "$(dirname "$0")/.."

clang=${CLANG:-clang++}
if ! command -v "$clang" >/dev/null; then
  echo "check_locks: no $clang on this machine, locks are not checked"
  exit 77
fi
including() { # HEADER...: the files of runtime/ that include one of them
  printf '#include "%s"\n' "$@" | grep -rlFf - --include='*.h' --include='*.cc' runtime || true
}
# Warnings about locks alone: the compiler of the build and clang-tidy (tools/lint.sh) report the others.
options=(-std=c++20 -Wno-everything -Wthread-safety -Werror=thread-safety -Iruntime -Iruntime/include -DBOOST_DLL_USE_STD_FS)
sources=("$@")
if [ $# -eq 0 ]; then
  mapfile -t direct < <(including base/threads/mutex.h)
  mapfile -t headers < <(printf '%s\n' "${direct[@]}" | grep '\.h$' | sed 's,^runtime/,,')
  mapfile -t sources < <({ printf '%s\n' "${direct[@]}"; including "${headers[@]}"; } | grep '\.cc$' | sort -u)
  [ ${#sources[@]} -ge 20 ] || { echo "check_locks: it no longer finds the sources"; exit 1; }
  # Headers take most of the time, and are read once, into a precompiled header.
  precompiled=$(mktemp -d)
  trap 'rm -rf "$precompiled"' EXIT
  printf '#include "%s"\n' "${headers[@]}" >"$precompiled/headers.h"
  "$clang" "${options[@]}" -x c++-header "$precompiled/headers.h" -o "$precompiled/headers.pch"
  options+=(-include-pch "$precompiled/headers.pch")
fi
echo "check_locks: ${#sources[@]} sources"
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -n 4 "$clang" "${options[@]}" -fsyntax-only || exit 1
