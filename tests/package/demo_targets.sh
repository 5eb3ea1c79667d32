#!/bin/bash
# demo_targets.sh SOURCE BUILD NINJA: every program, library and plugin that `cmake --install BUILD` copies is made by the targets that
# tools/demo.sh builds.
set -euo pipefail
source=$1 build=$2 ninja=$3
read -ra targets < <(sed -n 's/^cmake --build .*--target \([^-]*\) -j.*/\1/p' "$source/tools/demo.sh")
[ ${#targets[@]} -gt 0 ] || {
  echo "tools/demo.sh names no targets"
  exit 1
}
commands=$("$ninja" -C "$build" -t commands "${targets[@]}")
# file(INSTALL ... TYPE EXECUTABLE FILES "..." "...") of all folders; what is only configured, or a header, has another type.
mapfile -t files < <(find "$build" -name cmake_install.cmake -exec awk '
  /^ *file\(INSTALL .* TYPE (EXECUTABLE|SHARED_LIBRARY|MODULE|STATIC_LIBRARY) / { on = 1 }
  on {
    line = $0
    sub(/.* FILES/, "", line)
    while (match(line, /"[^"]*"/)) {
      print substr(line, RSTART + 1, RLENGTH - 2)
      line = substr(line, RSTART + RLENGTH)
    }
  }
  /\)/ { on = 0 }' {} +)
[ ${#files[@]} -ge 3 ] || {
  echo "only these files would be installed: ${files[*]}"
  exit 1
}
missing=0
for file in "${files[@]}"; do
  grep -qF -- "${file#"$build/"}" <<<"$commands" || {
    echo "$file is installed, but \"${targets[*]}\" does not make it"
    missing=1
  }
done
exit $missing
