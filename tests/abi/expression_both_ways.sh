#!/bin/bash
# expression_both_ways.sh INCLUDE WORK TEXTS PLUGIN REFERENCE COMPILER [FLAG...]: expression_user.cc built by COMPILER FLAG... prints what it
# prints built by REFERENCE: reading and printing by <charconv> and without it, where the locale's decimal point is a point or a comma. TEXTS
# prints the texts of PLUGIN's operators.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
include=$1 work=$2 texts=$3 plugin=$4 reference=$5
shift 5
strict=(-std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror "-I$include")
printf '#include <string>\nint main() { return std::to_string(1).size() == 1 ? 0 : 1; }\n' | "$@" -x c++ - -o /dev/null 2>/dev/null || {
  echo "skipped: no $*"
  exit 0
}
rm -rf "$work"
mkdir -p "$work"
"$texts" "$plugin" >"$work/texts"
"$reference" "${strict[@]}" "$here/expression_user.cc" -o "$work/reference"
"$work/reference" <"$work/texts" >"$work/expected"

# A locale of our own with a comma, where glibc can make one.
locales=("")
cat >"$work/comma.source" <<'LOCALE'
comment_char %
escape_char /
LC_NUMERIC
decimal_point ","
thousands_sep "."
grouping 3;3
END LC_NUMERIC
LOCALE
localedef --no-archive -c -i "$work/comma.source" -f ANSI_X3.4-1968 "$work/comma" >/dev/null 2>&1 || true
if [ -f "$work/comma/LC_NUMERIC" ]; then
  export LOCPATH=$work
  locales+=(comma)
else
  echo "no localedef here: locales with a comma are not tried"
fi

for way in "" -DHEDDLE_EXPRESSION_WITHOUT_CHARCONV; do
  "$@" "${strict[@]}" ${way:+"$way"} "$here/expression_user.cc" -o "$work/user"
  for locale in "${locales[@]}"; do
    "$work/user" ${locale:+"$locale"} <"$work/texts" >"$work/printed" || {
      echo "$* $way $locale: $(grep -B2 'is read as another' "$work/printed" | head -3)"
      exit 1
    }
    cmp "$work/expected" "$work/printed" || {
      echo "$* $way $locale prints other programs or numbers than $reference:"
      diff "$work/expected" "$work/printed" | head -6
      exit 1
    }
  done
done
echo "ok: $(wc -l <"$work/texts") texts, $(wc -l <"$work/expected") lines, ${#locales[@]} locales"
