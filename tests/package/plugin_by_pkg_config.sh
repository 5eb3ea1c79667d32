#!/bin/bash
# plugin_by_pkg_config.sh PREFIX WORK COMPILER LOADER: the same plugin by one compiler command.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$1 work=$2 compiler=$3 loader=$4
rm -rf "$work"
mkdir -p "$work"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name heddle-plugin.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046  # flags are words
"$compiler" -O2 "$here/plugin/square.cc" $(pkg-config --cflags --libs heddle-plugin) -o "$work/square.so"
symbols=$(nm -D --defined-only "$work/square.so" | awk '{print $3}')
[ "$symbols" = heddle_plugin_query ] || {
  echo "square.so exports: $symbols"
  exit 1
}
"$loader" "$work/square.so"
grep -q "abi=$(sed -n 's/^#define HEDDLE_ABI_MAJOR //p' "$prefix/include/heddle/abi.h")\.$(sed -n 's/^#define HEDDLE_ABI_MINOR //p' "$prefix/include/heddle/abi.h")$" \
  "$PKG_CONFIG_PATH/heddle.pc" || {
  echo "heddle.pc names another ABI than abi.h"
  exit 1
}
