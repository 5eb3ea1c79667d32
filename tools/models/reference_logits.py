#!/usr/bin/env python3
"""Computes a recipe's output with PyTorch from the recipe's own weights: the reference that Heddle's results are compared with.

    reference_logits.py MODEL WEIGHTS.safetensors INPUT.npy... OUTPUT.npy

MODEL is a recipe of `heddle model --list`. WEIGHTS holds all of its parameters and running statistics (write_weights in
tools/models/recipes.h). The INPUTs are the net's, in its order: f32 [batch, channels, height, width]; f32 [batch, 784] for mlp; tokens, i64
[batch, length], for encoder, lstm_tagger and gru_seq2seq (source, target); f32 [batch, 13] and 26 times i64 [batch, 20] for dlrm.
Needs Debian's python3-torch and python3-numpy. Runs on one thread, so that a repeated run gives the same bytes.
"""
import json
import sys

import numpy
import torch
import torch.nn.functional as F

DTYPES = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64, "I32": torch.int32}


def load_safetensors(path):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    length = int.from_bytes(data[:8], "little")
    header = json.loads(bytes(data[8 : 8 + length]))
    tensors = {}
    for name, entry in header.items():
        if name.startswith("__") or entry["dtype"] not in DTYPES:
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = DTYPES[entry["dtype"]]
        tensors[name] = torch.frombuffer(data[begin:end], dtype=dtype).reshape(entry["shape"])
    return tensors


class Layers:
    """Layers by the names of their parameters."""

    def __init__(self, weights):
        self.weights = weights

    def parameter(self, name):
        if name not in self.weights:
            sys.exit(f"error: the weights have no tensor {name!r}; write them with all parameters in the safetensors file")
        return self.weights[name]

    def conv(self, name, x, stride=1, padding=0, groups=1, bias=False):
        offset = self.parameter(name + ".bias") if bias else None
        return F.conv2d(x, self.parameter(name + ".weight"), offset, stride, padding, 1, groups)

    def norm(self, name, x, epsilon=1e-5):
        mean, variance = self.parameter(name + ".running_mean"), self.parameter(name + ".running_var")
        return F.batch_norm(x, mean, variance, self.parameter(name + ".weight"), self.parameter(name + ".bias"), False, 0, epsilon)

    def linear(self, name, x):
        return F.linear(x, self.parameter(name + ".weight"), self.parameter(name + ".bias"))

    def dense(self, name, x):
        return x @ self.parameter(name + ".weight") + self.parameter(name + ".bias")

    def layer_norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.parameter(name + ".weight"), self.parameter(name + ".bias"), 1e-12)

    def embedding(self, name, indices):
        return F.embedding(indices, self.parameter(name + ".weight"))

    def recurrent(self, module, names, gates):
        """`module`, a torch.nn.LSTM or GRU, with the weights of ONNX operators: layer i is names[i]. ONNX stacks the directions in W, R and
        B, and both biases in B; gates[k] is the place in ONNX's rows of what torch has as its gate k."""
        state = {}

        def in_torch_order(rows):
            return torch.cat([rows.chunk(len(gates))[gate] for gate in gates])

        for layer, name in enumerate(names):
            w, r, b = (self.parameter(f"{name}.{part}") for part in "WRB")
            for direction in range(w.shape[0]):
                suffix = f"l{layer}" + ("_reverse" if direction else "")
                bias_ih, bias_hh = b[direction].chunk(2)
                parts = {"weight_ih": w[direction], "weight_hh": r[direction], "bias_ih": bias_ih, "bias_hh": bias_hh}
                state.update({f"{part}_{suffix}": in_torch_order(rows) for part, rows in parts.items()})
        module.load_state_dict(state)
        return module

    def lstm(self, names, *sizes, **options):
        # ONNX: input, output, forget, cell. torch: input, forget, cell, output.
        return self.recurrent(torch.nn.LSTM(*sizes, num_layers=len(names), batch_first=True, **options), names, (0, 2, 3, 1))

    def gru(self, names, *sizes, **options):
        # ONNX: update, reset, hidden. torch: reset, update, new.
        return self.recurrent(torch.nn.GRU(*sizes, num_layers=len(names), batch_first=True, **options), names, (1, 0, 2))


