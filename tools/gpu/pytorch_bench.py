#!/usr/bin/env python3
"""Recipes in PyTorch on the GPU (pytorch_nets.py), to compare Heddle with: the same nets, the same numbers and the same work: an input in
pageable memory of the host goes there, the result comes back.

  tools/gpu/pytorch_bench.py NET BATCH [--repeat K] [--warmup W] [--device D] [--ways eager,compile]
  tools/gpu/pytorch_bench.py --all [--only NET,NET] [--json FILE] [--list] ...

The first form says how long a run takes in f32, one line as soon as a way is measured:  eager: median 7012.3 us (min 6954.0 us, 20 runs)
The second goes through all of the speed plan of tools/gpu_test.sh in one process: first eager, then compiled in the mode reduce-overhead,
which makes CUDA graphs; inference and training. Each measurement is a line of JSON in FILE and on standard output as soon as it is there;
one that fails has the error in its line, and the next goes on. --list says what would be measured, and needs no PyTorch.
Ends with 3 where PyTorch does not import or sees no GPU, and says so.
"""
import argparse
import json
import statistics
import sys
import time

sys.dont_write_bytecode = True  # the folder may be a source tree
NETS = ("mlp", "resnet50", "encoder", "inception_v3", "lstm_tagger", "dlrm")
TRAINED = {"mlp": 32, "dlrm": 128, "encoder": 8, "resnet50": 32}  # with the batch that tools/gpu_test.sh trains with


def cases(nets):
    """What is worth most comes first: compilers take what time there is."""
    for precision in ("f32", "tf32", "bf16"):
        for batch in (1, 32):
            for net in nets:
                yield {"net": net, "batch": batch, "purpose": "inference", "precision": precision, "way": "eager"}
    for way in ("eager", "compile"):
        for net in nets:
            if net in TRAINED:
                yield {"net": net, "batch": TRAINED[net], "purpose": "training", "precision": "f32", "way": way}
        if way == "eager":
            for precision in ("f32", "bf16"):
                for batch in (1, 32):
                    for net in nets:
                        yield {"net": net, "batch": batch, "purpose": "inference", "precision": precision, "way": "compile"}


class Bench:
    def __init__(self, options):
        import torch

        import pytorch_nets

        self.torch, self.nets, self.options = torch, pytorch_nets, options

    def inference(self, case):
        torch, dtype = self.torch, self.torch.bfloat16 if case["precision"] == "bf16" else self.torch.float32
        model = self.nets.model_of(case["net"], False).eval().to(self.options.device, dtype)
        inputs = self.nets.inputs_of(case["net"], case["batch"], dtype)
        called = self.compiled(model) if case["way"] == "compile" else model

        def run():
            with torch.inference_mode():
                return called(*[x.to(self.options.device) for x in inputs]).cpu()

        return run

    def training(self, case):
        torch = self.torch
        model = self.nets.model_of(case["net"], True).train().to(self.options.device)
        inputs = self.nets.inputs_of(case["net"], case["batch"])
        called = self.compiled(model) if case["way"] == "compile" else model
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

        def run():
            optimizer.zero_grad(set_to_none=True)
            loss = self.nets.loss_of(case["net"], called(*[x.to(self.options.device) for x in inputs]), case["batch"])
            loss.backward()
            optimizer.step()
            return loss.item()

        return run

    def compiled(self, model):
        self.torch._dynamo.reset()  # what it has learned of other batches makes extents dynamic, which is slower
        return self.torch.compile(model, mode=self.options.mode) if self.options.mode else self.torch.compile(model)

    def measure(self, case):
        """Returns the times of runs in milliseconds, and how long the first one took, which compiles."""
        allow_tf32 = case["precision"] == "tf32"
        self.torch.backends.cuda.matmul.allow_tf32 = allow_tf32
        self.torch.backends.cudnn.allow_tf32 = allow_tf32
        self.torch.manual_seed(1)
        run = self.inference(case) if case["purpose"] == "inference" else self.training(case)
        begin = time.perf_counter()
        run()
        first = time.perf_counter() - begin
        for _ in range(self.options.warmup - 1):
            run()
        times = []
        for _ in range(self.options.repeat):
            begin = time.perf_counter()
            run()
            times.append((time.perf_counter() - begin) * 1e3)
        return times, first

    def line(self, case):
        try:
            times, first = self.measure(case)
        except Exception as error:  # whatever a compiler or a device says of one case, the others are asked too
            return {**case, "error": f"{type(error).__name__}: {str(error).strip()[:300]}"}
        return {**case, "median_ms": round(statistics.median(times), 4), "min_ms": round(min(times), 4), "runs": len(times), "first_s": round(first, 2)}


def measure_all(options, planned):
    bench = Bench(options)
    file = open(options.json, "w") if options.json else None
    for case in planned:
        text = json.dumps(bench.line(case))
        print(text, flush=True)
        if file:
            print(text, file=file, flush=True)
        if options.device.startswith("cuda"):
            bench.torch.cuda.empty_cache()


def measure_one(options):
    bench = Bench(options)
    for way in options.ways.split(","):
        times, _ = bench.measure({"net": options.net, "batch": options.batch, "purpose": "inference", "precision": "f32", "way": way})
        print(f"{way}: median {statistics.median(times) * 1e3:.1f} us (min {min(times) * 1e3:.1f} us, {options.repeat} runs)", flush=True)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("net", nargs="?", choices=NETS)
    parser.add_argument("batch", nargs="?", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", help="nets, with commas between")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--ways", default="eager,compile")
    options = parser.parse_args()
    options.mode = "reduce-overhead" if options.all else None
    for net in (options.only or "").split(","):
        if net and net not in NETS:
            parser.error(f"there is no net {net}: {', '.join(NETS)}")
    if not (options.net or options.all or options.list):
        parser.error("name a net, or give --all")
    return options


def main():
    options = parse()
    planned = list(cases(options.only.split(",") if options.only else NETS))
    if options.list:
        for case in planned:
            print(json.dumps(case))
        return 0
    try:
        import torch
    except ImportError as error:
        print(f"PyTorch does not import: {error}")
        return 3
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        return 3
    print("PyTorch", torch.__version__, flush=True)
    if options.all:
        measure_all(options, planned)
    else:
        measure_one(options)
    return 0


sys.exit(main())
