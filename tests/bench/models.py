#!/usr/bin/env python3
"""Whole nets (model_nets.py) beside onnxruntime and OpenVINO: time and memory, in turns in one run.

  tests/bench/models.py BUILD [--only NET,NET] [--batch 1,8] [--threads 1,2] [--rounds 3] [--profiles] [--json FILE]      e.g. build/release
  tests/bench/models.py BUILD --against OTHER_BUILD ...      the same, of two builds of Heddle; a build's time is the sum, over operators,
      of the least of the rounds' medians, which differs by 2 to 5 % from run to run where other programs work on the machine too

Needs onnxruntime, openvino, onnx and numpy from PyPI. A net's outputs are compared with onnxruntime's first. Times are medians of the rounds'
medians. Memory is the peak of a process while it reads and runs the net, less what it had before: the peers' process with all they import, for
Heddle the process that runs a net of one Relu. `--profiles` prints each engine's operators by time, where Heddle takes more than 1.05 of the
better one.
"""
import argparse
import collections
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


from model_nets import NETS, Net

BUDGET = 0.8  # seconds of one measurement


def timed(call):
    """The median seconds of a call, over BUDGET."""
    for _ in range(2):
        call()
    times, end = [], time.perf_counter() + BUDGET
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def in_onnxruntime(file, arrays, threads, profile):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.enable_profiling = threads, 1, profile
    if profile:
        options.profile_file_prefix = file
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in arrays.items():
        binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    seconds = timed(lambda: session.run_with_iobinding(binding))
    outputs = [o.numpy() for o in binding.get_outputs()]
    nodes = collections.Counter()
    if not profile:
        return seconds, outputs, nodes
    written = session.end_profiling()
    events = json.loads(pathlib.Path(written).read_text())
    runs = sum(e["name"] == "model_run" for e in events)
    for event in events:
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            nodes[event["args"]["op_name"]] += event["dur"] / runs
    os.remove(written)
    return seconds, outputs, nodes


def in_openvino(file, arrays, threads, profile):
    import openvino
    core = openvino.Core()
    hints = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "PERF_COUNT": profile}
    request = core.compile_model(core.read_model(file), "CPU", hints).create_infer_request()
    for name, array in arrays.items():
        request.set_tensor(name, openvino.Tensor(array))
    seconds, nodes = timed(request.infer), collections.Counter()
    for node in request.profiling_info if profile else []:
        nodes[f"{node.node_type} ({node.exec_type})"] += node.real_time.total_seconds() * 1e6
    return seconds, [], nodes


ENGINES = {"onnxruntime": in_onnxruntime, "openvino": in_openvino}
OTHER = "other build"


def memory_of(what):
    return 1024 * next(int(line.split()[1]) for line in open("/proc/self/status", encoding="ascii") if line.startswith(what))


def child(engine, file, threads, profile):
    """What a process of its own says: {seconds, bytes, nodes}. The outputs go beside the file."""
    folder = pathlib.Path(file).parent
    arrays = {f.stem: np.load(f) for f in folder.glob("in/*.npy")}
    __import__(engine)
    pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before = memory_of("VmRSS")
    seconds, outputs, nodes = ENGINES[engine](file, arrays, threads, profile)
    after = memory_of("VmHWM")
    for i, array in enumerate(outputs):
        np.save(folder / f"expected{i}.npy", array)
    print(json.dumps({"seconds": seconds, "bytes": after - before, "nodes": nodes.most_common(12)}))


