#!/bin/bash
# tests/charts/in_browser.sh HEDDLE: draws pictures of several nets and measures their texts in Debian's chromium. Skipped without it.
set -euo pipefail
heddle=$1
here=$(cd "$(dirname "$0")" && pwd)
command -v chromium >/dev/null || { echo "skipped: chromium is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# measure NAME: examines $work/NAME.html
measure() {
  printf '<script>%s</script>\n' "$(cat "$here/boxes.js")" >> "$work/$1.html"
  HOME=$work timeout 120 chromium --headless=new --no-sandbox --disable-gpu --window-size=1300,2000 --virtual-time-budget=20000 \
    --dump-dom "file://$work/$1.html" > "$work/$1.dom" 2> "$work/chromium.log" || { cat "$work/chromium.log"; exit 1; }
  local said
  said=$(sed -n '/<pre id="result">/,/<\/pre>/p' "$work/$1.dom" | sed 's/.*<pre id="result">//; s/<\/pre>.*//; /^<\/body>/d')
  echo "$1: $said"
  [[ $said == "pictures: "* ]] || failed=1
}

# drawn NAME ARGUMENT...: what `heddle plan ARGUMENT... --svg` draws
drawn() {
  local name=$1
  shift
  "$heddle" plan "$@" --svg "$work/$name.svg" > /dev/null
  { echo '<!DOCTYPE html><body>'; cat "$work/$name.svg"; } > "$work/$name.html"
  measure "$name"
}

for net in lenet encoder unet; do
  "$heddle" model $net -o "$work/$net.heddle" --quiet
  drawn "plan_$net" "$work/$net.heddle" --threads 2
done
"$heddle" model lenet --train -o "$work/learning.heddle" --quiet
drawn plan_learning "$work/learning.heddle" --symbol N=8
drawn plan_sim "$work/lenet.heddle" --device sim:0 --copies auto
drawn plan_two "$work/unet.heddle" --diff "$work/lenet.heddle"
# What draws other files than `plan --svg`.
other() {
  { echo '<!DOCTYPE html><body>'; cat "$work/$1.svg"; } > "$work/$1.html"
  measure "$1"
}
"$heddle" plan "$work/unet.heddle" --svg-net "$work/net_unet.svg" > /dev/null
other net_unet
"$heddle" plan "$work/learning.heddle" --symbol N=8 --svg-net "$work/net_learning.svg" > /dev/null
other net_learning
"$heddle" bench "$work/lenet.heddle" --repeat 100 --threads 1,2 --svg "$work/bench.svg" --quiet
other bench
"$heddle" run "$work/lenet.heddle" --random 1 --repeat 5 --threads 2 --report "$work/report_lenet.html" --quiet
measure report_lenet
"$heddle" run "$work/lenet.heddle" --random 1 --repeat 5 --device sim:0 --copies auto --report "$work/report_sim.html" --quiet
measure report_sim
exit $failed
