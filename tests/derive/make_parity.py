#!/usr/bin/env python3
"""Writes tests/derive/parity/*.json, which parity_test.cc holds Heddle's training to: nets that PyTorch has trained, in f64.

  pip install torch && python3 tests/derive/make_parity.py

Needs PyTorch; no test does. Nets, names of variables and inputs are those of parity_nets.h. A file has initial values, batches of several
sizes, which the steps take in turn, and of each run the losses of its steps and what the variables are in the end.

Learning rates are rounded to f32 first: a training net has its rate in f32. Of PyTorch's batch normalization only the running mean is
written: its running variance is that of a sample, ONNX's that of the population.
"""
import pathlib

import torch
import torch.nn.functional as F

STEPS = 20
FOLDER = pathlib.Path(__file__).parent / "parity"
RATE = {"sgd": 0.25, "momentum": 0.0625, "nesterov": 0.0625, "adagrad": 0.125, "rmsprop": 0.015625, "adam": 0.03125, "adamw": 0.03125}
SETTINGS = {
    "sgd": {"weight_decay": 0.01}, "momentum": {"momentum": 0.8}, "nesterov": {"momentum": 0.9, "weight_decay": 0.001},
    "adagrad": {"epsilon": 1e-6}, "rmsprop": {"alpha": 0.95, "weight_decay": 0.001}, "adam": {"beta2": 0.99, "weight_decay": 0.001},
    "adamw": {"beta1": 0.8, "weight_decay": 0.05}}


def mlp(p, batch):
    y = F.relu(F.linear(batch["x"], p["w1"], p["b1"]))
    return {"loss": F.cross_entropy(y @ p["w2"] + p["b2"], batch["labels"])}


def convolution(p, batch):
    y = F.conv2d(batch["x"], p["filter"], padding=1)
    y = F.batch_norm(y, p["mean"], p["variance"], p["scale"], p["bias"], training=True, momentum=0.1, eps=1e-5)
    y = F.max_pool2d(F.relu(y), 2)
    return {"loss": F.cross_entropy(F.linear(y.flatten(1), p["w"], p["b"]), batch["labels"])}


def embedding(p, batch, sparse=True):
    rows = [F.embedding(batch[name], p["table"], sparse=sparse).flatten(1) for name in ("first", "second")]
    y = F.relu(torch.cat(rows, 1) @ p["w1"] + p["b1"])
    return {"loss": F.cross_entropy(y @ p["w2"] + p["b2"], batch["labels"])}


def bags(p, batch, sparse=True):
    weights = batch["x"] @ p["w0"]
    first = F.embedding_bag(batch["first"], p["table1"], mode="sum", per_sample_weights=weights, sparse=sparse)
    second = F.embedding_bag(batch["second"], p["table1"], mode="mean", sparse=sparse)
    third = F.embedding_bag(batch["third"], p["table2"], mode="mean", sparse=sparse)
    y = F.relu(torch.cat([first, second, third], 1) @ p["w1"] + p["b1"])
    return {"loss": F.cross_entropy(y @ p["w2"] + p["b2"], batch["labels"])}


