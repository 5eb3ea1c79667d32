#!/usr/bin/env bash
# Makes the pictures of docs/pictures.md anew, as a browser shows them: tools/pictures.sh [HEDDLE], from the root of the sources.
# Needs Debian's chromium, pngquant and python3-numpy, none of which the build needs.
set -euo pipefail
heddle=$(realpath "${1:-build/dev/bin/heddle}") out=$(realpath docs)/pictures work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
cd "$work"

# shot FILE NAME WIDTH HEIGHT [SCALE]
shot() {
  chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor="${5:-0.7}" --window-size="$3,$4" \
    --screenshot="$work/shot.png" "file://$work/$1" > chromium.log 2>&1 || { cat chromium.log; exit 1; }
  pngquant --force --speed 1 160 --output "$out/$2.png" shot.png
}
# report NET NAME HEIGHT [OPTION...]: a report of the median of eleven runs
report() {
  local net=$1 name=$2 height=$3
  shift 3
  "$heddle" run "$net" --random 1 --warmup 3 --repeat 11 --quiet --report "$name.html" "$@"
  shot "$name.html" "$name" 1240 "$height"
}

python3 - <<'PYTHON'
import json, random
import numpy
random.seed(3)
names, values, nodes = ["x"], [{"name": "x", "kind": "input", "dtype": "f32", "dims": [64, 64]}], []
for i in range(10000):
    kind, name = random.choice(["Add", "Mul", "Sub", "MatMul", "Softmax", "Transpose", "Add"]), f"block{i // 1000}.layer{i // 50 % 20}.v{i}"
    first = names[-1] if random.random() < 0.6 else random.choice(names[-40:])
    inputs = [first] if kind in ("Softmax", "Transpose") else [first, random.choice(names[-40:])]
    values.append({"name": name})
    nodes.append({"type": kind, "name": name, "inputs": inputs, "outputs": [name]})
    names.append(name)
json.dump({"heddle": 1, "name": "ten_thousand", "inputs": ["x"], "outputs": [names[-1]], "values": values, "nodes": nodes,
           "operator_sets": [{"domain": "", "version": 17}]}, open("ten_thousand.json", "w"))
# Ten kinds of bright squares in noise, to learn from.
generator = numpy.random.default_rng(5)
labels = numpy.arange(1200) % 10
images = generator.normal(0, 0.55, (1200, 1, 8, 8)).astype("float32")
for i, label in enumerate(labels):
    images[i, 0, label // 4 * 2 : label // 4 * 2 + 3, label % 4 * 2 : label % 4 * 2 + 2] += 1
for name, part in ("train", slice(0, 1000)), ("test", slice(1000, None)):
    numpy.save(f"{name}_images.npy", images[part])
    numpy.save(f"{name}_labels.npy", labels[part])
numpy.save("labels.npy", labels[:32])
PYTHON

for name in lenet resnet50 encoder; do "$heddle" model "$name" --quiet -o "$name.heddle"; done
"$heddle" model digits --train --optimizer adamw --learning-rate 0.004 --schedule 'cosine(400)' --gradient-norm --quiet -o digits.heddle
"$heddle" model lenet --train --devices sim:0,sim:1 --quiet -o replicas.heddle

report lenet.heddle lenet 2150
report resnet50.heddle resnet50 2250
report encoder.heddle encoder 2300
report digits.heddle training 2900 --net train --symbol N=32 --input labels=labels.npy
report replicas.heddle three_devices 3350 --net train --symbol N=32 --input labels=labels.npy
report ten_thousand.json ten_thousand 2400

"$heddle" plan digits.heddle --net train --symbol N=32 --svg memory.svg --quiet
shot memory.svg training_memory 1240 660
"$heddle" model resnet50 --batch 2 --quiet -o two.heddle
"$heddle" plan resnet50.heddle --diff two.heddle --svg diff.svg --quiet
shot diff.svg difference 1240 1130
"$heddle" bench lenet.heddle --repeat 400 --svg histogram.svg --quiet
shot histogram.svg histogram 1000 420
"$heddle" train digits.heddle --steps 400 --batch 64 --seed 1 --data image=train_images.npy --data labels=train_labels.npy \
  --test-data image=test_images.npy --test-data labels=test_labels.npy --eval-every 40 --curve curve.svg --quiet -o trained.heddle
shot curve.svg curve 1240 1050
ls -l "$out"
