#!/bin/sh
# headers_stand_alone.sh COMPILER INCLUDE_ROOT LIST: each header of LIST compiles alone as C++17, with the warnings that authors turn on.
set -u
failed=0
while read -r header; do
  [ -n "$header" ] || continue
  name=${header#"$2"/}
  printf '#include "%s"\n' "$name" | "$1" -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only -I "$2" -x c++ - || {
    echo "$name does not stand alone"
    failed=1
  }
done <"$3"
exit $failed
