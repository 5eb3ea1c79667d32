#!/usr/bin/env python3
"""ResNet-50 and the encoder in PyTorch on the GPU, to compare `heddle bench --device cuda:0` with: the same nets (tools/models), the same
numbers (f32 without TF32), and the same work: an input in pageable memory of the host goes there, the result comes back.

  tools/gpu/pytorch_bench.py NET BATCH [--repeat K] [--warmup W] [--device D] [--ways eager,compile]

One line as soon as a way is measured:  eager: median 7012.3 us (min 6954.0 us, 20 runs)
Ends with 3 where PyTorch does not import or sees no GPU, and says so.
"""
import argparse
import statistics
import sys
import time

try:
    import torch
    from torch import nn
except ImportError as error:
    print(f"PyTorch does not import: {error}")
    sys.exit(3)


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))
        self.shortcut = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet50():
    """Version 1.5: the stride is in the 3x3 convolution."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(count):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


class Encoder(nn.Module):
    """BERT base: 12 post-norm layers of width 768 with 12 heads, 128 tokens."""

    def __init__(self):
        super().__init__()
        self.word, self.position = nn.Embedding(30522, 768), nn.Embedding(512, 768)
        self.norm = nn.LayerNorm(768, eps=1e-12)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0, activation="gelu", layer_norm_eps=1e-12, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.register_buffer("places", torch.arange(128))

    def forward(self, tokens):
        return self.layers(self.norm(self.word(tokens) + self.position(self.places)))


def inputs_of(net, batch):
    return torch.rand(batch, 3, 224, 224) * 2 - 1 if net == "resnet50" else torch.randint(0, 101, (batch, 128))


def measure(model, x, options):
    def run():
        return model(x.to(options.device)).cpu()

    for _ in range(options.warmup):
        run()
    times = []
    for _ in range(options.repeat):
        begin = time.perf_counter()
        run()
        times.append((time.perf_counter() - begin) * 1e6)
    return f"median {statistics.median(times):.1f} us (min {min(times):.1f} us, {options.repeat} runs)"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("net", choices=("resnet50", "encoder"))
    parser.add_argument("batch", type=int)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--ways", default="eager,compile")
    options = parser.parse_args()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        return 3
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    print("PyTorch", torch.__version__, flush=True)
    model = (resnet50() if options.net == "resnet50" else Encoder()).eval().to(options.device)
    x = inputs_of(options.net, options.batch)
    with torch.inference_mode():
        for way in options.ways.split(","):
            run = torch.compile(model) if way == "compile" else model
            print(f"{way}: {measure(run, x, options)}", flush=True)
    return 0


sys.exit(main())
