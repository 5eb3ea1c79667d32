#!/bin/sh
# library_exports.sh LIBHEDDLE: exports only heddle:: names, and has the SONAME libheddle.so.0.
set -u
foreign=$(nm -DC --defined-only "$1" | cut -d' ' -f3- | grep -vE '^(heddle::|(typeinfo( name)?|vtable) for heddle::|heddle_|__(asan|tsan|ubsan)_)' | head -5)
if [ -n "$foreign" ]; then
  echo "exports what is not ours: $foreign"
  exit 1
fi
count=$(nm -DC --defined-only "$1" | grep -c 'heddle::')
[ "$count" -ge 10 ] || {
  echo "exports only $count symbols: is HEDDLE_API missing?"
  exit 1
}
# A program derives from these.
for what in 'vtable for heddle::Dataset' 'typeinfo for heddle::Dataset' 'typeinfo for heddle::Executor'; do
  nm -DC --defined-only "$1" | grep -q " $what\$" || {
    echo "does not export the $what"
    exit 1
  }
done
readelf -d "$1" | grep -q 'SONAME.*\[libheddle\.so\.0\]' || {
  echo "SONAME is not libheddle.so.0"
  exit 1
}
echo "ok: $count symbols of heddle, SONAME libheddle.so.0"
