# Sourced by tools/gpu_test.sh: attention in 16 bits, by cuDNN's fused kernel and composed of products, each against sums in f64.
# shellcheck shell=bash disable=SC2154

# A net as exporters write attention, over [batch, heads, rows, columns]. With a positive scale it becomes cuDNN's fused kernel, with a
# negative one the composed. "check" also computes it in f64 and has the largest difference and the largest number as outputs.
attention_net() { # DTYPE BATCH HEADS QUERIES KEYS DEPTH fused|composed check|alone
  local dtype=$1 query="[$2, $3, $4, $6]" key="[$2, $3, $5, $6]" scale=0.5 outputs='"y"'
  [ "$7" = fused ] || scale=-0.5
  [ "$8" = alone ] || outputs='"y", "error", "magnitude"'
  printf '{"heddle": 1, "name": "attention", "operator_sets": [{"domain": "", "version": 21}], "inputs": ["query", "key", "value"], "outputs": [%s],\n' "$outputs"
  printf ' "values": [{"name": "query", "kind": "input", "dtype": "%s", "dims": %s},\n' "$dtype" "$query"
  printf '  {"name": "key", "kind": "input", "dtype": "%s", "dims": %s}, {"name": "value", "kind": "input", "dtype": "%s", "dims": %s},\n' \
    "$dtype" "$key" "$dtype" "$key"
  printf '  {"name": "scale", "kind": "constant", "dtype": "%s", "dims": [], "data": [%s]}],\n "nodes": [\n' "$dtype" "$scale"
  attention_nodes '' query key value scale
  if [ "$8" = check ]; then
    local name
    for name in query key value scale y; do
      printf ',\n  {"name": "%s64", "type": "Cast", "inputs": ["%s"], "outputs": ["%s64"], "attributes": {"to": {"int": 11}}}' $name $name $name
    done
    printf ',\n'
    attention_nodes 64. query64 key64 value64 scale64
    cat <<'END'
,
  {"name": "difference", "type": "Sub", "inputs": ["y64", "64.y"], "outputs": ["difference"]},
  {"name": "distance", "type": "Abs", "inputs": ["difference"], "outputs": ["distance"]},
  {"name": "error", "type": "ReduceMax", "inputs": ["distance"], "outputs": ["error"], "attributes": {"keepdims": {"int": 0}}},
  {"name": "size", "type": "Abs", "inputs": ["64.y"], "outputs": ["size"]},
  {"name": "magnitude", "type": "ReduceMax", "inputs": ["size"], "outputs": ["magnitude"], "attributes": {"keepdims": {"int": 0}}}
END
  fi
  printf ' ]}\n'
}
attention_nodes() { # PREFIX QUERY KEY VALUE SCALE
  cat <<END
  {"name": "$1k", "type": "Transpose", "inputs": ["$3"], "outputs": ["$1k"], "attributes": {"perm": {"ints": [0, 1, 3, 2]}}},
  {"name": "$1scores", "type": "MatMul", "inputs": ["$2", "$1k"], "outputs": ["$1scores"]},
  {"name": "$1scaled", "type": "Mul", "inputs": ["$1scores", "$5"], "outputs": ["$1scaled"]},
  {"name": "$1weights", "type": "Softmax", "inputs": ["$1scaled"], "outputs": ["$1weights"], "attributes": {"axis": {"int": -1}}},
END
  printf '  {"name": "%sy", "type": "MatMul", "inputs": ["%sweights", "%s"], "outputs": ["%sy"]}' "$1" "$1" "$4" "$1"
}

# A rounding of a number next to 1 is 2^-11 or 2^-8 there; weights, their sums and the result are rounded, and numbers are below 1. Eight of
# them are allowed, as tests/cuda/device/device_attention_test.cc does.
attention_tolerance() { # DTYPE
  case $1 in
    f16) echo 0.00390625 ;;
    bf16) echo 0.03125 ;;
  esac
}

