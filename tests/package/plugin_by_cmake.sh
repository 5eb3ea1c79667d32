#!/bin/bash
# plugin_by_cmake.sh PREFIX WORK COMPILER LOADER: an out-of-tree project with find_package(heddle) and heddle_add_plugin.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$1 work=$2 compiler=$3 loader=$4
rm -rf "$work"
cp -r "$here/plugin" "$work"
cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release
cmake --build "$work/build"
"$loader" "$work/build/square.so"
