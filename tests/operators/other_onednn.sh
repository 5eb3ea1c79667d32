#!/bin/bash
# other_onednn.sh COMPILER PLUGIN 'INCLUDE;INCLUDE': what calls oneDNN compiles with another version of it too, whose prefix
# HEDDLE_OTHER_ONEDNN names. Where that names none, this says so and is skipped.
set -euo pipefail
compiler=$1 plugin=$2 prefix=${HEDDLE_OTHER_ONEDNN:-}
[ -n "$prefix" ] || { echo "HEDDLE_OTHER_ONEDNN names no prefix of another oneDNN"; exit 77; }
version=$(sed -n 's/^#define DNNL_VERSION_MAJOR //p' "$prefix/include/oneapi/dnnl/dnnl_version.h")
flags=(-std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "-isystem$prefix/include")
IFS=';' read -ra folders <<< "$3"
for folder in "${folders[@]}"; do
  [ -z "$folder" ] || [ "$folder" = /usr/include ] || flags+=("-I$folder")
done
while read -r source; do
  "$compiler" "${flags[@]}" "$source"
  echo "oneDNN $version: $source compiles"
done < <(grep -lrE 'onednn::|dnnl' "$plugin" --include='*.cc' --exclude='*.isa.cc' | sort)
