#!/bin/sh
# one_symbol.sh FOLDER PLUGIN...: every plugin in FOLDER (the named ones must be there) exports heddle_plugin_query and nothing else.
set -u
folder=$1
shift
failed=0
for name in "$@"; do
  [ -f "$folder/$name.so" ] || {
    echo "$name.so is not built"
    failed=1
  }
done
for file in "$folder"/*.so; do
  case $(basename "$file") in
    # Libraries, what stands in for NVIDIA's, and the plugin that breaks this rule on purpose.
    lib* | cuda_standin.so | compiling_device.so | hostile_no_entry.so) continue ;;
  esac
  # Weak undefined and section symbols aside; the sanitizers' own __asan/__tsan marks are theirs.
  symbols=$(nm -D --defined-only "$file" | awk '$2 ~ /[A-Za-z]/ {print $3}' | grep -vE '^__(asan|tsan|ubsan|start|stop)_' | sort -u)
  if [ "$symbols" = heddle_plugin_query ]; then
    echo "ok $(basename "$file")"
  else
    echo "$(basename "$file") exports: $(echo "$symbols" | head -5 | tr '\n' ' ')"
    failed=1
  fi
done
exit $failed
