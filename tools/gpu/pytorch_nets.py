"""The recipes of tools/models in PyTorch, with weights of their own: for measurements of time alone."""
import torch
from torch import nn
from torch.nn import functional


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
    """BERT base: 12 post-norm layers of width 768 with 12 heads, 128 tokens. With a head it sorts texts into two classes, as it is trained."""

    def __init__(self, has_head=False):
        super().__init__()
        self.word, self.position = nn.Embedding(30522, 768), nn.Embedding(512, 768)
        self.norm = nn.LayerNorm(768, eps=1e-12)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0, activation="gelu", layer_norm_eps=1e-12, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.register_buffer("places", torch.arange(128))
        self.head = nn.Sequential(nn.Linear(768, 768), nn.Tanh(), nn.Linear(768, 2)) if has_head else None

    def forward(self, tokens):
        y = self.layers(self.norm(self.word(tokens) + self.position(self.places)))
        return self.head(y[:, 0]) if self.head else y


class LstmTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10000, 128)
        self.lstm = nn.LSTM(128, 256, num_layers=2, bidirectional=True, batch_first=True)
        self.tag = nn.Linear(512, 45)

    def forward(self, tokens):
        return self.tag(self.lstm(self.embedding(tokens))[0])


def perceptron(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return layers


class Dlrm(nn.Module):
    """26 tables with bags of 20 rows, the products of all pairs. Indices are one tensor [26, batch, 20]."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(10000, 64, mode="sum") for _ in range(26))
        self.bottom = nn.Sequential(*perceptron(13, 512, 256, 64))
        self.top = nn.Sequential(*perceptron(64 + 351, 512, 256), nn.Linear(256, 1))
        rows, columns = torch.tril_indices(27, 27, -1)
        self.register_buffer("below", rows * 27 + columns)

    def forward(self, dense, indices):
        x = self.bottom(dense)
        vectors = torch.stack([x] + [table(indices[i]) for i, table in enumerate(self.tables)], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([x, products[:, self.below]], 1))


def mlp():
    return nn.Sequential(*perceptron(784, 512, 256), nn.Linear(256, 10))


def inception_v3():
    """Of torchvision, where it is there."""
    from torchvision import models

    return models.inception_v3(weights=None, aux_logits=False, init_weights=False)


MODELS = {"mlp": mlp, "resnet50": resnet50, "encoder": Encoder, "inception_v3": inception_v3, "lstm_tagger": LstmTagger, "dlrm": Dlrm}


def model_of(net, is_trained):
    return Encoder(has_head=True) if net == "encoder" and is_trained else MODELS[net]()


def inputs_of(net, batch, dtype=torch.float32):
    if net == "resnet50":
        return [(torch.rand(batch, 3, 224, 224) * 2 - 1).to(dtype)]
    if net == "inception_v3":
        return [(torch.rand(batch, 3, 299, 299) * 2 - 1).to(dtype)]
    if net == "mlp":
        return [torch.rand(batch, 784).to(dtype)]
    if net == "dlrm":
        return [torch.rand(batch, 13).to(dtype), torch.randint(0, 101, (26, batch, 20))]
    return [torch.randint(0, 101, (batch, 128 if net == "encoder" else 64))]


def loss_of(net, logits, batch):
    """Of labels that are all alike, which costs the same."""
    if net == "dlrm":
        return functional.binary_cross_entropy_with_logits(logits, torch.zeros_like(logits))
    return functional.cross_entropy(logits, torch.zeros(batch, dtype=torch.int64, device=logits.device))
