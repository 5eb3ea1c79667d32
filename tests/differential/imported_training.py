#!/usr/bin/env python3
"""Nets that PyTorch exported, made trainable and trained by the command alone, against the same nets trained by PyTorch.

    imported_training.py --heddle build/release/bin/heddle [--net NAME ...] [--keep FOLDER] [--kills N]

Needs PyTorch 1.13, onnx, scikit-learn and statsmodels as Debian has them (python3-torch python3-onnx python3-sklearn python3-statsmodels), so
no test runs it; `tools/soak.sh --imported` does. Ends with 1 when something is other than it has to be.

1. `heddle import --trainable`, then 20 steps of sgd and of adam. Each batch has all samples, so their order does not matter. The loss of each
   step, and that of the test net after the last one, are within 1e-5 of PyTorch's in f32, relative where they are larger than 1. The column
   "from f64" is how far Heddle and PyTorch in f32 are from PyTorch in f64. Dropout has the ratio 0, since random numbers are others; running
   variances of PyTorch are made what ONNX keeps (docs/training.md) before its test. Of the digits there are 64: with all 1,438 PyTorch 1.13's
   own first loss through BatchNormalization is 2.4e-6 from that in f64 (Heddle's 6e-8), and already with 256 there may be a number so close to
   where ReLU or MaxPool change over that rounding decides. From such a step on either of the two was up to 1e-3 away from f64, while each
   gradient was right for its own weights.
2. A training with dropout, checkpoints, tests, --best loss=min and --patience 3, undisturbed; then the same killed by SIGKILL as soon as a
   second checkpoint is complete, and begun again with --resume, and killed again after two further ones, --kills times. The file of -o with
   its weights, the checkpoints that are left, `best`, `stopped_early`, the last loss, the means of the last test and the log, but for its
   times, are the same; so they are when it is resumed once more after its end. At least one net stops early.
3. The tabular net of the same training predicts. Its data are those of Fair, Ray. 1978. "A Theory of Extramarital Affairs," Journal of
   Political Economy, February, 45-61, as statsmodels/datasets/fair has them ("Included with permission of the author."; statsmodels is under
   the 3-clause BSD licence): 6,366 answers, of which every fifth is held out; target: affairs > 0. Logistic regression by scikit-learn (C = 1,
   one-hot categories) has an accuracy of 0.716 and an area below the ROC curve of 0.725 on these; "no" alone is right in 0.678. Expected of the
   net are 0.70 and 0.71, about a standard error below each; the bounds were written down before its first run.
"""
import argparse
import copy
import json
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
import sklearn
import sklearn.metrics
import torch
from torch import nn

from exported_nets import CATEGORIES, LOSSES, OPTIMIZERS, OCCUPATIONS, tasks

STEPS = 20
SAMPLES = 64  # of the digits
BOUND = 1e-5
ACCURACY, AREA = 0.70, 0.71
WAIT = 300  # seconds that one command may take


def export(task, net, path):
    """Writes the net, and gives it the running statistics that the file has, which the export has moved in one of them."""
    example = tuple(torch.from_numpy(task.train[name][:3]) for name in task.inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(copy.deepcopy(net), example, str(path), opset_version=17, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, input_names=task.inputs, output_names=["output"],
                          dynamic_axes={name: {0: "N"} for name in (*task.inputs, "output")})
    contents = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(str(path)).graph.initializer}
    with torch.no_grad():
        for name, buffer in net.named_buffers():
            if name in contents:
                buffer.copy_(torch.from_numpy(contents[name].copy()))


class Refused(Exception):
    pass


