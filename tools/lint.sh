#!/bin/bash
# tools/lint.sh [--all] [--format-only] [BASE]: clang-format on the files that changed against BASE (default: where this branch left the main
# one, or the commit before), clang-tidy on those that build/dev compiles. Changes nothing; ends with 1 when something is to mend.
set -euo pipefail
cd "$(dirname "$0")/.."

all=0
tidy=1
while [ $# -gt 0 ]; do
  case $1 in
    --all) all=1; shift ;;
    --format-only) tidy=0; shift ;;
    *) break ;;
  esac
done
base=${1:-$(git merge-base HEAD origin/main 2>/dev/null || true)}
if [ -z "$base" ] || [ "$(git rev-parse "$base")" = "$(git rev-parse HEAD)" ]; then
  base=$(git rev-parse --verify -q HEAD~1 || git hash-object -t tree /dev/null)
fi
list() {
  if [ $all -eq 1 ]; then
    git ls-files -- "$@"
  else
    { git diff --name-only --diff-filter=d "$base" -- "$@" && git ls-files --others --exclude-standard -- "$@"; } | sort -u
  fi
}

status=0
mapfile -t files < <(list '*.cc' '*.h' '*.c' '*.cu' '*.cuh')
echo "lint: ${#files[@]} files"
[ ${#files[@]} -eq 0 ] && exit 0
if command -v clang-format >/dev/null; then
  for file in "${files[@]}"; do
    clang-format --dry-run -Werror "$file" >/dev/null 2>&1 || {
      echo "not formatted: $file (clang-format -i $file)"
      status=1
    }
  done
else
  echo "lint: no clang-format on this machine, formatting is not checked"
fi
if [ $tidy -eq 1 ]; then
  if ! command -v clang-tidy >/dev/null; then
    echo "lint: no clang-tidy on this machine, sources are not checked"
  else
    # Each file by itself (the build takes several at once), with the headers that the build generates.
    cmake --preset dev -B build/lint -DCMAKE_UNITY_BUILD=OFF -DHEDDLE_BUILD_BENCHMARKS=ON >/dev/null
    cmake --build build/lint --target heddle_schemas >/dev/null
    mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep '\.cc$' | while read -r file; do
      grep -qF "\"$PWD/$file\"" build/lint/compile_commands.json && echo "$file"
    done)
    echo "lint: clang-tidy on ${#sources[@]} sources"
    if [ ${#sources[@]} -gt 0 ]; then
      # The options that only g++ knows would each be an error of their own.
      sed -i -E 's/ -fno-gnu-unique//g; s/ --param=[a-z-]+=[0-9]+//g; s/ -Wno-(restrict|maybe-uninitialized|stringop-[a-z]+|subobject-linkage)//g' build/lint/compile_commands.json
      printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -n 2 clang-tidy -quiet -p build/lint || status=1
    fi
  fi
fi
exit $status
