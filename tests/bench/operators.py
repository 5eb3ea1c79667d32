#!/usr/bin/env python3
"""Every operator in typical shapes beside onnxruntime, on one thread, in turns.

  tests/bench/operators.py BUILD [--only TEXT] [--dtype f32] [--rounds 3] [--above 1.5] [--json FILE]      e.g. build/release

Needs onnxruntime, onnx, ml_dtypes and numpy from PyPI. Prints each case whose time is more than 1.5 of onnxruntime's, the slowest ratio
first, then those of f16 and bf16 that take more than 1.2 of their f32 form, the geometric means, and the operators without a case. Times are
medians of the rounds' medians; onnxruntime's are less what it takes for one element of an Identity (the call from Python), and at
least a microsecond, by which such calls differ. Differing results are
no matter here: tests/differential compares them.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from operator_cases import CASES, TYPES, Case, Weight

NUMBER = {"f32": 1, "f64": 11, "f16": 10, "bf16": 16, "i32": 6, "i64": 7, "u8": 2, "bool": 9}
BUDGET = 0.06  # seconds of one measurement
RESOLUTION = 1e-6  # seconds: calls from Python differ by as much
ort.set_default_logger_severity(4)


def model_of(case, dtype):
    """The ONNX model, and the arrays of its inputs by name."""
    graph, names, inputs = onnx.GraphProto(name="case"), [], {}
    for i, operand in enumerate(case.operands):
        name = "" if operand is None else f"x{i}"
        names.append(name)
        if operand is None:
            continue
        if isinstance(operand, np.ndarray):
            graph.initializer.append(tensor(operand, name))
        elif isinstance(operand, Weight):
            graph.initializer.append(tensor(case.array(operand.shape, dtype, i), name))
        else:
            inputs[name] = case.array(operand, dtype, i)
            graph.input.append(helper.make_tensor_value_info(name, NUMBER[dtype], operand))
    outputs = [f"y{i}" for i in range(case.outputs)]
    graph.node.append(helper.make_node(case.op, names, outputs, **case.attributes))
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=8 if case.opset < 20 else 10), inputs


def tensor(array, name):
    if array.dtype == TYPES["bf16"]:
        return helper.make_tensor(name, NUMBER["bf16"], array.shape, array.tobytes(), raw=True)
    return numpy_helper.from_array(array, name)


class Peer:
    """onnxruntime on a model; None of seconds where it has no such kernel."""

    def __init__(self, model, inputs):
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self.session = None
        try:
            self.session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            self.binding = self.session.io_binding()
            for name, array in inputs.items():
                self.binding.bind_cpu_input(name, array)
            for output in self.session.get_outputs():
                self.binding.bind_output(output.name)
            self.session.run_with_iobinding(self.binding)
        except Exception:  # of many kinds, none of them documented
            self.session = None

    def seconds(self):
        times, end = [], time.perf_counter() + BUDGET
        while len(times) < 5 or (time.perf_counter() < end and len(times) < 2000):
            start = time.perf_counter()
            self.session.run_with_iobinding(self.binding)
            times.append(time.perf_counter() - start)
        return statistics.median(times)


class Heddle:
    def __init__(self, program, folder, model, inputs):
        self.program, self.folder = program, folder
        (folder / "case.onnx").write_bytes(model.SerializeToString())
        self.net = str(folder / "case.heddle")
        self.error = self.told("import", str(folder / "case.onnx"), "-o", self.net)[1]
        self.options = []
        for name, array in inputs.items():
            if array.dtype in (TYPES["bf16"],):
                continue  # NumPy's files have no such dtype: random numbers do
            np.save(folder / f"{name}.npy", array)
            self.options += ["--input", f"{name}={folder / name}.npy"]
        self.repeat = 5
        if not self.error:
            first = self.seconds()
            self.repeat = max(5, min(2000, int(BUDGET / first))) if first else 5

    def told(self, *words):
        done = subprocess.run([self.program, *words, "--json"], capture_output=True, text=True, check=False)
        return (json.loads(done.stdout), "") if done.returncode == 0 else (None, (done.stderr or done.stdout).strip().split("\n")[0])

    def seconds(self):
        answer, self.error = self.told("bench", self.net, "--threads", "1", "--warmup", "3", "--repeat", str(self.repeat), *self.options)
        return None if self.error else answer["runs"][0]["latency_ns"]["median"] / 1e9


def measure(program, folder, case, dtype, rounds, call):
    """(our seconds, onnxruntime's or None), or an error's text."""
    model, inputs = model_of(case, dtype)
    ours, peer = Heddle(program, folder, model, inputs), Peer(model, inputs)
    if ours.error:
        return ours.error
    mine, theirs = [], []
    for _ in range(rounds):
        mine.append(ours.seconds())
        if peer.session:
            theirs.append(peer.seconds())
    if ours.error:
        return ours.error
    return statistics.median(mine), max(statistics.median(theirs) - call, RESOLUTION) if theirs else None


def call_seconds():
    model, inputs = model_of(Case("Identity", ((1,),), ("f32",), {}), "f32")
    return Peer(model, inputs).seconds()


def geomean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--only", default="", help="cases whose text has this")
    parser.add_argument("--dtype", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--above", type=float, default=1.5)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    program = os.path.abspath(os.path.join(options.build, "bin", "heddle"))
    call, rows, errors = call_seconds(), [], []
    with tempfile.TemporaryDirectory() as name:
        for case in CASES:
            base = None
            for dtype in case.dtypes:
                if options.only not in case.label() or options.dtype not in ("", dtype):
                    continue
                found = measure(program, pathlib.Path(name), case, dtype, options.rounds, call)
                if isinstance(found, str):
                    errors.append(f"{dtype} {case.label()}: {found}")
                    continue
                base = found[0] if dtype == "f32" else base
                rows.append({"case": case.label(), "dtype": dtype, "us": found[0] * 1e6, "peer_us": found[1] and found[1] * 1e6,
                             "of_f32": found[0] / base if base else None})
                print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for row in rows:
        row["ratio"] = row["us"] / row["peer_us"] if row["peer_us"] else None
    compared = sorted((r for r in rows if r["ratio"]), key=lambda r: -r["ratio"])
    print(f"{len(compared)} cases beside onnxruntime {ort.__version__}, of which take more than {options.above} of its time:")
    for r in compared:
        if r["ratio"] > options.above:
            print(f"{r['ratio']:8.2f}  {r['us']:10.1f} us, {r['peer_us']:10.1f} us  {r['dtype']} {r['case']}")
    print("f16 and bf16 that take more than 1.2 of their f32 form:")
    for r in sorted((r for r in rows if r["dtype"] in ("f16", "bf16") and (r["of_f32"] or 0) > 1.2), key=lambda r: -r["of_f32"]):
        print(f"{r['of_f32']:8.2f}  {r['us']:10.1f} us  {r['dtype']} {r['case']}")
    for dtype in TYPES:
        ratios = [r["ratio"] for r in compared if r["dtype"] == dtype]
        if ratios:
            print(f"{dtype}: geometric mean {geomean(ratios):.2f} of {len(ratios)}")
    for error in errors:
        print(f"not measured: {error}")
    known = json.loads(subprocess.run([program, "op", "--all", "--json"], capture_output=True, check=True, text=True).stdout)["operators"]
    left = sorted({o["name"] for o in known if "::" not in o["name"]} - {c.op for c in CASES})
    print(f"without a case: {' '.join(left)}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