# Prints a row of attention.tsv: dtype, extents, kernel asked for, kernel of the plan, largest difference, largest number, result.
one_attention() { # DTYPE BATCH HEADS QUERIES KEYS DEPTH fused|composed
  local name=$1_$2x$3x$4x$5x$6_$7 folder=$out/$part kernel error magnitude result=right expected=cuda:cudnn_attention
  [ "$7" = fused ] || expected=cuda:cublaslt_attention
  attention_net "$@" check >"$folder/$name.json"
  {
    kernel=$(heddle plan "$folder/$name.json" --device cuda:0 --copies auto | sed -nE 's/.* Attention kernel (\S+).*/\1/p' | head -n 1) || true
    heddle run "$folder/$name.json" --device cuda:0 --copies auto --threads 1 --random 1 --fetch error --fetch magnitude --print error \
      --print magnitude >"$folder/$name.run" || true
  } 2>"$folder/$name.log"
  error=$(sed -n 's/^"error" f64\[\] = //p' "$folder/$name.run")
  magnitude=$(sed -n 's/^"magnitude" f64\[\] = //p' "$folder/$name.run")
  if [ "$kernel" != "$expected" ]; then
    result="wrong: the plan has ${kernel:-no such kernel}"
  elif ! awk -v error="${error:-nan}" -v most="$(attention_tolerance "$1")" 'BEGIN { exit !(error ~ /^[0-9]/ && error + 0 <= most + 0) }'; then
    result="wrong: ${error:-it did not run}"
  elif ! awk -v size="$magnitude" -v most="$(attention_tolerance "$1")" 'BEGIN { exit !(size + 0 > 4 * most) }'; then
    result='wrong: the numbers are too small to tell'
  fi
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2x$3x$4x$5x$6" "$7" "${kernel:--}" "${error:--}" "${magnitude:--}" "$result"
}
# Prints a row of attention_times.tsv: dtype, extents, kernel asked for, how long a run takes, its copies included.
time_attention() {
  local net=$out/$part/alone.json
  attention_net "$@" alone >"$net"
  printf '%s\t%s\t%s\t%s\n' "$1" "$2x$3x$4x$5x$6" "$7" \
    "$(heddle bench "$net" --device cuda:0 --copies auto --threads 1 --repeat 20 --warmup 5 | sed -nE 's/^1 threads?: (.*)/\1/p')"
}

# What one_attention and attention_net are asked, a line for each.
attention_cases() {
  local dtype extents kernel
  local -a shapes=('1 12 128 128 64' '32 12 128 128 64' '4 12 512 512 64' '2 16 1024 1024 128' '2 8 128 384 64')
  [ "$quick" -eq 0 ] || shapes=('1 2 8 8 16')
  for dtype in f16 bf16; do
    for extents in "${shapes[@]}"; do
      for kernel in fused composed; do echo "$dtype $extents $kernel"; done
    done
  done
}

part_attention() {
  local wrong list=$out/attention.tsv times=$out/attention_times.tsv one
  mkdir -p "$out/$part"
  printf 'dtype\textents\tasked\tkernel\terror\tmagnitude\tresult\n' >"$list"
  export part
  export -f one_attention attention_net attention_nodes attention_tolerance heddle ours
  attention_cases >"$out/$part.names"
  xargs -P "$(processes)" -I{} bash -c 'one_attention {}' <"$out/$part.names" >>"$list"
  wrong=$(awk -F '\t' 'NR > 1 && $7 != "right" { print $1 " " $2 " " $3 }' "$list" | tr '\n' ';')
  say "$(awk -F '\t' '$7 == "right"' "$list" | wc -l) of $(wc -l <"$out/$part.names") right${wrong:+, wrong: $wrong}"
  # Times one after the other: two at once would be longer.
  printf 'dtype\textents\tasked\ttime\n' >"$times"
  while read -ra one; do time_attention "${one[@]}" </dev/null >>"$times" || true; done <"$out/$part.names"
  cat "$list" "$times"
  [ -z "$wrong" ] && [ "$(wc -l <"$list")" -gt 1 ]
}