def resnet(layers, x, depths, bottleneck):
    x = F.relu(layers.norm("bn1", layers.conv("conv1", x, 2, 3)))
    x = F.max_pool2d(x, 3, 2, 1)
    for stage, depth in enumerate(depths):
        for i in range(depth):
            block = f"layer{stage + 1}.{i}"
            stride = 2 if i == 0 and stage > 0 else 1
            strides = [1, stride, 1] if bottleneck else [stride, 1]
            paddings = [0, 1, 0] if bottleneck else [1, 1]
            y = x
            for k, (s, p) in enumerate(zip(strides, paddings), 1):
                y = layers.norm(f"{block}.bn{k}", layers.conv(f"{block}.conv{k}", y, s, p))
                y = F.relu(y) if k < len(strides) else y
            if f"{block}.downsample.0.weight" in layers.weights:
                x = layers.norm(f"{block}.downsample.1", layers.conv(f"{block}.downsample.0", x, stride))
            x = F.relu(y + x)
    return layers.linear("fc", x.mean((2, 3)))


def lenet(layers, x):
    x = F.max_pool2d(F.relu(layers.conv("conv1", x, padding=2, bias=True)), 2)
    x = F.max_pool2d(F.relu(layers.conv("conv2", x, bias=True)), 2).flatten(1)
    return layers.linear("fc3", F.relu(layers.linear("fc2", F.relu(layers.linear("fc1", x)))))


def mlp(layers, x):
    return layers.linear("fc3", F.relu(layers.linear("fc2", F.relu(layers.linear("fc1", x)))))


def mobilenet_v2(layers, x):
    def step(conv, norm, x, activate=True, **options):
        x = layers.norm(norm, layers.conv(conv, x, **options))
        return F.relu6(x) if activate else x

    x = step("features.0.0", "features.0.1", x, stride=2, padding=1)
    stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    index = 1
    for expansion, width, repeats, first_stride in stages:
        for i in range(repeats):
            conv = f"features.{index}.conv."
            y, k = x, 0
            if expansion != 1:
                y, k = step(conv + "0.0", conv + "0.1", y), 1
            stride = first_stride if i == 0 else 1
            y = step(f"{conv}{k}.0", f"{conv}{k}.1", y, stride=stride, padding=1, groups=y.shape[1])
            y = step(f"{conv}{k + 1}", f"{conv}{k + 2}", y, activate=False)
            x = x + y if stride == 1 and x.shape[1] == width else y
            index += 1
    x = step("features.18.0", "features.18.1", x)
    return layers.linear("classifier.1", x.mean((2, 3)))


