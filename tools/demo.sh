#!/bin/bash
# tools/demo.sh [PICTURE]: Heddle's main job on real input, from a bare Debian machine on.
#
# Installs what is missing, builds, then (a) imports and runs every model of libonnx-testdata's pytorch folders and compares, (b) runs
# ResNet-50 on a photograph and a transformer encoder on random tokens, (c) draws one plan and writes one trace, (d) learns scikit-learn's
# digits and predicts those that were held out, (e) learns the kinds of pictures that a Debian package ships, is killed, and goes on to the
# same bits. Can be run again at any time. PICTURE is any JPEG or PNG; without one a photograph that a Debian package ships is used.
set -euo pipefail
cd "$(dirname "$0")/.."
picture=${1:-}

say() {
  printf '\n== %s\n' "$*"
}

say "packages"
if [ -n "$picture" ]; then
  tools/install_packages.sh python3 python3-sklearn tuxpaint-stamps-default
else
  tools/install_packages.sh python3 python3-sklearn tuxpaint-stamps-default ukui-wallpapers
  picture=/usr/share/backgrounds/calla.png
fi

say "building (preset release)"
cmake --preset release >/dev/null
cmake --build --preset release --target heddle_installed -j "$(nproc)"
heddle=$PWD/build/release/bin/heddle
out=$PWD/build/demo
mkdir -p "$out"

say "(a) models exported by PyTorch, imported, saved as .heddle, run and compared with PyTorch's outputs"
data=$(dpkg -L libonnx-testdata | grep -E '/pytorch-converted$')
"$heddle" verify-onnx --strict "$data" "$(dirname "$data")/pytorch-operator" | tee "$out/correctness.txt" | tail -n 25

run_net() { # NAME INPUT-OPTION...
  local name=$1
  shift
  say "(b) $name"
  "$heddle" model "$name" -o "$out/$name.heddle"
  "$heddle" plan "$out/$name.heddle" --json >"$out/$name.plan.json"
  for threads in 1 2; do
    "$heddle" run "$out/$name.heddle" "$@" --threads $threads --warmup 3 --repeat 10 --json >"$out/$name.$threads.json"
  done
  python3 - "$out" "$name" <<'PYTHON'
import json, sys
out, name = sys.argv[1:]
plan = json.load(open(f"{out}/{name}.plan.json"))["devices"]["cpu"]
for threads in (1, 2):
    run = json.load(open(f"{out}/{name}.{threads}.json"))
    memory = run["devices"]["cpu"]
    print(f'{threads} threads: median {run["latency_ns"]["median"] / 1e6:.2f} ms, planned peak {memory["planned_peak_bytes"]} bytes, '
          f'measured {memory["measured_peak_bytes"]}')
    assert memory["planned_peak_bytes"] == memory["measured_peak_bytes"]
print(f'lower bound {plan["lower_bound_bytes"]} bytes ({plan["lower_bound_kind"]}): planned peak is '
      f'{plan["peak_bytes"] / plan["lower_bound_bytes"]:.3f} x, without sharing {plan["sum_bytes"]}')
PYTHON
}

run_net resnet50 --input "image=$picture"
"$heddle" run "$out/resnet50.heddle" --input "image=$picture" --output "logits=$out/logits.npy" --quiet
run_net encoder --random 7

say "(c) a plan as a picture and a trace"
"$heddle" plan "$out/resnet50.heddle" --svg "$out/resnet50.svg" --quiet
"$heddle" run "$out/resnet50.heddle" --input "image=$picture" --warmup 3 --trace "$out/resnet50.trace.json" --quiet
ls -l "$out/resnet50.svg" "$out/resnet50.trace.json"

say "(d) scikit-learn's digits, learned from the first 1,438 of them; the predictor on the 359 held out, which other people wrote"
# Debian's own Python has Debian's scikit-learn.
/usr/bin/python3 - "$out" <<'PYTHON'
import sys, numpy, sklearn.datasets
digits = sklearn.datasets.load_digits()
images, labels = (digits.images / 16).astype("float32")[:, None], digits.target.astype("int64")
for name, part in ("train", slice(0, 1438)), ("test", slice(1438, None)):
    numpy.save(f"{sys.argv[1]}/{name}_images.npy", images[part])
    numpy.save(f"{sys.argv[1]}/{name}_labels.npy", labels[part])
PYTHON
(
  cd "$out"
  "$heddle" model digits --train --optimizer adamw --set weight_decay=0.1 --learning-rate 0.008 --schedule 'cosine(1500)' --average 0.99 \
    --seed 1 -o digits.heddle
  "$heddle" train digits.heddle --steps 1500 --batch 128 --seed 1 --data image=train_images.npy --data labels=train_labels.npy -o trained.heddle
  "$heddle" predictor trained.heddle --average --output logits -o predictor.heddle
  "$heddle" run predictor.heddle --input image=test_images.npy --output logits=predicted.npy --quiet
  /usr/bin/python3 - <<'PYTHON'
import numpy
predicted, labels = numpy.load("predicted.npy").argmax(1), numpy.load("test_labels.npy")
right = int((predicted == labels).sum())
print(f"accuracy {right / len(labels):.4f}: {right} of {len(labels)} digits")
assert right / len(labels) >= 0.97
PYTHON
)

say "(e) 572 pictures of eight kinds, from Tux Paint; the training is killed, goes on, and is tested with 143 others"
(
  cd "$out"
  python3 "$OLDPWD/tools/stamps.py" stamps
  "$heddle" model photos --train --optimizer adamw --set weight_decay=0.05 --learning-rate 0.002 --schedule 'cosine(204)' --seed 1 -o photos.heddle
  train=("$heddle" train photos.heddle --epochs 12 --batch 32 --seed 1 --eval-every 34
    --data image=stamps/train.csv:file --data labels=stamps/train.csv:kind
    --test-data image=stamps/test.csv:file --test-data labels=stamps/test.csv:kind --augment crop,flip,color=0.3)
  "${train[@]}" -o undisturbed.heddle
  rm -rf checkpoints
  "${train[@]}" --checkpoint-dir checkpoints --quiet &
  victim=$!
  until [ "$(find checkpoints -name 'step-*.safetensors' 2>/dev/null | wc -l)" -ge 2 ]; do
    kill -0 "$victim" || { say "the training ended before it was killed"; exit 1; }
    sleep 0.1
  done
  kill -9 "$victim"
  wait "$victim" || [ $? -eq 137 ]
  "$heddle" inspect checkpoints
  "${train[@]}" --checkpoint-dir checkpoints -o trained_photos.heddle --resume
  cmp undisturbed.safetensors trained_photos.safetensors && echo "the same bits as without an interruption"
  "$heddle" predictor trained_photos.heddle --output logits -o photos_predictor.heddle
  "$heddle" run photos_predictor.heddle --input image=/usr/share/tuxpaint/stamps/animals/birds/adelaide-rosella.png --print logits
  echo "the largest of the logits is its kind, in the order of the classes above"
)