class Case:
    """One net, as each engine reads it."""

    def __init__(self, program, folder, model, arrays):
        self.program, self.folder = program, folder
        (folder / "in").mkdir(parents=True)
        onnx.save(model, folder / "net.onnx")
        self.outputs = [o.name for o in model.graph.output]
        self.net, self.inputs = str(folder / "net.heddle"), []
        for name, array in arrays.items():
            np.save(folder / "in" / f"{name}.npy", array)
            self.inputs += ["--input", f"{name}={folder}/in/{name}.npy"]
        self.told("import", str(folder / "net.onnx"), "-o", self.net)

    def told(self, *words, program=None):
        """What a command says in JSON, and the peak of its process: of one that a small process starts, since it inherits that one's."""
        starter = "import os, sys; _, s, u = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0); print(u.ru_maxrss, flush=True); os._exit(s != 0)"
        done = subprocess.run([sys.executable, "-S", "-c", starter, program or self.program, *words, "--json"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError((done.stderr or done.stdout).strip().split("\n")[0])
        said, peak = done.stdout.rstrip().rsplit("\n", 1)
        return json.loads(said), int(peak) * 1024

    def differs(self):
        """What `heddle run` says of outputs that are unlike onnxruntime's; empty if none is."""
        expected = [word for i, name in enumerate(self.outputs) for word in ("--expect", f"{name}={self.folder}/expected{i}.npy")]
        done = subprocess.run([self.program, "run", self.net, *self.inputs, *expected, "--rtol", "0.01", "--atol", "0.001", "--quiet"],
                              capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else (done.stderr or done.stdout).strip().split("\n")[0]

    def heddle(self, threads, first, program=None):
        repeat = 5 if first is None else max(5, min(2000, int(BUDGET / first)))
        said, peak = self.told("bench", self.net, "--threads", str(threads), "--warmup", "2", "--repeat", str(repeat), *self.inputs, program=program)
        run = said["runs"][0]
        nodes = collections.Counter()
        for operator in said["operators"]:
            nodes[operator["type"]] += operator["median_ns"] / 1e3
        operators = {o["name"]: o["median_ns"] / 1e9 for o in said["operators"]}
        return {"seconds": run["latency_ns"]["median"] / 1e9, "bytes": peak, "nodes": nodes.most_common(12), "operators": operators}

    def peer(self, engine, threads, profile=False):
        words = [sys.executable, __file__, "--child", engine, str(self.folder / "net.onnx"), "--threads", str(threads)]
        done = subprocess.run(words + ["--profiles"] * profile, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{engine}: {done.stderr.strip().splitlines()[-1]}")
        return json.loads(done.stdout.splitlines()[-1])


def geomean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def small_net():
    net = Net(1)
    return net.made(net.relu(net.input("x", 4)))


def sum_of_least(rounds):
    return sum(min(operators[name] for operators in rounds) for name in rounds[0])


def measure(case, threads, rounds, base, other):
    """Rounds of Heddle and its peers in turns; of another build's program instead of the peers if there is one."""
    peers = [OTHER] if other else list(ENGINES)
    found = {name: [] for name in ("heddle", *peers)}
    for _ in range(rounds):
        before = found["heddle"]
        before.append(case.heddle(threads, before[-1]["seconds"] if before else case.heddle(threads, None)["seconds"]))
        for peer in peers:
            found[peer].append(case.heddle(threads, before[-1]["seconds"], other) if other else case.peer(peer, threads))
    row = {"threads": threads}
    for name, each in found.items():
        row[name] = sum_of_least([e["operators"] for e in each]) if other else statistics.median(e["seconds"] for e in each)
        row[f"{name}_bytes"] = max(e["bytes"] for e in each) - (base if name in ("heddle", OTHER) else 0)
    row["ratio"] = row["heddle"] / min(row[p] for p in peers)
    row["memory"] = row["heddle_bytes"] / max(1, min(row[f"{p}_bytes"] for p in peers))
    row["nodes"] = found["heddle"][-1]["nodes"]
    return row


def print_profiles(case, row):
    for name, nodes in [("heddle", row["nodes"])] + [(e, case.peer(e, row["threads"], True)["nodes"]) for e in ENGINES]:
        print(f"    {name}: " + ", ".join(f"{kind} {us:.0f} us" for kind, us in nodes[:8] if us >= 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--only", default="")
    parser.add_argument("--batch", default="1,8")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profiles", action="store_true")
    parser.add_argument("--json", default="")
    parser.add_argument("--against", default="")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*options.child, int(options.threads), options.profiles)
    program = os.path.abspath(os.path.join(options.build, "bin", "heddle"))
    other = os.path.abspath(os.path.join(options.against, "bin", "heddle")) if options.against else ""
    engines = ("heddle", OTHER) if other else ("heddle", *ENGINES)
    chosen = [n for n in NETS if options.only == "" or n in options.only.split(",")]
    rows, errors = [], []
    with tempfile.TemporaryDirectory() as name:
        small = Case(program, pathlib.Path(name) / "small", *small_net())
        base = small.heddle(1, None)["bytes"]
        print(f"net, batch, threads: {', '.join(engines)} in ms; ratio to the better; MiB over base; ratio to the smaller", flush=True)
        for net in chosen:
            for batch in map(int, options.batch.split(",")):
                try:
                    case = Case(program, pathlib.Path(name) / f"{net}{batch}", *NETS[net](batch))
                    case.peer("onnxruntime", 1)
                    if wrong := case.differs():
                        errors.append(f"{net} {batch}: {wrong}")
                    for threads in map(int, options.threads.split(",")):
                        row = {"net": net, "batch": batch} | measure(case, threads, options.rounds, base, other)
                        rows.append(row)
                        times = " ".join(f"{row[e] * 1e3:9.2f}" for e in engines)
                        sizes = " ".join(f"{row[f'{e}_bytes'] / 2**20:7.0f}" for e in engines)
                        print(f"{net:17} {batch:2} {threads}: {times}  {row['ratio']:5.2f}  {sizes}  {row['memory']:5.2f}", flush=True)
                        if options.profiles and not other and row["ratio"] > 1.05:
                            print_profiles(case, row)
                except RuntimeError as error:
                    errors.append(f"{net} {batch}: {error}")
    for batch in sorted({r["batch"] for r in rows}):
        for threads in sorted({r["threads"] for r in rows}):
            these = [r for r in rows if r["batch"] == batch and r["threads"] == threads]
            if these:
                print(f"batch {batch}, {threads} threads: geometric mean {geomean([r['ratio'] for r in these]):.3f} of time, "
                      f"{geomean([max(r['memory'], 0.01) for r in these]):.2f} of memory, {len(these)} nets")
    for error in errors:
        print(f"wrong: {error}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