def inception_v3(layers, x):
    def step(name, x, stride=1, padding=0):
        return F.relu(layers.norm(name + ".bn", layers.conv(name + ".conv", x, stride, padding), 1e-3))

    def chain(block, x, *steps):
        for label, options in steps:
            x = step(f"{block}.{label}", x, **options)
        return x

    def pooled(block, x):
        return step(block + ".branch_pool", F.avg_pool2d(x, 3, 1, 1))

    same3, half3, row7, column7 = {"padding": 1}, {"stride": 2}, {"padding": (0, 3)}, {"padding": (3, 0)}
    x = step("Conv2d_1a_3x3", x, stride=2)
    x = step("Conv2d_2b_3x3", step("Conv2d_2a_3x3", x), padding=1)
    x = F.max_pool2d(x, 3, 2)
    x = F.max_pool2d(step("Conv2d_4a_3x3", step("Conv2d_3b_1x1", x)), 3, 2)
    for b in ("Mixed_5b", "Mixed_5c", "Mixed_5d"):
        five = chain(b, x, ("branch5x5_1", {}), ("branch5x5_2", {"padding": 2}))
        three = chain(b, x, ("branch3x3dbl_1", {}), ("branch3x3dbl_2", same3), ("branch3x3dbl_3", same3))
        x = torch.cat([step(b + ".branch1x1", x), five, three, pooled(b, x)], 1)
    twice = chain("Mixed_6a", x, ("branch3x3dbl_1", {}), ("branch3x3dbl_2", same3), ("branch3x3dbl_3", half3))
    x = torch.cat([step("Mixed_6a.branch3x3", x, stride=2), twice, F.max_pool2d(x, 3, 2)], 1)
    for b in ("Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e"):
        seven = chain(b, x, ("branch7x7_1", {}), ("branch7x7_2", row7), ("branch7x7_3", column7))
        twice = chain(b, x, ("branch7x7dbl_1", {}), ("branch7x7dbl_2", column7), ("branch7x7dbl_3", row7), ("branch7x7dbl_4", column7),
                      ("branch7x7dbl_5", row7))
        x = torch.cat([step(b + ".branch1x1", x), seven, twice, pooled(b, x)], 1)
    three = chain("Mixed_7a", x, ("branch3x3_1", {}), ("branch3x3_2", half3))
    seven = chain("Mixed_7a", x, ("branch7x7x3_1", {}), ("branch7x7x3_2", row7), ("branch7x7x3_3", column7), ("branch7x7x3_4", half3))
    x = torch.cat([three, seven, F.max_pool2d(x, 3, 2)], 1)
    for b in ("Mixed_7b", "Mixed_7c"):
        three = step(b + ".branch3x3_1", x)
        three = torch.cat([step(b + ".branch3x3_2a", three, padding=(0, 1)), step(b + ".branch3x3_2b", three, padding=(1, 0))], 1)
        twice = chain(b, x, ("branch3x3dbl_1", {}), ("branch3x3dbl_2", same3))
        twice = torch.cat([step(b + ".branch3x3dbl_3a", twice, padding=(0, 1)), step(b + ".branch3x3dbl_3b", twice, padding=(1, 0))], 1)
        x = torch.cat([step(b + ".branch1x1", x), three, twice, pooled(b, x)], 1)
    return layers.linear("fc", x.mean((2, 3)))


def encoder(layers, tokens):
    batch, length = tokens.shape
    x = layers.parameter("embeddings.word.weight")[tokens] + layers.parameter("embeddings.position.weight")[:length]
    x = layers.layer_norm("embeddings.norm", x)

    def heads(name, x):
        return layers.dense(name, x).view(batch, length, 12, 64).transpose(1, 2)

    for i in range(12):
        layer = f"layer.{i}"
        query, key, value = (heads(f"{layer}.attention.{part}", x) for part in ("query", "key", "value"))
        weights = torch.softmax(query @ key.transpose(-1, -2) * 0.125, -1)
        mixed = (weights @ value).transpose(1, 2).reshape(batch, length, 768)
        x = layers.layer_norm(f"{layer}.attention.norm", x + layers.dense(f"{layer}.attention.output", mixed))
        wide = F.gelu(layers.dense(f"{layer}.intermediate", x))
        x = layers.layer_norm(f"{layer}.norm", x + layers.dense(f"{layer}.output", wide))
    return x


def densenet121(layers, x):
    def step(layer, index, x, padding=0):
        return layers.conv(f"{layer}.conv{index}", F.relu(layers.norm(f"{layer}.norm{index}", x)), padding=padding)

    x = F.relu(layers.norm("features.norm0", layers.conv("features.conv0", x, 2, 3)))
    x = F.max_pool2d(x, 3, 2, 1)
    for block, depth in enumerate((6, 12, 24, 16), 1):
        for i in range(1, depth + 1):
            layer = f"features.denseblock{block}.denselayer{i}"
            x = torch.cat([x, step(layer, 2, step(layer, 1, x), 1)], 1)
        if block < 4:
            x = F.avg_pool2d(step(f"features.transition{block}", "", x), 2, 2)
    return layers.linear("classifier", F.relu(layers.norm("features.norm5", x)).mean((2, 3)))


