#!/bin/bash
# tests/end_to_end/make_reference.sh HEDDLE: computes resnet50.f32 and encoder.f32 beside this script with Debian's python3-torch from the weights
# that HEDDLE (the tool) writes for the recipes. reference_test.cc compares with them. Run it again only when a recipe changes.
set -euo pipefail
heddle=$(realpath "${1:?the heddle tool}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$work" <<'PYTHON'
import numpy, sys
i = numpy.arange(3 * 224 * 224, dtype=numpy.int64)
numpy.save(f"{sys.argv[1]}/image.npy", ((i * 7919 % 1000).astype("f4") / 500 - 1).reshape(1, 3, 224, 224))
numpy.save(f"{sys.argv[1]}/tokens.npy", (numpy.arange(128, dtype=numpy.int64) * 7919 % 30522).reshape(1, 128))
PYTHON
for pair in resnet50:image encoder:tokens; do
  net=${pair%:*} input=${pair#*:}
  "$heddle" model "$net" -o "$work/$net.heddle" --weights "$work/$net.parameters.safetensors" --quiet
  python3 "$here/../../tools/models/reference_logits.py" "$net" "$work/$net.parameters.safetensors" "$work/$input.npy" "$work/$net.npy"
  python3 -c "import numpy, sys; numpy.load(sys.argv[1]).reshape(-1)[:1000].astype('f4').tofile(sys.argv[2])" "$work/$net.npy" "$here/$net.f32"
done