class Heddle:
    def __init__(self, program):
        self.program = program

    def words(self, *words):
        return [str(self.program), *map(str, words), "--json"]

    def ask(self, *words):
        done = subprocess.run(self.words(*words), text=True, capture_output=True, timeout=WAIT)
        if done.returncode != 0:
            raise Refused(f"{' '.join(self.words(*words))}\n  ends with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def make_trainable(self, task, ratio, folder):
        net = task.net(ratio)
        export(task, net, folder / "net.onnx")
        learns = self.ask("import", folder / "net.onnx", "--trainable", "--loss", f"{task.loss}:output,{task.target}", "-o", folder / "net.heddle")
        sizes = sum(p.numel() for p in net.parameters())
        if learns["net"]["parameters"] != sizes:
            raise Refused(f"{learns['net']['parameters']} parameters learn of {sizes}")
        return net


def lines_of(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def heddle_losses(heddle, task, optimizer, folder):
    words = ["train", folder / "net.heddle", "--optimizer", optimizer, "--learning-rate", task.rates[optimizer]]
    words += ["--steps", STEPS, "--eval-every", STEPS, "--batch", len(task.train[task.target]), "--seed", 1]
    words += ["--log", folder / f"{optimizer}.jsonl", "--no-output"]
    for option, part in (("--data", "train"), ("--test-data", "test")):
        words += [word for what in task.data(folder, part) for word in (option, what)]
    heddle.ask(*words)
    lines = lines_of(folder / f"{optimizer}.jsonl")
    return [line["loss"] for line in lines if "loss" in line] + [line["test_loss"] for line in lines if "test_loss" in line]


def normalisations(net):
    return {name: module for name, module in net.named_modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)}


def count_elements(net):
    """Returns how many numbers of a batch each normalisation takes for a channel; filled in by the net's first run."""
    counts = {}

    def keep(name, inputs):
        counts[name] = inputs[0].numel() // inputs[0].shape[1]

    for name, module in normalisations(net).items():
        module.register_forward_pre_hook(lambda _, inputs, name=name: keep(name, inputs))
    return counts


def onnx_statistics(net, first, counts):
    """Makes running variances what ONNX keeps: of each step's batch of n numbers PyTorch has taken n / (n - 1) times as much."""
    with torch.no_grad():
        for name, module in normalisations(net).items():
            left = first[name + ".running_var"] * (1 - module.momentum)**STEPS
            module.running_var.copy_(left + (module.running_var - left) * (1 - 1 / counts[name]))


def tensors(arrays, dtype):
    return [torch.from_numpy(a).to(dtype) if a.dtype.kind == "f" else torch.from_numpy(a) for a in arrays.values()]


def torch_losses(task, net, optimizer, dtype):
    net = copy.deepcopy(net).to(dtype).train()
    first = {name: buffer.clone() for name, buffer in net.named_buffers()}
    counts = count_elements(net)
    *inputs, target = tensors(task.train, dtype)
    updates = OPTIMIZERS[optimizer](net, task.rates[optimizer])
    losses = []
    for _ in range(STEPS):
        loss = LOSSES[task.loss](net(*inputs), target)
        losses.append(loss.item())
        updates.zero_grad()
        loss.backward()
        updates.step()
    onnx_statistics(net, first, counts)
    net.eval()
    *inputs, target = tensors(task.test, dtype)
    with torch.no_grad():
        losses.append(LOSSES[task.loss](net(*inputs), target).item())
    return losses


def compare_losses(heddle, task, folder):
    """A row's columns for each optimizer, and whether they are within the bound."""
    net = heddle.make_trainable(task, 0.0, folder)
    columns, right = [], True
    for optimizer in OPTIMIZERS:
        own, its = heddle_losses(heddle, task, optimizer, folder), torch_losses(task, net, optimizer, torch.float32)
        exact = torch_losses(task, net, optimizer, torch.float64)
        if len(own) != STEPS + 1:
            raise Refused(f"{len(own) - 1} steps in the log of {optimizer}")
        differences = [abs(a - b) for a, b in zip(own, its)]
        relative = [d / abs(b) for d, b in zip(differences, its)]
        right &= all(d <= BOUND * max(1, abs(b)) for d, b in zip(differences, its))
        columns += [f"{its[0]:.3g} to {its[-2]:.3g}", *(f"{n:.1e}" for n in (max(differences[:-1]), max(relative[:-1]), differences[-1])),
                    " / ".join(f"{max(abs(a - b) for a, b in zip(losses[:-1], exact)):.1e}" for losses in (own, its))]
    return columns, right


def training_words(task, folder, imported):
    words = ["train", imported / "net.heddle", "--optimizer", "adam", "--learning-rate", task.rates["adam"], "--steps", 20000, "--batch", task.batch]
    words += ["--eval-every", 40, "--best", "loss=min", "--patience", 3, "--checkpoint-dir", folder / "checkpoints", "--checkpoint-every", 25]
    words += ["--log", folder / "log.jsonl", "--seed", 3, "-o", folder / "trained.heddle"]
    for option, part in (("--data", "train"), ("--test-data", "test")):
        words += [word for what in task.data(imported, part) for word in (option, what)]
    return words


def complete(checkpoints):
    return {path.name for path in checkpoints.glob("step-*.safetensors")}


def killed(words, checkpoints, count):
    """Starts the command and kills it when `count` checkpoints more are complete than there were. Returns None then, else what it printed."""
    before, seen = complete(checkpoints), set()
    process = subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + WAIT
    while process.poll() is None and len(seen) < count:
        seen |= complete(checkpoints) - before
        if time.monotonic() > until:
            process.kill()
            raise Refused(f"{' '.join(words)}\n  takes more than {WAIT} s")
        time.sleep(0.0005)
    if len(seen) >= count:
        process.kill()
    stdout, stderr = process.communicate()
    if process.returncode == -signal.SIGKILL:
        return None
    if process.returncode != 0:
        raise Refused(f"{' '.join(words)}\n  ends with {process.returncode}: {stderr}")
    return json.loads(stdout)


def without_times(log):
    return [{key: value for key, value in line.items() if not key.endswith("_ns")} for line in lines_of(log)]


def compare_trainings(parts, whole, end):
    """What differs between the folders of the two trainings, and what they have told."""
    differs = [key for key in ("best", "stopped_early", "test", "last_loss") if whole[key] != end[key]]
    files = [{path.name: path.read_bytes() for path in part.glob("trained.*")} for part in parts.values()]
    if files[0] != files[1] or "trained.heddle" not in files[0]:
        differs.append("weights")
    left = [{path.name: path.read_bytes() for path in (part / "checkpoints").iterdir()} for part in parts.values()]
    if left[0] != left[1]:
        differs.append("checkpoints")
    logs = [without_times(part / "log.jsonl") for part in parts.values()]
    return differs + (["log"] if logs[0] != logs[1] else [])


def kill_and_resume(heddle, task, folder, kills):
    """Columns of the row, what differs, and what the undisturbed training has told."""
    heddle.make_trainable(task, 0.2, folder)
    parts = {name: folder / name for name in ("undisturbed", "killed")}
    for part in parts.values():
        part.mkdir()
    whole = heddle.ask(*training_words(task, parts["undisturbed"], folder))["train"]
    words = heddle.words(*training_words(task, parts["killed"], folder))
    done, resumed, times = None, words, 0
    for _ in range(kills):
        done = killed(resumed, parts["killed"] / "checkpoints", 2)
        if done:
            break
        times += 1
        newest = int(max(complete(parts["killed"] / "checkpoints"))[len("step-"):-len(".safetensors")])
        resumed = words + ["--resume"]
    if not times:
        raise Refused("the training has ended before it could be killed")
    if not done:
        done = heddle.ask(*training_words(task, parts["killed"], folder), "--resume")
    end = done["train"]
    differs = [] if end["resumed_from"] == newest else ["step that it continued from"]
    differs += compare_trainings(parts, whole, end)
    over = heddle.ask(*training_words(task, parts["killed"], folder), "--resume")["train"]
    if over["steps"] != 0 or compare_trainings(parts, whole, over):
        differs.append("end, when it is resumed after it")
    last = max(line["step"] for line in lines_of(parts["undisturbed"] / "log.jsonl"))
    columns = [last, times, end["resumed_from"], f"{whole['best']['mean']:.4f} at {whole['best']['step']}", "yes" if whole["stopped_early"] else "no"]
    return columns, differs, whole


def predict(heddle, task, folder):
    """Accuracy and area of what the killed and resumed training has learned, on the rows held out."""
    trained, predictor = folder / "killed/trained.heddle", folder / "predictor.heddle"
    heddle.ask("predictor", trained, "--net", "test", "--output", "output", "-o", predictor)
    words = []
    for name in task.inputs:
        np.save(folder / f"{name}.npy", task.test[name])
        words += ["--input", f"{name}={folder / f'{name}.npy'}"]
    heddle.ask("run", predictor, *words, "--output", f"output={folder / 'output.npy'}")
    logits, target = np.load(folder / "output.npy").reshape(-1), task.test[task.target].reshape(-1)
    return np.mean((logits > 0) == (target > 0.5)), sklearn.metrics.roc_auc_score(target, logits)


def show(title, header, rows):
    rows = [header, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    print(f"\n{title}")
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", type=pathlib.Path, required=True, metavar="PROGRAM")
    parser.add_argument("--net", action="append", help="this net alone; repeatable")
    parser.add_argument("--keep", type=pathlib.Path, help="an empty folder for all files; else a temporary one")
    parser.add_argument("--kills", type=int, default=4, metavar="N")
    options = parser.parse_args()
    heddle = Heddle(options.heddle.resolve())
    with tempfile.TemporaryDirectory() as temporary:
        return compare(heddle, options, (options.keep or pathlib.Path(temporary)).resolve())


def versions(heddle):
    own = subprocess.run([str(heddle.program), "--version"], text=True, capture_output=True, check=True).stdout.strip()
    others = ", ".join(f"{module.__name__} {module.__version__}" for module in (torch, onnx, sklearn, np))
    return f"{own}; Python {platform.python_version()}, {others}; {torch.get_num_threads()} threads of PyTorch, {platform.machine()}"


def compare(heddle, options, base):
    """Prints the tables; returns the exit status."""
    print(versions(heddle), flush=True)
    losses, trainings, findings, stopped = [], [], [], []
    names = list(tasks(base))
    if unknown := [name for name in options.net or () if name not in names]:
        sys.exit(f"no net is called {unknown[0]}; there are {', '.join(names)}")
    for name in options.net or names:
        folder = base / name.replace(" ", "_")
        for part in ("equal", "killed"):
            (folder / part).mkdir(parents=True)
        try:
            task = tasks(folder / "equal", SAMPLES)[name]()
            task.write(folder / "equal")
            columns, right = compare_losses(heddle, task, folder / "equal")
            losses.append([name, task.loss, *columns])
            findings += [] if right else [f"{name}: losses differ from PyTorch's"]
            task = tasks(folder / "killed")[name]()
            task.write(folder / "killed")
            columns, differs, told = kill_and_resume(heddle, task, folder / "killed", options.kills)
            trainings.append([name, *columns, ", ".join(differs) or "nothing"])
            findings += [f"{name}: killed and resumed it has another {what}" for what in differs]
            stopped.append(told["stopped_early"])
            if name == "tabular":
                findings += judge_tabular(heddle, task, folder / "killed", told)
        except Refused as refused:
            findings.append(f"{name}: {refused}")
    header = [word for optimizer in OPTIMIZERS for word in (f"{optimizer}: loss", "absolute", "relative", "test", "from f64")]
    show(f"the largest difference of {STEPS} losses from PyTorch's", ["net", "loss", *header], losses)
    show("killed and resumed", ["net", "steps", "kills", "last resumed from", "best test", "stopped early", "differs"], trainings)
    if stopped and not any(stopped):
        findings.append("no training has stopped early")
    print("\n" + ("\n".join(findings) if findings else "as it has to be"))
    return 1 if findings else 0


def judge_tabular(heddle, task, folder, told):
    accuracy, area = predict(heddle, task, folder)
    print(f"tabular, on {len(task.test[task.target])} rows held out: accuracy {accuracy:.4f} (expected {ACCURACY}), "
          f"area below the ROC curve {area:.4f} ({AREA})")
    findings = [] if accuracy >= ACCURACY and area >= AREA else ["tabular: predicts worse than expected"]
    if told["classes"] != {name: sorted(OCCUPATIONS) for name in CATEGORIES if name.startswith("occupation")}:
        findings.append(f"tabular: other classes of the texts: {told['classes']}")
    return findings


if __name__ == "__main__":
    sys.exit(main())
