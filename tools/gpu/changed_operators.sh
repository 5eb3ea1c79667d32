#!/bin/bash
# tools/gpu/changed_operators.sh [--since COMMIT]: the operators whose CUDA kernels have changed since the last run on a GPU, one a line, in
# the order in which they are worth asking: those of training first, then new ones, then those with an own change, then the others.
#
#   heddle_SgdUpdate own
#   Softmax common
#
# new: there was no kernel of it then. own: a file has changed that few families of kernels use. common: only text has changed that most of
# them use (kernels/common, the text of elements and blocks, the library's calls). The commit is the one in tools/gpu/last_run.
#
# How it is known: a file of plugins/cuda uses those that it includes, and the texts that it names in quotes; the operators of a file in
# kernels/ are the operators of docs/operators_by_device.md that it names in quotes. What is computed by its expression belongs to
# kernels/pointwise.cc.
set -euo pipefail
tree=$(cd "$(dirname "$0")/../.." && pwd)
cd "$tree/plugins/cuda"

since=
while [ $# -gt 0 ]; do
  case $1 in
    --since) since=${2:?--since takes a commit}; shift 2 ;;
    --help) sed -n '2p' "$0" | cut -c3-; exit 0 ;;
    *) echo "unknown option $1" >&2; sed -n '2p' "$0" | cut -c3- >&2; exit 2 ;;
  esac
done
since=${since:-$(cat "$tree/tools/gpu/last_run")}
is_known=1
git cat-file -e "$since^{commit}" 2>/dev/null || {
  is_known=0
  echo "changed_operators: there is no commit $since here, so all operators count as changed" >&2
}

# A unit is a file without its extension: a source and its header are one. The texts of kernels are units of the folder text. Lines of
# comment and layout are no change.
changed_units() {
  if [ $is_known -eq 0 ]; then
    echo text/element
    return
  fi
  {
    git diff --relative --numstat --no-renames --ignore-all-space --ignore-blank-lines -I '^ *//' "$since" -- . | awk '$1 + $2 > 0 { print $3 }'
    git ls-files --others --exclude-standard
  } | sed -nE 's:^(.*)\.(cc|h|cuh|inc)$:\1:p' | sort -u
}
# "USER USED", a line for each pair of units.
uses() {
  local texts
  texts=$(find text -name '*.cuh' -printf '%f\n' | sed 's/\.cuh$//' | paste -sd'|' -)
  grep -roE --include='*.cc' --include='*.h' --include='*.cuh' "^#include \"[a-z0-9_/]+\.|\"($texts)\"" . |
    sed -nE 's:^\./(.*)\.[a-z]+\:#include "(.*)\.$:\1 \2:p; s:^\./(.*)\.[a-z]+\:"(.*)"$:\1 text/\2:p'
}
# "UNIT OPERATOR", for units in kernels/ by the operators that they name. The nets of rules name other operators.
operators_of_units() {
  local table=$tree/docs/operators_by_device.md
  grep -hoE '^\| [A-Za-z0-9:]+ \|' "$table" | tr -d '| ' | sort -u |
    awk 'NR == FNR { bare = $1; sub(/.*::/, "", bare); named[bare] = named[bare] " " $1; next }
         $2 in named { n = split(named[$2], names, " "); for (i = 1; i <= n; ++i) print $1, names[i] }' - <(
      grep -E '"[A-Z][A-Za-z0-9]+"' kernels/*.cc | grep -vE 'text\.node\(|\.node\(|scaling|text\.input\(' |
        awk '{ unit = $0; sub(/\.cc:.*/, "", unit); while (match($0, /"[A-Z][A-Za-z0-9]+"/)) { print unit, substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } }')
  grep -E '^\| [A-Za-z0-9:]+ \|.*\| c?E ' "$table" | awk '{ print "kernels/pointwise", $2 }'
}
# Operators that had a kernel at that commit.
had_kernels() {
  if [ $is_known -eq 0 ]; then
    operators_of_units | sed -E 's/.* //; s/.*:://'
    return
  fi
  git grep -hoE '"[A-Z][A-Za-z0-9]+"' "$since" -- kernels | tr -d '"' | sort -u
}

# Which families of kernels a unit reaches, going from what is used to what uses it; more than `most_own` of them: it is common.
most_own=3
awk -v most_own=$most_own '
  FILENAME == ARGV[1] { users[$2] = users[$2] " " $1; next }
  FILENAME == ARGV[2] { operators[$1] = operators[$1] " " $2; next }
  FILENAME == ARGV[3] { had[$1] = 1; next }
  {
    # The units that are reached from this changed one.
    count = split("", queue); split("", seen); queue[1] = $1; seen[$1] = 1; last = 1; families = 0; reached = ""
    for (first = 1; first <= last; ++first) {
      unit = queue[first]
      if (unit ~ /^kernels\/[a-z]+$/ && unit in operators) { ++families; reached = reached " " unit }
      n = split(users[unit], next_units, " ")
      for (i = 1; i <= n; ++i) if (!(next_units[i] in seen)) { seen[next_units[i]] = 1; queue[++last] = next_units[i] }
    }
    n = split(reached, units, " ")
    for (i = 1; i <= n; ++i)
      if (families <= most_own) own[units[i]] = 1
      else common[units[i]] = 1
  }
  END {
    for (unit in operators) {
      if (!(unit in own) && !(unit in common)) continue
      n = split(operators[unit], names, " ")
      for (i = 1; i <= n; ++i) {
        bare = names[i]; sub(/.*::/, "", bare)
        is_new = unit != "kernels/pointwise" && !(bare in had)
        why = is_new ? "new" : unit in own ? "own" : "common"
        rank = (bare ~ /Gradient|Update|Accumulate/ ? 0 : 4) + (is_new ? 0 : unit in own ? 1 : 2)
        named = names[i]; sub(/::/, "_", named)
        print rank, named, why
      }
    }
  }' <(uses) <(operators_of_units) <(had_kernels) <(changed_units) | sort -k1,1n -k2,2 | awk '!seen[$2]++ { print $2, $3 }'
