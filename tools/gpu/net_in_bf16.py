#!/usr/bin/env python3
"""Writes a net of f32 as the same net of bf16: inputs, weights, constants and what is computed. Needs nothing but Python.

  heddle convert net.heddle net.json && tools/gpu/net_in_bf16.py net.json bf16.json

Weights are cut to the upper half of their bits, which is enough to measure time; they go to bf16.safetensors beside the net.
"""
import json
import os
import sys

FLOAT, BFLOAT16 = 1, 16  # ONNX's numbers of the types, in the attributes of Cast and others


def read_header(file):
    length = int.from_bytes(file.read(8), "little")
    return json.loads(file.read(length)), 8 + length


def convert_weights(source, target):
    with open(source, "rb") as file:
        header, begin = read_header(file)
        header.pop("__metadata__", None)
        ends, at = {}, 0
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            size = last - first if entry["dtype"] != "F32" else (last - first) // 2
            ends[name] = {"dtype": "BF16" if entry["dtype"] == "F32" else entry["dtype"], "shape": entry["shape"], "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(ends).encode()
        text += b" " * (-len(text) % 8)
        with open(target, "wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for entry in header.values():
                first, last = entry["data_offsets"]
                file.seek(begin + first)
                data = file.read(last - first)
                if entry["dtype"] == "F32":
                    upper = bytearray(len(data) // 2)
                    upper[0::2], upper[1::2] = data[2::4], data[3::4]
                    data = bytes(upper)
                out.write(data)


def convert(item, sources, weights):
    if isinstance(item, list):
        for one in item:
            convert(one, sources, weights)
    elif isinstance(item, dict):
        if item.get("dtype") == "f32":
            item["dtype"] = "bf16"
        if item.get("type") == "Cast" and item["attributes"]["to"]["int"] == FLOAT:
            item["attributes"]["to"]["int"] = BFLOAT16
        if isinstance(item.get("weights"), dict):
            sources.add(item["weights"]["file"])
            item["weights"] = {"file": weights, "tensor": item["weights"]["tensor"]}
        for one in item.values():
            convert(one, sources, weights)


def main():
    source, target = sys.argv[1:]
    with open(source) as file:
        net = json.load(file)
    weights = os.path.splitext(os.path.basename(target))[0] + ".safetensors"
    sources = set()
    convert(net, sources, weights)
    if len(sources) != 1:
        sys.exit(f"the net has weights in {len(sources)} files, expected one")
    convert_weights(os.path.join(os.path.dirname(source), sources.pop()), os.path.join(os.path.dirname(target), weights))
    with open(target, "w") as file:
        json.dump(net, file)


main()
