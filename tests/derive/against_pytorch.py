#!/usr/bin/env python3
"""Symbolic derivatives of random expressions against PyTorch's autograd, in f64.

  ninja heddle_print_derivatives && python3 tests/derive/against_pytorch.py build/dev/bin/heddle_print_derivatives

Needs PyTorch; no test does. Ends with 1 where a derivative differs. Not counted as such: NaN of PyTorch alone, which it has where the
branch that where() does not take has an infinite derivative, and points at which the value is NaN, or differs already (a jump that
rounding decides).
"""
import argparse
import math
import re
import subprocess
import sys

import torch

TOLERANCE = 1e-6


def tensor(value):
    return value if isinstance(value, torch.Tensor) else torch.tensor(float(value), dtype=torch.float64)


def of_tensors(function):
    return lambda *operands: function(*[tensor(o) for o in operands])


def truth(function):
    return of_tensors(lambda *operands: function(*operands).double())


def clamped(x, bound, is_max):
    """Where both are equal neither has a gradient."""
    x, bound = torch.broadcast_tensors(tensor(x), tensor(bound))
    inside, outside = (x > bound, x < bound) if is_max else (x < bound, x > bound)
    return torch.where(inside, x, torch.where(outside, bound, torch.where(x.isnan(), x, bound).detach()))


def extremum(both, is_max):
    """max or min as the derivative has it: relu and clamp with a constant, which is a Python number here; clamp too as the one reader of
    the other of the two, which was printed within it and is marked; else maximum and minimum."""

    def is_inner(operand):
        return getattr(operand, "mark", (is_max,))[0] != is_max

    def apply(a, b):
        if is_inner(a) != is_inner(b):
            inner, bound = (a, b) if is_inner(a) else (b, a)
            _, x, inner_bound = inner.mark
            if isinstance(x, float):
                x, inner_bound = inner_bound, x
            result = clamped(clamped(x, inner_bound, not is_max), bound, is_max)
        elif isinstance(a, float) == isinstance(b, float):
            result = both(tensor(a), tensor(b))
        else:
            x, bound = (b, a) if isinstance(a, float) else (a, b)
            result = torch.relu(x) if is_max and bound == 0 else torch.clamp(x, **{"min" if is_max else "max": bound})
        result.mark = (is_max, a, b)
        return result

    return apply


def power(a, b):
    return torch.pow(tensor(a), b)


def negative(a):
    return -a


FUNCTIONS = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "mod": torch.remainder, "fmod": torch.fmod, "abs": torch.abs,
    "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "tanh": torch.tanh,
    "erf": torch.erf, "sigmoid": torch.sigmoid, "floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "sign": torch.sign,
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan, "sinh": torch.sinh,
    "cosh": torch.cosh, "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh, "log1p": torch.log1p, "expm1": torch.expm1}
PREDICATES = {
    "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge, "eq": torch.eq, "ne": torch.ne, "and_": torch.logical_and,
    "or_": torch.logical_or, "xor": torch.logical_xor, "not_": torch.logical_not, "isnan": torch.isnan, "isinf": torch.isinf}
NAMES = {
    "max": extremum(torch.maximum, True), "min": extremum(torch.minimum, False), "pow": power, "neg": negative,
    "select": of_tensors(lambda c, a, b: torch.where(c != 0, a, b)), "inf": math.inf, "nan": math.nan,
    **{name: of_tensors(f) for name, f in FUNCTIONS.items()},
    **{name: truth(f) for name, f in PREDICATES.items()}}


def evaluated(text, inputs):
    """The canonical text is Python but for three keywords; a whole constant is a float here too."""
    text = re.sub(r"\b(and|or|not)\(", r"\1_(", text)
    text = re.sub(r"(?<![\w.])(\d+)(?![\w.])", r"\1.0", text)
    names = dict(NAMES, **inputs)
    *statements, result = text.split("; ")
    for statement in statements:
        exec(statement, {"__builtins__": {}}, names)
        value = names[statement.split(" = ")[0]]
        if hasattr(value, "mark"):
            del value.mark  # several read it
    return tensor(eval(result, {"__builtins__": {}}, names))


def gradients(text, point):
    inputs = {f"x{i}": torch.tensor(x, dtype=torch.float64, requires_grad=True) for i, x in enumerate(point)}
    value = evaluated(text, inputs)
    if not value.requires_grad:
        return float(value), [0.0] * len(point)
    value.backward()
    return float(value), [0.0 if x.grad is None else float(x.grad) for x in inputs.values()]


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= TOLERANCE * max(1, abs(a), abs(b))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("driver")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    lines = subprocess.run([options.driver, str(options.programs), str(options.seed)], check=True, text=True, capture_output=True).stdout
    count = {"same": 0, "differ": 0, "NaN of PyTorch alone": 0, "no or another value": 0}
    not_zero = 0
    text = ""
    for line in lines.splitlines():
        if line.startswith("program "):
            text = line[len("program "):]
            continue
        at, rest = line[len("at"):].split(" value ")
        value, derivatives = rest.split(" derivatives ")
        point = [float(x) for x in at.split()]
        torch_value, torch_gradients = gradients(text, point)
        for i, (own, its) in enumerate(zip([float(d) for d in derivatives.split()], torch_gradients)):
            if not same(float(value), torch_value) or math.isnan(torch_value):
                kind = "no or another value"
            elif same(own, its):
                kind = "same"
                not_zero += own != 0 and math.isfinite(own)
            else:
                kind = "NaN of PyTorch alone" if math.isnan(its) else "differ"
            count[kind] += 1
            if kind == "differ":
                print(f"{text}\n  by x{i} at {point}: {own!r}, PyTorch {its!r}")
    print(f"{options.programs} programs: " + ", ".join(f"{n} {kind}" for kind, n in count.items()) + f"; {not_zero} of the same finite, not 0")
    return 1 if count["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
