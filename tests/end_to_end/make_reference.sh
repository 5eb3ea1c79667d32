#!/bin/bash
# tests/end_to_end/make_reference.sh HEDDLE [NET...]: computes NET.f32 beside this script, 1,000 numbers spread evenly over the net's output, for
# each of the nets below or those given, with Debian's python3-torch from the weights that HEDDLE (the tool) writes for the recipes.
# reference_test.cc compares with them. Run it again only when a recipe changes.
set -euo pipefail
heddle=$(realpath "${1:?the heddle tool}")
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The inputs of a net in its order: NET.00.npy, ...
python3 - "$work" <<'PYTHON'
import numpy, sys

def numbers(shape, step, start=0):
    return (numpy.arange(numpy.prod(shape), dtype=numpy.int64) * step + start).reshape(shape)

def floats(*shape):
    return (numbers(shape, 7919) % 1000).astype("f4") / 500 - 1

inputs = {
    "densenet121": [floats(1, 3, 224, 224)],
    "dlrm": [floats(1000, 13)] + [numbers((1000, 20), 7919, 104729 * i) % 10000 for i in range(26)],
    "encoder": [numbers((1, 128), 7919) % 30522],
    "gru_seq2seq": [numbers((1, 32), 7919) % 8000, numbers((1, 24), 104729) % 8000],
    "lstm_tagger": [numbers((1, 64), 7919) % 10000],
    "resnet50": [floats(1, 3, 224, 224)],
    "unet": [floats(1, 3, 128, 128)],
}
for net, arrays in inputs.items():
    for i, array in enumerate(arrays):
        numpy.save(f"{sys.argv[1]}/{net}.{i:02}.npy", array)
PYTHON
[ $# -gt 0 ] || set -- densenet121 dlrm encoder gru_seq2seq lstm_tagger resnet50 unet
for net; do
  inputs=("$work/$net".??.npy)
  "$heddle" model "$net" -o "$work/$net.heddle" --weights "$work/$net.parameters.safetensors" --quiet
  python3 "$here/../../tools/models/reference_logits.py" "$net" "$work/$net.parameters.safetensors" "${inputs[@]}" "$work/$net.npy"
  python3 - "$work/$net.npy" "$here/$net.f32" <<'PYTHON'
import numpy, sys

output = numpy.load(sys.argv[1]).reshape(-1)
output[numpy.arange(1000) * output.size // 1000].astype("f4").tofile(sys.argv[2])
PYTHON
done
