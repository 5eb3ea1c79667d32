#!/usr/bin/env python3
"""Trains a recipe's training form with PyTorch, from the same weights and data as `heddle train`: losses, time of a step, memory.

    heddle model NAME --train --weights w.safetensors -o net.heddle
    heddle train net.heddle --steps 20 --batch 8 --threads 2 --data INPUT=x.npy --data labels=labels.npy --log log.jsonl
    train_torch.py NAME w.safetensors INPUT.npy ... labels.npy [--steps 20] [--threads 2] [--rate 0.01] [--momentum 0.9]

SGD with momentum 0.9, as the training form has it; dlrm's tables have gradients by rows, which take --momentum 0. The arrays are one batch, which every step takes. Beside the losses it prints the median
and the fastest time of the steps after the first three, and the most memory that the process had, without what it had before the first step, parameters
among it, and without the optimizer's state.
"""
import argparse
import pathlib
import statistics
import sys
import time

import numpy
import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "models"))
import reference_logits  # noqa: E402


class Layers(reference_logits.Layers):
    """The same with statistics of the batch, which move the running ones, and with modules that are made once."""

    def __init__(self, weights):
        super().__init__(weights)
        self.modules = {}
        for name, tensor in weights.items():
            tensor.requires_grad_(not name.endswith(("running_mean", "running_var")))

    def norm(self, name, x, epsilon=1e-5):
        mean, variance = self.parameter(name + ".running_mean"), self.parameter(name + ".running_var")
        return F.batch_norm(x, mean, variance, self.parameter(name + ".weight"), self.parameter(name + ".bias"), True, 0.1, epsilon)

    def recurrent(self, module, names, gates):
        if names[0] not in self.modules:
            self.modules[names[0]] = super().recurrent(module, names, gates)
        return self.modules[names[0]]

    def trainable(self):
        """A recurrent layer's W, R and B were copied into its module."""
        own = [tensor for name, tensor in self.weights.items() if tensor.requires_grad and not name.endswith((".W", ".R", ".B"))]
        return own + [parameter for module in self.modules.values() for parameter in module.parameters()]


def encoder(layers, tokens):
    first = reference_logits.encoder(layers, tokens)[:, 0]
    return layers.dense("classifier", torch.tanh(layers.dense("pooler.dense", first)))


def dlrm(layers, dense, *indices):
    bags = F.embedding_bag
    F.embedding_bag = lambda *given, **named: bags(*given, **named, sparse=True)
    try:
        return reference_logits.dlrm(layers, dense, *indices)
    finally:
        F.embedding_bag = bags


MODELS = {**reference_logits.MODELS, "encoder": encoder, "dlrm": dlrm}


def status(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise KeyError(key)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("weights")
    parser.add_argument("arrays", nargs="+", help="the inputs in their order, then the labels")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    *inputs, labels = (torch.from_numpy(numpy.load(array)) for array in o.arrays)
    layers = Layers(reference_logits.load_safetensors(o.weights))

    def loss_of():
        logits = MODELS[o.model](layers, *inputs)
        if o.model == "dlrm":
            return F.binary_cross_entropy_with_logits(logits.flatten(), labels.to(logits.dtype))
        if o.model == "unet":
            return F.cross_entropy(logits, labels)  # the classes are the second axis
        return F.cross_entropy(logits.flatten(0, -2), labels.flatten())

    if o.model == "lstm_tagger":
        with torch.no_grad():
            loss_of()  # makes the module
    trainable = layers.trainable()
    optimizer = torch.optim.SGD(trainable, lr=o.rate, momentum=o.momentum)
    before = status("VmRSS")
    losses, times = [], []
    for _ in range(o.steps):
        begin = time.perf_counter()
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
        losses.append(loss.item())
    bytes_of = sum(t.numel() * t.element_size() for t in trainable) if o.momentum else 0
    print("losses", " ".join(f"{loss:.7g}" for loss in losses[:5]))
    counted = times[3:] or times
    print(f"step {statistics.median(counted) * 1e3:.2f} ms, median of {len(counted)}; the fastest {min(counted) * 1e3:.2f} ms")
    print(f"high water {(status('VmHWM') - before - bytes_of) / 2**20:.1f} MiB beyond what was there and the optimizer's {bytes_of / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
