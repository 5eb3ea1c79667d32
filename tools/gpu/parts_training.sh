# Sourced by tools/gpu_test.sh: training on the device against training on the host.
# shellcheck shell=bash disable=SC2154

steps_of_training=20

# Trains by the recipe's own rule on made-up data, and prints what `heddle train --json` says; NAME.jsonl has a line for each step.
train() { # NAME NET BATCH OPTION...
  local name=$1 net=$2 batch=$3
  shift 3
  rm -f "$out/$part/$name.jsonl"
  heddle train "$net" --steps "$steps_of_training" --batch "$batch" --data synthetic --samples $((2 * batch)) --seed 1 --no-output \
    --log "$out/$part/$name.jsonl" --json "$@" >"$out/$part/$name.json"
}
losses() { # NAME
  sed -nE 's/.*"loss": ?([^,}]*).*/\1/p' "$out/$part/$1.jsonl"
}
# The median of all steps but the first two, which compile and allocate.
step_milliseconds() { # NAME
  sed -nE 's/.*"step_ns": ?([0-9]+).*/\1/p' "$out/$part/$1.jsonl" | tail -n +3 | sort -n |
    awk '{ all[NR] = $1 } END { if (NR) printf "%.3f", all[int((NR + 1) / 2)] / 1e6 }'
}
list_of_losses() { # NAME
  losses "$1" | paste -sd, -
}

# Twice on the device, which has to give the same bits, and once on the host, whose loss of the last step it has to have within 1e-4 of it.
part_training() { # NET BATCH
  local net=$out/$part/net.heddle on_host count difference same=true ms host_ms status=0 name why
  [ "$quick" -eq 0 ] || steps_of_training=5
  mkdir -p "$out/$part"
  heddle model "$1" --loss -o "$net" --quiet
  for name in device device_again host; do
    local -a where=(--devices cuda:0)
    [ $name != host ] || where=()
    train $name "$net" "$2" "${where[@]}" || {
      why=$(json_message <"$out/$part/$name.json")
      # What Heddle can not train on a GPU yet is no failure of this one.
      ! grep -q '"code": "unsupported"' "$out/$part/$name.json" || skip "$name: $why"
      say "$name: $why"
      return 1
    }
    say "$name: $(step_milliseconds $name) ms a step"
  done
  rm -f "$net" "${net%.heddle}.safetensors"
  on_host=$(sed -nE 's/.*"message": "([0-9]+ operators run on the host for want of kernels on their devices: .*)",?$/\1/p' "$out/$part/device.json" | tail -n 1)
  cmp -s <(losses device) <(losses device_again) || same=false
  ms=$(step_milliseconds device) host_ms=$(step_milliseconds host)
  difference=$(paste <(losses device) <(losses host) |
    awk '{ there = $1; here = $2 } END { d = there - here; s = here < 0 ? -here : here; if (s > 0) printf "%.2e", (d < 0 ? -d : d) / s; else print "nan" }')
  printf '{"net": "%s", "batch": %s, "steps": %s, "step_ms": %s, "host_step_ms": %s, "same_bits": %s, "relative_difference": %s, "on_host": "%s", "losses": [%s], "host_losses": [%s]}\n' \
    "$1" "$2" "$(losses device | wc -l)" "${ms:-null}" "${host_ms:-null}" $same "${difference/nan/null}" "$on_host" "$(list_of_losses device)" \
    "$(list_of_losses host)" >>"$out/train.jsonl"
  echo "${on_host:-no operators run on the host}"
  count=${on_host%% *}
  [ $same = true ] || status=1
  awk -v d="$difference" 'BEGIN { exit !(d ~ /^[0-9]/ && d + 0 <= 1e-4) }' || status=1
  say "$ms ms a step, on the host $host_ms; loss of step $(losses device | wc -l) within $difference of the host's; twice the same bits: $same; operators on the host: ${count:-0}"
  return $status
}
