# Sourced by tools/gpu_test.sh: every operator on the device against its reference, and some of them under compute-sanitizer.
# shellcheck shell=bash disable=SC2154

one_operator() { # NAME[:PART/OF] LIMIT: the tests of one operator on the device, or every OF-th of them, its own process
  local name=${1%:*} log=$out/$part/${1//[:\/]/_}.log status=0 which=1/1 begin=${EPOCHREALTIME//[.,]/} result
  [ "$name" = "$1" ] || which=${1#*:}
  ours env HEDDLE_CONFORMANCE_DEVICE=cuda:0 HEDDLE_CONFORMANCE_PART="$which" timeout --foreground --kill-after=5 "$2" \
    "$root/bin/heddle_conformance_tests" --gtest_filter="Operators/OnDevice.AgreesWithItsReference/$name" >"$log" 2>&1 || status=$?
  case $status in
    0) if grep -q '^\[  SKIPPED \]' "$log"; then result=without; else result=right; fi ;;
    124 | 137) result=wrong && echo "time limit of $2 s" >>"$log" ;;
    *) result=wrong ;;
  esac
  echo "$result $1 $(((${EPOCHREALTIME//[.,]/} - begin) / 1000)) ms"
}
all_operators() { # that can be held against a device
  ours env HEDDLE_CONFORMANCE_DEVICE=cuda:0 "$root/bin/heddle_conformance_tests" --gtest_list_tests --gtest_filter='Operators/OnDevice.*' |
    sed -nE 's/^ +AgreesWithItsReference\/(\S+).*/\1/p'
}
# Those that have hundreds of kernels to compile are four processes, which share the calls.
in_parts() { # names on standard input
  awk '/^(Max|Min|heddle_Pointwise|Resize|ArgMax|ArgMin|SoftmaxCrossEntropyLoss)$/ { for (part = 1; part <= 4; ++part) print $0 ":" part "/4"; next }
       { print }'
}
longest_first() {
  awk '/:/ { print; next } { others[++count] = $0 } END { for (i = 1; i <= count; ++i) print others[i] }'
}
operator_names() {
  if [ "$quick" -eq 1 ]; then
    printf '%s\n' Relu Transpose Gather
  else
    all_operators | in_parts | longest_first
  fi
}

# The operators that were touched since the last run on a GPU, first those that have an own change; tools/gpu/changed_operators.sh says how
# it is known. A bundle brings the list.
changed_list() {
  if [ -f "$here/gpu/operators.changed" ]; then
    cat "$here/gpu/operators.changed"
  else
    "$here/gpu/changed_operators.sh"
  fi
}
changed_names() {
  changed_list >"$out/operators.changed"
  cut -d' ' -f1 "$out/operators.changed" | grep -xFf <(all_operators) | in_parts | head -n "$([ "$quick" -eq 1 ] && echo 3 || echo 100000)"
}

first_failure() { # LOG: in one line
  sed -nE '/: Failure$/{n;/^Failed$/n;p;q}' "$1" | cut -c1-300
}

