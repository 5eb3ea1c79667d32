#!/bin/bash
# built_by.sh COMPILER INCLUDE_ROOT SOURCE SO HEDDLE FLAG...: a plugin that a compiler of the author's own makes of SOURCE with these flags, by
# one command, passes the author's suite.
set -euo pipefail
compiler=$1 include=$2 source=$3 so=$4 heddle=$5
shift 5
"$compiler" -std=c++17 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "$@" -I "$include" \
  "$source" -o "$so"
"$heddle" plugin check --strict "$so"
