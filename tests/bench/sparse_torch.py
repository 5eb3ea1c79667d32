#!/usr/bin/env python3
"""The step of heddle_sparse_bench with PyTorch: nn.EmbeddingBag(sparse=True) and torch.optim's SGD and Adagrad, medians.

  pip install torch && python3 tests/bench/sparse_torch.py [--rows 1000000] [--threads 2] [--steps 41]
"""
import argparse
import statistics
import time

import torch

BAGS, LOOKUPS, WIDTH, BATCHES = 4096, 20, 64, 8


def step_ms(make_optimizer, options):
    generator = torch.Generator().manual_seed(1)
    bag = torch.nn.EmbeddingBag(options.rows, WIDTH, mode="sum", sparse=True)
    torch.nn.init.uniform_(bag.weight, -0.05, 0.05)
    batches = [torch.randint(0, options.rows, (BAGS, LOOKUPS), generator=generator) for _ in range(BATCHES)]
    factors = (torch.arange(BAGS * WIDTH) % 13).float().mul_(0.01).sub_(0.06).reshape(BAGS, WIDTH)
    optimizer, times = make_optimizer(bag.parameters()), []
    for step in range(-BATCHES, options.steps):
        indices = batches[step % BATCHES]
        begin = time.perf_counter()
        optimizer.zero_grad()
        (bag(indices) * factors).sum().backward()
        optimizer.step()
        if step >= 0:
            times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times), min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=41)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, {options.rows} rows of {WIDTH} f32, {BAGS} bags of {LOOKUPS} lookups, {options.threads} threads")
    for name, make in {"sgd": lambda p: torch.optim.SGD(p, lr=0.01), "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01)}.items():
        median, fastest = step_ms(make, options)
        print(f"{name:8} step {median:.2f} ms (fastest {fastest:.2f}), {BAGS * LOOKUPS / median / 1e3:.1f} M lookups/s")


if __name__ == "__main__":
    main()
