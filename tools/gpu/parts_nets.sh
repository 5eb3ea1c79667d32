# Sourced by tools/gpu_test.sh: how fast nets run there, in Heddle and in PyTorch.
# shellcheck shell=bash disable=SC2154

part_bench() { # NET BATCH
  local net=$out/$1_x$2.heddle
  local -a runs=(--repeat 20 --warmup 5)
  [ "$quick" -eq 0 ] || runs=(--repeat 3 --warmup 1)
  heddle model "$1" --batch "$2" -o "$net" --quiet
  heddle bench "$net" --device cuda:0 --copies auto --threads 1 "${runs[@]}"
  rm -f "$net" "${net%.heddle}.safetensors"
  say "$(sed -nE 's/^1 threads?: //p' "$out/$part.log")"
}

# One net in f32, f32 with products of TF32, and bf16; each measurement is a line of bench.jsonl with all that `heddle bench --json` says, as
# soon as it is there. One picture or text has to give the host's numbers before its time counts.
part_precisions() { # NET BATCH
  local folder=$out/$part precision detail='' failed=0 file tf32 json median why
  local -a runs=(--repeat 20 --warmup 5)
  [ "$quick" -eq 0 ] || runs=(--repeat 3 --warmup 1)
  mkdir -p "$folder"
  heddle model "$1" --batch "$2" -o "$folder/net.heddle" --quiet
  if [ "$2" -eq 1 ]; then
    detail='; as on the host'
    heddle run "$folder/net.heddle" --random 1 --device cuda:0 --copies auto --compare-device cpu --quiet || failed=1 detail='; not as on the host'
  fi
  for precision in f32 tf32 bf16; do
    file=$folder/net.heddle tf32=0
    [ $precision != tf32 ] || tf32=1
    if [ $precision = bf16 ]; then
      file=$folder/bf16.json
      if ! why=$(net_in_bf16 "$folder" 2>&1); then
        detail+="; bf16 not: $(tail -n 1 <<<"$why" | cut -c1-200)"
        continue
      fi
    fi
    if json=$(HEDDLE_CUDA_TF32=$tf32 heddle bench "$file" --device cuda:0 --copies auto --threads 1 "${runs[@]}" --json); then
      printf '{"net": "%s", "batch": %s, "precision": "%s", "bench": %s}\n' "$1" "$2" $precision "$(one_line <<<"$json")" >>"$out/bench.jsonl"
      median=$(json_number median <<<"$json")
      detail+="; $precision $(awk -v ns="${median:-0}" 'BEGIN { printf "%.3f ms", ns / 1e6 }')"
    else
      failed=1
      detail+="; $precision failed: $(json_message <<<"$json")"
    fi
    say "${detail#; }"
  done
  rm -rf "$folder"
  say "${detail#; }"
  return $failed
}
# Heddle writes its recipes in f32; the same net in bf16 is made of the net's text. What has no kernel in bf16 says so.
net_in_bf16() { # FOLDER
  command -v python3 >/dev/null || { echo "there is no python3 to make it"; return 1; }
  heddle convert "$1/net.heddle" "$1/net.json" --quiet &&
    python3 "$here/gpu/net_in_bf16.py" "$1/net.json" "$1/bf16.json" &&
    heddle check "$1/bf16.json" --device cuda:0 --copies auto
}

part_pytorch() { # NET BATCH
  command -v python3 >/dev/null || skip "there is no python3"
  ! on_standin || skip "nothing to compare the stand-in with"
  local status=0 limit=$((${part_seconds:?} - 5)) eager compiled
  timeout --foreground --kill-after=2 "$limit" python3 "$here/gpu/pytorch_bench.py" "$1" "$2" || status=$?
  [ $status -ne 3 ] || skip "$(tail -n 1 "$out/$part.log")"
  eager=$(sed -n 's/^eager: //p' "$out/$part.log")
  compiled=$(sed -n 's/^compile: //p' "$out/$part.log")
  [ $status -ne 124 ] || compiled="not within $limit s"
  say "eager ${eager:-not measured}; compiled ${compiled:-not measured}"
  [ -n "$eager" ] && { [ $status -eq 0 ] || [ $status -eq 124 ]; }
}

# All nets in one process, which imports PyTorch once: first what needs no compiler. The time may end it; what it has measured is kept.
part_pytorch_all() {
  command -v python3 >/dev/null || skip "there is no python3"
  ! on_standin || skip "nothing to compare the stand-in with"
  local status=0 limit=$((${part_seconds:?} - 5)) measured failed planned lines=$out/pytorch.jsonl
  local -a cases=()
  [ "$quick" -eq 0 ] || cases=(--only mlp)
  planned=$(python3 "$here/gpu/pytorch_bench.py" --list "${cases[@]}" | wc -l)
  export TORCHINDUCTOR_CACHE_DIR=$out/pytorch_cache TRITON_CACHE_DIR=$out/pytorch_cache/triton
  timeout --foreground --kill-after=2 "$limit" python3 "$here/gpu/pytorch_bench.py" --all "${cases[@]}" --json "$lines" || status=$?
  [ $status -ne 3 ] || skip "$(tail -n 1 "$out/$part.log")"
  measured=$(grep -c '"median_ms"' "$lines" || true)
  failed=$(grep -c '"error"' "$lines" || true)
  say "$measured of $planned measured$([ "$failed" -eq 0 ] || echo ", $failed failed")$([ $status -ne 124 ] || echo ", the rest not within $limit s")"
  [ "$measured" -gt 0 ] && { [ $status -eq 0 ] || [ $status -eq 124 ]; }
}
