"""The nets that imported_training.py has PyTorch export, and the data that they learn from."""
import csv
import importlib.util
import pathlib

import numpy as np
import sklearn.datasets
import torch
import torch.nn.functional as F
from torch import nn


class Convolutions(nn.Module):
    """Without biases before the normalisations: their gradients are 0 but for rounding, of which Adam makes whole steps."""

    def __init__(self, ratio):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Dropout(ratio), nn.Linear(256, 10))

    def forward(self, image):
        return self.layers(image)


class Residual(nn.Module):
    def __init__(self, _):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.first, self.second = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.narrow, self.shortcut = nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.Conv2d(8, 16, 1)
        self.head = nn.Linear(16, 10)

    def forward(self, image):
        x = F.silu(self.stem(image))
        x = F.silu(x + self.second(F.silu(self.first(x))))
        x = F.silu(self.narrow(x) + self.shortcut(F.avg_pool2d(x, 2)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Normalised(nn.Module):
    def __init__(self, ratio):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(30, 24), nn.LayerNorm(24), nn.GELU(), nn.Dropout(ratio), nn.Linear(24, 12), nn.LayerNorm(12), nn.GELU(),
                                    nn.Linear(12, 1))

    def forward(self, features):
        return self.layers(features)


class Regression(nn.Module):
    def __init__(self, ratio):
        super().__init__()
        self.wide, self.gate, self.drop, self.last = nn.Linear(10, 24), nn.Linear(10, 24), nn.Dropout(ratio), nn.Linear(24, 1)

    def forward(self, features):
        return self.last(self.drop(torch.tanh(self.wide(features)) * torch.sigmoid(self.gate(features))))


class Recurrent(nn.Module):
    """Both kinds, the first in both directions."""

    def __init__(self, ratio):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(8, 12, batch_first=True, bidirectional=True), nn.GRU(24, 16, batch_first=True)
        self.drop, self.head = nn.Dropout(ratio), nn.Linear(16, 10)

    def forward(self, rows):
        return self.head(self.drop(self.gru(self.lstm(rows)[0])[0][:, -1]))


class Attention(nn.Module):
    def __init__(self, ratio):
        super().__init__()
        self.embed, self.places = nn.Linear(8, 16), nn.Parameter(torch.randn(8, 16) * 0.1)
        self.encoder = nn.TransformerEncoderLayer(16, 4, dim_feedforward=32, dropout=ratio, activation="gelu", batch_first=True)
        self.head = nn.Linear(16, 10)

    def forward(self, rows):
        return self.head(self.encoder(self.embed(rows) + self.places).mean(1))


CATEGORIES = {"occupation": 6, "occupation_husb": 6, "religious": 4, "educ": 6, "rate_marriage": 5}
NUMBERS = ("age", "yrs_married", "children")
OCCUPATIONS = ("student", "farming", "white-collar", "teaching", "managing", "advanced")


class Tabular(nn.Module):
    """With gradients of the rows that are used, as Heddle has them."""

    def __init__(self, ratio):
        super().__init__()
        self.tables = nn.ModuleDict({name: nn.Embedding(count, 4, sparse=True) for name, count in CATEGORIES.items()})
        self.layers = nn.Sequential(nn.Linear(len(NUMBERS) + 4 * len(CATEGORIES), 32), nn.ReLU(), nn.Dropout(ratio), nn.Linear(32, 1))

    def forward(self, numbers, occupation, occupation_husb, religious, educ, rate_marriage):
        categories = (occupation, occupation_husb, religious, educ, rate_marriage)
        rows = [table(category) for table, category in zip(self.tables.values(), categories)]
        return self.layers(torch.cat([numbers, *rows], 1)).squeeze(1)


class Adam:
    """Of tables SparseAdam, which adds epsilon before the correction of the bias."""

    def __init__(self, net, rate):
        tables = [module.weight for module in net.modules() if isinstance(module, nn.Embedding)]
        others = [weight for weight in net.parameters() if not any(weight is table for table in tables)]
        self.parts = [torch.optim.Adam(others, lr=rate)] + ([torch.optim.SparseAdam(tables, lr=rate)] if tables else [])

    def zero_grad(self):
        for part in self.parts:
            part.zero_grad()

    def step(self):
        for part in self.parts:
            part.step()


OPTIMIZERS = {"sgd": lambda net, rate: torch.optim.SGD(net.parameters(), lr=rate), "adam": Adam}
LOSSES = {"cross_entropy": F.cross_entropy, "mse": F.mse_loss, "bce": F.binary_cross_entropy_with_logits}


class Task:
    """A net with its data. `train` and `test`: input -> array, the target last; `files`: what --data is given, {} where it is the part."""

    def __init__(self, make, loss, train, test, files=None, rate=0.1, batch=32):
        self.make, self.loss, self.train, self.test, self.files, self.batch = make, loss, train, test, files, batch
        self.rates = {"sgd": rate, "adam": 0.005}
        *self.inputs, self.target = train

    def net(self, ratio):
        torch.manual_seed(7)
        return self.make(ratio)

    def data(self, folder, part):
        if self.files:
            return [f"{name}={what.format(folder / part)}" for name, what in self.files.items()]
        return [f"{name}={folder / f'{part}_{name}.npy'}" for name in self.train]

    def write(self, folder):
        for part, arrays in (("train", self.train), ("test", self.test)):
            for name, array in arrays.items() if not self.files else ():
                np.save(folder / f"{part}_{name}.npy", array)


def halves(arrays, held_out):
    return {n: a[~held_out] for n, a in arrays.items()}, {n: a[held_out] for n, a in arrays.items()}


def every_fifth(count):
    return np.arange(count) % 5 == 4


def standard(columns):
    return ((columns - columns.mean(0)) / columns.std(0)).astype("f4")


def fair(folder):
    """Writes the table as train.csv and test.csv, occupations as texts; returns the task."""
    source = pathlib.Path(importlib.util.find_spec("statsmodels").origin).parent / "datasets/fair/fair.csv"
    with open(source, newline="") as file:
        header, *lines = csv.reader(file)
    table = {name: np.array([float(line[i]) for line in lines]) for i, name in enumerate(header)}
    held_out = every_fifth(len(lines))
    columns = dict(zip(NUMBERS, standard(np.stack([table[name] for name in NUMBERS], 1)).T))
    arrays = {"numbers": np.stack([columns[name] for name in NUMBERS], 1)}
    for name in CATEGORIES:
        codes = np.unique(table[name], return_inverse=True)[1]
        columns[name] = np.array(OCCUPATIONS)[codes] if name.startswith("occupation") else codes
        arrays[name] = np.unique(columns[name], return_inverse=True)[1].astype("i8")
    columns["any"] = arrays["any"] = (table["affairs"] > 0).astype("f4")
    for part, rows in (("train", ~held_out), ("test", held_out)):
        with open(folder / f"{part}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*(column[rows] for column in columns.values())))
    files = {"numbers": "{}.csv:" + ",".join(NUMBERS), **{name: "{}.csv:" + name for name in (*CATEGORIES, "any")}}
    return Task(Tabular, "bce", *halves(arrays, held_out), files, rate=0.5, batch=64)


def tasks(folder, samples=1438):
    """Returns what makes each task, by name; of the digits the first `samples` are learned from, and those after 1,438 held out."""
    digits = sklearn.datasets.load_digits()
    kept = np.arange(len(digits.target))
    kept = kept[(kept < samples) | (kept >= 1438)]
    images, labels, last = (digits.images[kept] / 16).astype("f4"), digits.target[kept].astype("i8"), kept >= 1438
    pictures = halves({"image": images[:, None], "labels": labels}, last)
    rows = halves({"rows": images, "labels": labels}, last)
    cancer, diabetes = sklearn.datasets.load_breast_cancer(), sklearn.datasets.load_diabetes()
    tumours = {"features": standard(cancer.data), "benign": cancer.target.astype("f4")[:, None]}
    patients = {"features": standard(diabetes.data), "progress": standard(diabetes.target[:, None])}
    return {
        "convolutions": lambda: Task(Convolutions, "cross_entropy", *pictures),
        "residual": lambda: Task(Residual, "cross_entropy", *pictures, rate=1.0),
        "layer norm": lambda: Task(Normalised, "bce", *halves(tumours, every_fifth(len(cancer.target)))),
        "regression": lambda: Task(Regression, "mse", *halves(patients, every_fifth(len(diabetes.target)))),
        "recurrent": lambda: Task(Recurrent, "cross_entropy", *rows, rate=1.0),
        "attention": lambda: Task(Attention, "cross_entropy", *rows),
        "tabular": lambda: fair(folder)}