def transformer(p, batch):
    x = batch["x"] + p["position"]
    y = F.layer_norm(x, (4,), p["scale1"], p["bias1"])

    def heads(t):
        return t.reshape(-1, 5, 2, 2).transpose(1, 2)

    q, k, v = heads(y @ p["wq"] + p["bq"]), heads(y @ p["wk"]), heads(y @ p["wv"] + p["bv"])
    attention = torch.softmax(q @ k.transpose(2, 3) * 0.5, -1) @ v
    x = x + attention.transpose(1, 2).reshape(-1, 5, 4) @ p["wo"] + p["bo"]
    y = F.layer_norm(x, (4,), p["scale2"], p["bias2"])
    x = x + F.gelu(y @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
    return {"loss": F.cross_entropy(x.mean(1) @ p["w"] + p["b"], batch["labels"])}


def inception(p, batch):
    x = batch["x"]
    one = F.conv2d(x, p["one.filter"], p["one.bias"])
    three = F.conv2d(x, p["three.filter"], p["three.bias"], padding=1)
    average = F.conv2d(F.avg_pool2d(one, 3, 1, 1, count_include_pad=False), p["average.filter"], p["average.bias"])
    largest = F.conv2d(F.max_pool2d(three, 3, 1, 1), p["largest.filter"], p["largest.bias"])
    y = F.relu(torch.cat([one, three, average, largest], 1))
    beside = F.linear(y.mean((2, 3)), p["beside.w"], p["beside.b"])
    y = F.relu(F.conv2d(y, p["main.filter"], p["main.bias"], stride=2, padding=1)).mean((2, 3))
    return {"loss": F.cross_entropy(F.linear(y, p["w"], p["b"]), batch["labels"]),
            "auxiliary": 0.25 * F.cross_entropy(beside, batch["labels"])}


def lstm(p, batch):
    """Two directions over [batch, 5, 3], gates in ONNX's order: input, output, forget, cell."""
    x = batch["x"].transpose(0, 1)
    directions = []
    for d in (0, 1):
        bias = p["B"][d, :12] + p["B"][d, 12:]
        h = c = torch.zeros(x.shape[1], 3, dtype=torch.float64)
        states = []
        for x_t in x.flip(0) if d else x:
            i, o, f, g = (x_t @ p["W"][d].T + h @ p["R"][d].T + bias).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        directions.append((torch.stack(states[::-1] if d else states), h))
    every = torch.stack([y for y, _ in directions], 1).mean(0).transpose(0, 1).flatten(1)
    last = torch.stack([h for _, h in directions]).transpose(0, 1).flatten(1)
    return {"loss": F.cross_entropy((every + last) @ p["w"] + p["b"], batch["labels"])}


# ResNet-18 with fewer channels: names of its blocks, and channels in and out.
RESIDUAL_BLOCKS = [(f"layer{stage}.{i}", channels if i else before, channels) for stage, (before, channels) in
                   enumerate([(2, 2), (2, 3), (3, 4), (4, 4)], 1) for i in (0, 1)]


def residual(p, batch):
    def normalized(name, x):
        return F.batch_norm(x, p[name + ".mean"], p[name + ".variance"], p[name + ".scale"], p[name + ".bias"], training=True,
                            momentum=0.1, eps=1e-5)

    x = F.relu(normalized("bn", F.conv2d(batch["x"], p["conv.filter"], padding=1)))
    for name, before, channels in RESIDUAL_BLOCKS:
        stride = 1 if before == channels else 2
        y = F.relu(normalized(name + ".bn1", F.conv2d(x, p[name + ".conv1.filter"], stride=stride, padding=1)))
        y = normalized(name + ".bn2", F.conv2d(y, p[name + ".conv2.filter"], padding=1))
        if stride > 1:
            x = normalized(name + ".bn3", F.conv2d(x, p[name + ".conv3.filter"], stride=stride))
        x = F.relu(x + y)
    return {"loss": F.cross_entropy(x.mean((2, 3)) @ p["w"] + p["b"], batch["labels"])}


def residual_variables():
    trainable, fixed = {"conv.filter": (2, 2, 3, 3)}, {}

    def norm(name, channels):
        trainable.update({name + ".scale": (channels,), name + ".bias": (channels,)})
        fixed.update({name + ".mean": (channels,), name + ".variance": (channels,)})

    norm("bn", 2)
    for name, before, channels in RESIDUAL_BLOCKS:
        filters = [(channels, before, 3, 3), (channels, channels, 3, 3), (channels, before, 1, 1)]
        for i, shape in enumerate(filters[:2 if before == channels else 3], 1):
            trainable[f"{name}.conv{i}.filter"] = shape
            norm(f"{name}.bn{i}", channels)
    return {**trainable, "w": (4, 3), "b": (3,)}, fixed


# By net: its function, shapes of its variables (trainable, then not), of its inputs without the batch (a number: indices below it, of that
# shape), and the sizes of its batches.
NETS = {
    "mlp": (mlp, {"w1": (8, 5), "b1": (8,), "w2": (8, 3), "b2": (3,)}, {}, {"x": (5,), "labels": (3, ())}, (4, 7, 1)),
    "convolution": (convolution, {"filter": (3, 2, 3, 3), "scale": (3,), "bias": (3,), "w": (3, 27), "b": (3,)},
                    {"mean": (3,), "variance": (3,)}, {"x": (2, 6, 6), "labels": (3, ())}, (4, 3)),
    "embedding": (embedding, {"table": (9, 4), "w1": (20, 5), "b1": (5,), "w2": (5, 3), "b2": (3,)}, {},
                  {"first": (6, (3,)), "second": (9, (2,)), "labels": (3, ())}, (4, 3, 5)),
    "transformer": (transformer,
                    {"position": (5, 4), "scale1": (4,), "bias1": (4,), "wq": (4, 4), "bq": (4,), "wk": (4, 4), "wv": (4, 4), "bv": (4,),
                     "wo": (4, 4), "bo": (4,), "scale2": (4,), "bias2": (4,), "w1": (4, 8), "b1": (8,), "w2": (8, 4), "b2": (4,),
                     "w": (4, 3), "b": (3,)}, {}, {"x": (5, 4), "labels": (3, ())}, (4, 3)),
    "inception": (inception,
                  {"one.filter": (2, 2, 1, 1), "one.bias": (2,), "three.filter": (2, 2, 3, 3), "three.bias": (2,),
                   "average.filter": (2, 2, 1, 1), "average.bias": (2,), "largest.filter": (2, 2, 1, 1), "largest.bias": (2,),
                   "main.filter": (2, 8, 3, 3), "main.bias": (2,), "w": (3, 2), "b": (3,), "beside.w": (3, 8), "beside.b": (3,)}, {},
                  {"x": (2, 6, 6), "labels": (3, ())}, (4, 3)),
    "lstm": (lstm, {"W": (2, 12, 3), "R": (2, 12, 3), "B": (2, 24), "w": (6, 3), "b": (3,)}, {}, {"x": (5, 3), "labels": (3, ())}, (4, 1)),
    "residual": (residual, *residual_variables(), {"x": (2, 8, 8), "labels": (3, ())}, (5, 4)),
    "bags": (bags, {"table1": (9, 4), "table2": (7, 3), "w0": (2, 3), "w1": (11, 5), "b1": (5,), "w2": (5, 3), "b2": (3,)}, {},
             {"x": (2,), "first": (6, (3,)), "second": (9, (2,)), "third": (7, (5,)), "labels": (3, ())}, (4, 3, 5)),
}


def tables_of(names):
    """Variables that rows are looked up in."""
    return [name for name in names if name.startswith("table")]


def run_of(optimizer, **others):
    run = {"name": optimizer, "optimizer": optimizer, "rate": RATE[optimizer], "schedule": "constant", "warm_up": 0, "clip_norm": 0,
           "settings": SETTINGS[optimizer], "dense": []}
    return {**run, **others}


def runs_of(net):
    tables = tables_of(NETS[net][1])
    if tables:
        # PyTorch decays no weights that it has sparse gradients of, and its momentum moves rows that a step does not look up.
        return [run_of("sgd", settings={}), run_of("adagrad"), run_of("adam", settings={"beta2": 0.99, "epsilon": 1e-6}),
                run_of("rmsprop", name="dense rmsprop", dense=tables)]
    runs = [run_of(optimizer) for optimizer in RATE]
    if net == "mlp":
        runs.append(run_of("sgd", name="cosine and warm-up", schedule="cosine(20)", warm_up=5, rate=0.3125, settings={}))
    if net == "transformer":
        runs.append(run_of("momentum", name="clip", clip_norm=0.5))
    return runs


def f32(number):
    return float(torch.tensor(number, dtype=torch.float32))


def optimizers_of(run, p):
    """Most often one: SparseAdam takes no dense gradients, and Adam no sparse ones."""
    s = run["settings"]
    arguments = {"lr": run["rate"], "weight_decay": s.get("weight_decay", 0)}
    betas = {"betas": (s.get("beta1", 0.9), s.get("beta2", 0.999)), "eps": s.get("epsilon", 1e-8)}
    kind, every = run["optimizer"], list(p.values())
    tables = tables_of(p)
    if kind == "adam" and tables:
        return [torch.optim.SparseAdam([p[name] for name in tables], lr=arguments["lr"], **betas),
                torch.optim.Adam([v for name, v in p.items() if name not in tables], lr=arguments["lr"], **betas)]
    if kind == "sgd":
        return [torch.optim.SGD(every, **arguments)]
    if kind in ("momentum", "nesterov"):
        return [torch.optim.SGD(every, momentum=s["momentum"], nesterov=kind == "nesterov", **arguments)]
    if kind == "adagrad":
        return [torch.optim.Adagrad(every, eps=s.get("epsilon", 1e-10), **arguments)]
    if kind == "rmsprop":
        return [torch.optim.RMSprop(every, alpha=s.get("alpha", 0.99), eps=s.get("epsilon", 1e-8), **arguments)]
    return [{"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind](every, **betas, **arguments)]


def scheduler_of(run, optimizer):
    """A warm-up times a cosine that both begin with the first step, as ChainedScheduler multiplies. LinearLR counts from 0 to
    total_iters, and is at 1/w + (1 - 1/w) * n / total_iters: (n + 1) / w where that is w - 1."""
    if run["schedule"] == "constant":
        return None
    w = run["warm_up"]
    return torch.optim.lr_scheduler.ChainedScheduler([
        torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1 / w, total_iters=w - 1),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)])


def train(function, run, trainable, fixed, batches):
    p = {name: value.clone().requires_grad_() for name, value in trainable.items()}
    others = {name: value.clone() for name, value in fixed.items()}
    optimizers = optimizers_of(run, p)
    scheduler = scheduler_of(run, optimizers[0])
    all_losses = {}
    for step in range(STEPS):
        options = {"sparse": False} if run["dense"] else {}
        losses = function({**p, **others}, batches[step % len(batches)], **options)
        for value in p.values():
            value.grad = None
        sum(losses.values()).backward()
        if run["clip_norm"]:
            torch.nn.utils.clip_grad_norm_(p.values(), run["clip_norm"])
        for optimizer in optimizers:
            rate = optimizer.param_groups[0]["lr"]
            optimizer.param_groups[0]["lr"] = f32(rate)
            optimizer.step()
            optimizer.param_groups[0]["lr"] = rate
        if scheduler:
            scheduler.step()
        for name, loss in losses.items():
            all_losses.setdefault(name, []).append(loss.item())
    final = {name: value.detach().flatten().tolist() for name, value in {**p, **others}.items() if not name.endswith("variance")}
    return {**run, "losses": all_losses, "variables": final}


def content(net, generator):
    """Initial values and batches: numbers with few digits."""
    _, trainable, fixed, inputs, sizes = NETS[net]

    def numbers(shape, parts, low, high):
        return torch.randint(int(low * parts), int(high * parts) + 1, shape, generator=generator).double() / parts

    def initial(name, shape):
        scales = name.split(".")[-1].startswith(("scale", "variance"))
        return numbers(shape, 128, 0.5, 1.5) if scales else numbers(shape, 128, -0.6, 0.6)

    def batch(size):
        return {name: torch.randint(0, shape[0], (size, *shape[1]), generator=generator) if isinstance(shape[-1], tuple)
                else numbers((size, *shape), 16, -1.5, 1.5) for name, shape in inputs.items()}

    return ({name: initial(name, shape) for name, shape in trainable.items()}, {name: initial(name, shape) for name, shape in fixed.items()},
            [batch(size) for size in sizes])


def text(value):
    if isinstance(value, torch.Tensor):
        return text({"dims": list(value.shape), "data": value.flatten().tolist()})
    if isinstance(value, dict):
        return "{" + ",".join(f'"{key}":{text(of)}' for key, of in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(text, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value) if isinstance(value, int) else f"{value:.17g}"


def main():
    FOLDER.mkdir(exist_ok=True)
    torch.set_num_threads(1)  # nothing here is large enough to be divided
    for number, (net, (function, *_)) in enumerate(NETS.items()):
        trainable, fixed, batches = content(net, torch.Generator().manual_seed(number))
        parts = [f'{{"net":"{net}","made_by":"PyTorch {torch.__version__.split("+")[0]}"', f'"variables":{text({**trainable, **fixed})}',
                 f'"batches":[{",".join(text(batch) for batch in batches)}]',
                 '"runs":[\n' + ",\n".join(text(train(function, run, trainable, fixed, batches)) for run in runs_of(net)) + "]}\n"]
        (FOLDER / f"{net}.json").write_text(",\n".join(parts))


if __name__ == "__main__":
    main()