def unet(layers, x):
    def twice(prefix, x):
        for i in (1, 2):
            x = F.relu(layers.norm(f"{prefix}norm{i}", layers.conv(f"{prefix}conv{i}", x, padding=1)))
        return x

    skipped = []
    for level in (1, 2, 3, 4):
        skipped.append(twice(f"encoder{level}.enc{level}", x))
        x = F.max_pool2d(skipped[-1], 2, 2)
    x = twice("bottleneck.bottleneck", x)
    for level in (4, 3, 2, 1):
        up = f"upconv{level}"
        x = F.conv_transpose2d(x, layers.parameter(up + ".weight"), layers.parameter(up + ".bias"), 2)
        x = twice(f"decoder{level}.dec{level}", torch.cat([x, skipped.pop()], 1))
    return layers.conv("conv", x, bias=True)


def lstm_tagger(layers, tokens):
    lstm = layers.lstm(["lstm.l0", "lstm.l1"], 128, 256, bidirectional=True)
    return layers.dense("tag", lstm(layers.embedding("embedding", tokens))[0])


def gru_seq2seq(layers, source, target):
    states, last = layers.gru(["encoder"], 256, 256, bidirectional=True)(layers.embedding("source_embedding", source))
    begin = torch.cat([last[0], last[1]], -1)[None]
    queries = layers.gru(["decoder"], 256, 512)(layers.embedding("target_embedding", target), begin)[0]
    mixed = torch.softmax(queries @ states.transpose(1, 2), -1) @ states
    return layers.dense("output", torch.tanh(layers.dense("attention.combine", torch.cat([mixed, queries], -1))))


def dlrm(layers, dense, *indices):
    def perceptron(name, x):
        return F.relu(layers.linear(f"{name}.2", F.relu(layers.linear(f"{name}.0", x))))

    x = F.relu(layers.linear("bot_l.4", perceptron("bot_l", dense)))
    bags = [F.embedding_bag(bag, layers.parameter(f"emb_l.{i}.weight"), mode="sum") for i, bag in enumerate(indices)]
    vectors = torch.stack([x] + bags, 1)
    row, column = torch.tril_indices(len(bags) + 1, len(bags) + 1, -1)
    products = torch.bmm(vectors, vectors.transpose(1, 2))[:, row, column]
    return layers.linear("top_l.4", perceptron("top_l", torch.cat([x, products], 1)))


MODELS = {
    "densenet121": densenet121,
    "dlrm": dlrm,
    "encoder": encoder,
    "gru_seq2seq": gru_seq2seq,
    "inception_v3": inception_v3,
    "lenet": lenet,
    "lstm_tagger": lstm_tagger,
    "mlp": mlp,
    "mobilenet_v2": mobilenet_v2,
    "resnet18": lambda layers, x: resnet(layers, x, [2, 2, 2, 2], False),
    "resnet50": lambda layers, x: resnet(layers, x, [3, 4, 6, 3], True),
    "unet": unet,
}


def main(arguments):
    if len(arguments) < 4 or arguments[0] not in MODELS:
        sys.exit(__doc__ + "\nmodels: " + ", ".join(MODELS))
    model, weights, *sources, target = arguments
    torch.set_num_threads(1)
    with torch.no_grad():
        output = MODELS[model](Layers(load_safetensors(weights)), *(torch.from_numpy(numpy.load(source)) for source in sources))
    numpy.save(target, output.contiguous().numpy())
    print(f"{model}: {list(output.shape)}, mean {output.mean():.6g}, standard deviation {output.std():.6g}, largest {output.abs().max():.6g}")


if __name__ == "__main__":
    main(sys.argv[1:])
