#!/usr/bin/env python3
"""ResNet-50 and the encoder against what they could cost at least, in one run of the machine.

  tests/bench/nets.py BUILD [ROUNDS]      e.g. build/release; configure it with -DHEDDLE_BUILD_BENCHMARKS=ON

Latency on two threads: `heddle bench` and the bare oneDNN primitives of heddle_onednn_floor take turns; median and fastest run of each, and
their ratio. Where other programs use the processors now and then, the fastest runs say more than the medians.
Memory: the peak of `heddle run` over that of `heddle plugin list` (the tool with its plugins loaded), against weights once + planned peak.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

build = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
heddle = os.path.join(build, "bin", "heddle")
nets = {"resnet50": ("resnet50_batch1", 1.12), "encoder": ("encoder_matmuls_batch1", 1.2)}


def floor():
    """Median and fastest, microseconds, by workload."""
    lines = subprocess.run([os.path.join(build, "bin", "heddle_onednn_floor"), "21"], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: [float(line.split(word)[1].split()[0]) for word in ("median", "fastest")] for line in lines.splitlines()}


def latency(net):
    """Median and fastest, microseconds."""
    command = [heddle, "bench", net, "--threads", "2", "--warmup", "12", "--repeat", "21", "--json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = json.loads(output)["runs"][0]["latency_ns"]
    return [found["median"] / 1e3, found["min"] / 1e3]


def peak_bytes(*command):
    """Of a child that runs `command`, and what it printed."""
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen([heddle, *command], stdout=output)
        _, status, usage = os.wait4(child.pid, 0)
        assert status == 0, command
        output.seek(0)
        return usage.ru_maxrss * 1024, output.read()


with tempfile.TemporaryDirectory() as folder:
    files = {}
    for name in nets:
        files[name] = os.path.join(folder, name + ".heddle")
        subprocess.run([heddle, "model", name, "-o", files[name]], check=True, stdout=subprocess.DEVNULL)
    ours, floors = {name: [] for name in nets}, {workload: [] for workload, _ in nets.values()}
    for _ in range(rounds):
        for workload, us in floor().items():
            floors[workload].append(us)
        for name in nets:
            ours[name].append(latency(files[name]))
    for name, (workload, wanted) in nets.items():
        for what, which, of_rounds in (("median", 0, statistics.median), ("fastest", 1, min)):
            mine, least = of_rounds(r[which] for r in ours[name]), of_rounds(r[which] for r in floors[workload])
            verdict = "reached" if mine <= wanted * least else "MISSED"
            print(f"{name}: {what} {mine / 1e3:.2f} ms, oneDNN's floor {least / 1e3:.2f} ms, ratio {mine / least:.3f}, wanted <= {wanted}  {verdict}")
    base, _ = peak_bytes("plugin", "list")
    for name in nets:
        peak, printed = peak_bytes("run", files[name], "--random", "1", "--threads", "2", "--repeat", "3", "--json")
        planned = json.loads(printed)["devices"]["cpu"]["planned_peak_bytes"]
        weights = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder) if f.startswith(name + "."))
        ratio = (peak - base) / (weights + planned)
        verdict = "reached" if ratio <= 1.15 else "MISSED"
        print(f"{name}: peak {peak / 1e6:.1f} MB, base {base / 1e6:.1f} MB; weights {weights / 1e6:.1f} MB + planned {planned / 1e6:.1f} MB; "
              f"ratio {ratio:.3f}, wanted <= 1.15  {verdict}")