# Runs what $out/$part.names lists; each has its line in $out/$part.list as soon as it has ended.
run_operators() {
  mkdir -p "$out/$part"
  export part
  export -f one_operator ours
  # What is still to be done in time is told: the rest of the part is short.
  timeout --foreground $((${part_seconds:?} - 10)) xargs -P "$(processes)" -I{} bash -c 'one_operator {} 120' \
    <"$out/$part.names" >"$out/$part.list" || true
  local right wrong without calls name why unfinished list=$out/$part.list
  unfinished=$(grep -vxFf <(cut -d' ' -f2 "$list") "$out/$part.names" | tr '\n' ' ' || true)
  right=$(awk '$1 == "right" { sub(/:.*/, "", $2); print $2 }' "$list" | sort -u |
    grep -cvxFf <({ awk '$1 == "wrong" { print $2 }' "$list"; tr ' ' '\n' <<<"$unfinished"; } | cut -d: -f1 | grep .) || true)
  without=$(awk '$1 == "without" { sub(/:.*/, "", $2); print $2 }' "$list" | sort -u | grep -c . || true)
  wrong=$(awk '$1 == "wrong" { print $2 }' "$list" | sort | tr '\n' ' ')
  calls=$(cat "$out/$part"/*.log 2>/dev/null | sed -nE 's/.* on cuda:0: ([0-9]+) calls judged.*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }')
  for name in $wrong; do
    why=$(first_failure "$out/$part/${name//[:\/]/_}.log")
    echo "wrong: $name: ${why:-$(tail -n 1 "$out/$part/${name//[:\/]/_}.log" | cut -c1-300)}"
  done
  [ -z "$unfinished" ] || echo "not finished: $unfinished"
  echo "without a kernel there: $(awk '$1 == "without" { print $2 }' "$list" | sort | tr '\n' ' ')"
  say "$right right, $calls calls, $without without a kernel${wrong:+, wrong: $wrong}${unfinished:+, $(wc -w <<<"$unfinished") not finished}"
  [ -z "$wrong" ] && [ -z "$unfinished" ] && [ "$right" -gt 0 ]
}

part_operators() { # [changed]
  if [ "${1:-}" = changed ]; then
    changed_names >"$out/$part.names" || true
    [ -s "$out/$part.names" ] || skip "none has changed since $(cat "$here/gpu/last_run")"
  else
    operator_names >"$out/$part.names"
  fi
  run_operators
}

# Each in a process of its own; kernels are some hundred times slower so (estimated, not measured). Only what its time limit ended is
# unfinished: a crash is wrong.
sanitized() { # TOOL OPERATOR
  local log=$out/$part/$2.log status=0
  ours env HEDDLE_CONFORMANCE_DEVICE=cuda:0 timeout --foreground --kill-after=5 40 "$sanitizer" --tool "$1" --error-exitcode 99 \
    "$root/bin/heddle_conformance_tests" --gtest_filter="Operators/OnDevice.AgreesWithItsReference/$2" >"$log" 2>&1 || status=$?
  if grep -qE "$unattached" "$log"; then
    echo "unattached $2"
  elif [ $status -eq 0 ] && grep -qE 'ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards' "$log" && grep -q '^\[  PASSED  \] 1 test' "$log"; then
    echo "clean $2"
  elif [ $status -eq 124 ] || [ $status -eq 137 ]; then
    echo "unfinished $2"
  else
    # The shell's own line on a signal, which the status tells, is not the program's last.
    echo "wrong $2 (exit status $status: $(grep -v '^environment: line ' "$log" | tail -n 1 | cut -c1-200))"
  fi
}
sanitized_operators() { # [new]: at most as many as there are processes side by side, in the time of a part
  if [ "${1:-}" = new ]; then
    changed_list | awk '$2 == "new" { print $1 }' | grep -xFf <(all_operators) | head -n 16 || true
  elif [ "$quick" -eq 1 ]; then
    echo Relu
  else
    printf '%s\n' Relu Softmax ReduceSum Transpose Gather CumSum TopK GRU NonZero
  fi
}
part_sanitizer() { # TOOL [new]
  sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer || true)
  [ -n "$sanitizer" ] || skip "compute-sanitizer is not installed"
  ! on_standin || skip "the stand-in has no kernels that compute-sanitizer could look at"
  export part sanitizer unattached='Device not supported|Unable to|failed to initialize|LibraryNotLoaded'
  export -f sanitized ours
  mkdir -p "$out/$part"
  sanitized_operators "${2:-}" >"$out/$part.names"
  [ -s "$out/$part.names" ] || skip "no operator is new since $(cat "$here/gpu/last_run")"
  xargs -P "$(processes)" -I{} bash -c "sanitized $1 {}" <"$out/$part.names" >"$out/$part.list"
  local clean wrong unfinished list=$out/$part.list
  clean=$(sed -n 's/^clean //p' "$list" | sort | tr '\n' ' ')
  wrong=$(sed -n 's/^wrong //p' "$list" | sort | tr '\n' ' ')
  unfinished=$(sed -nE 's/^(unfinished|unattached) //p' "$list" | sort | tr '\n' ' ')
  [ -z "$wrong" ] || { say "wrong: $wrong"; return 1; }
  if [ -z "$clean" ] && grep -q '^unattached ' "$list"; then
    skip "compute-sanitizer can not attach: $(grep -hE "$unattached" "$out/$part"/*.log | head -n 1)"
  fi
  [ -n "$clean" ] || { say "none finished: $unfinished"; return 1; }
  say "clean: $clean${unfinished:+; not finished: $unfinished}"
}
