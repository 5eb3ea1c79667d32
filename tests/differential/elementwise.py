"""Operators that work element by element, with broadcasting: arithmetic, functions, activations, comparisons, logic, conversions."""
import numpy as np

from cases import FLOATS, NUMBER, NotPossible

OPERATORS = {}

UNARY = {"Abs": "any", "Neg": "any", "Sign": "any", "Reciprocal": "any", "Ceil": "any", "Floor": "any", "Round": "any", "Sqrt": "positive",
         "Exp": "any", "Log": "positive", "Erf": "any", "Tanh": "any", "Sin": "any", "Cos": "any", "Tan": "any", "Asin": "unit",
         "Acos": "unit", "Atan": "any", "Sinh": "any", "Cosh": "any", "Asinh": "any", "Acosh": "above one", "Atanh": "unit", "Relu": "any",
         "Sigmoid": "any", "HardSwish": "any", "Softplus": "any", "Softsign": "any", "Mish": "any", "IsNaN": "any", "Not": "any",
         "BitwiseNot": "any", "Identity": "any"}
BINARY = ["Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor",
          "BitwiseAnd", "BitwiseOr", "BitwiseXor"]


def operator(name):
    def keep(function):
        OPERATORS[name] = function
        return function
    return keep


def unary(name, kind):
    def make(g):
        dtype = g.dtype()
        return g.node(name, [g.operand(dtype, g.shape(), kind if not g.one_in(6) else "any", constant=False if g.one_in(2) else None)])
    OPERATORS[name] = make


def activation(name, **attributes):
    """Each attribute: what it is drawn from; left out (the default) in half of the cases."""
    def make(g):
        dtype = g.dtype()
        return g.node(name, [g.operand(dtype, g.shape())], {k: g.maybe(g.pick(*values)) for k, values in attributes.items()})
    OPERATORS[name] = make


def pair(g, dtype, other=None, kinds=("any", "any")):
    """Two operands that broadcast, the smaller one on either side or both extended."""
    full = g.shape()
    a, b = full, g.partner(full)
    if g.one_in(6):  # both are extended
        a = tuple(1 if i < len(full) // 2 else d for i, d in enumerate(full))
        b = tuple(d if i < len(full) // 2 else 1 for i, d in enumerate(full))
    if g.one_in(3):
        a, b = b, a
    return g.operand(dtype, a, kinds[0]), g.operand(other or dtype, b, kinds[1])


def binary(name):
    def make(g):
        dtype = g.dtype()
        if name == "Pow":
            other = g.dtype(1) if g.opset >= 12 and g.one_in(3) else dtype
            a, b = pair(g, dtype, other, ("positive" if g.one_in(2) else "any", "any"))
            return g.node(name, [a, b])
        if name == "PRelu":
            full = g.shape()
            return g.node(name, [g.operand(dtype, full), g.operand(dtype, g.partner(full))])
        kind = "positive" if name in ("Div",) and (dtype not in FLOATS) and not g.one_in(10) else "any"
        return g.node(name, pair(g, dtype, None, ("any", kind)))
    OPERATORS[name] = make


for _name, _kind in UNARY.items():
    unary(_name, _kind)
for _name in BINARY:
    binary(_name)
activation("LeakyRelu", alpha=(0.0, 0.1, -0.5, 1.5))
activation("Elu", alpha=(0.0, 0.5, 2.0))
activation("Celu", alpha=(0.5, 2.0, -1.0))
activation("Selu", alpha=(0.5, 2.0), gamma=(0.5, 1.5))
activation("ThresholdedRelu", alpha=(0.0, 0.5, -1.0, 3.0))
activation("Shrink", bias=(0.5, -0.5), lambd=(0.0, 1.0, 0.1))
activation("HardSigmoid", alpha=(0.5, 0.0, -0.3), beta=(0.0, 1.0, 0.25))
activation("Swish", alpha=(0.5, 1.702, -1.0))
activation("Gelu", approximate=("none", "tanh"))
activation("IsInf", detect_negative=(0, 1), detect_positive=(0, 1))


@operator("Clip")
def clip(g):
    dtype = g.dtype()
    x = g.operand(dtype, g.shape())
    low, high = g.pick((-1, 1), (0, 6), (2, 1), (0, 0), (-100, 100))
    if g.opset < 11:
        return g.node("Clip", [x], {"min": g.maybe(float(low)), "max": g.maybe(float(high))})
    unsigned = dtype.startswith("u")
    bounds = [g.maybe(g.array(dtype, ()) if g.one_in(5) else g.array(dtype, ()) * 0 + np.array(max(v, 0) if unsigned else v).astype(
        g.array(dtype, ()).dtype), 1 if g.one_in(2) else 2) for v in (low, high)]
    return g.node("Clip", [x] + [None if b is None else g.give(b) for b in bounds])


@operator("Mod")
def mod(g):
    dtype = g.dtype()
    fmod = 1 if dtype in FLOATS else g.maybe(g.pick(0, 1))
    a, b = pair(g, dtype, None, ("any", "positive" if not g.one_in(4) else "any"))
    for name in (b,):
        array = g.constants.get(name, g.inputs.get(name))
        if array is None:
            raise NotPossible("a divisor from the pool may be 0")
        if dtype not in FLOATS:
            array[array == 0] = 3
    return g.node("Mod", [a, b], {"fmod": fmod})


@operator("BitShift")
def bit_shift(g):
    dtype = g.dtype()
    full = g.shape()
    width = g.array(dtype, ()).dtype.itemsize * 8
    by = (g.numbers.integers(0, width + (1 if g.one_in(5) else 0), g.partner(full))).astype(g.array(dtype, ()).dtype)
    return g.node("BitShift", [g.operand(dtype, full), g.give(np.asarray(by))], {"direction": g.pick("LEFT", "RIGHT")})


def variadic(name):
    def make(g):
        dtype = g.dtype()
        full = g.shape()
        shapes = [full] + [g.partner(full) for _ in range(g.pick(0, 1, 1, 2, 3, 5))]
        g.dice.shuffle(shapes)
        return g.node(name, [g.operand(dtype, s) for s in shapes])
    OPERATORS[name] = make


for _name in ("Max", "Min", "Sum", "Mean"):
    variadic(_name)


@operator("Where")
def where(g):
    dtype = g.dtype(1)
    full = g.shape()
    shapes = [full, g.partner(full), g.partner(full)]
    g.dice.shuffle(shapes)
    return g.node("Where", [g.operand("bool", shapes[0]), g.operand(dtype, shapes[1]), g.operand(dtype, shapes[2])])


def in_range(g, dtype, to, shape):
    """Contents that the other type can hold: ONNX leaves the rest of them open, but for floats out of saturating types."""
    array = g.array(dtype, shape)
    if to == "bool" or dtype == "bool" or to in FLOATS:
        return array
    info = np.iinfo(g.array(to, ()).dtype)
    with np.errstate(all="ignore"):
        wide = array.astype("f8") if dtype in FLOATS else array
        if dtype in FLOATS:
            wide = np.clip(np.nan_to_num(wide, nan=0.0), max(info.min, -2.0**53), min(info.max, 2.0**53) * (1 - 2**-10))
            return wide.astype(array.dtype)
    return wide


@operator("Cast")
def cast(g):
    dtype = g.dtype()
    to = g.dice.choice(g.allowed(0, outputs=True))
    shape = g.shape()
    return g.node("Cast", [g.give(in_range(g, dtype, to, shape))], {"to": NUMBER[to]})


@operator("CastLike")
def cast_like(g):
    dtype = g.dtype()
    to = g.dice.choice(g.allowed(1))
    shape = g.shape()
    return g.node("CastLike", [g.give(in_range(g, dtype, to, shape)), g.operand(to, g.shape())])


@operator("Dropout")
def dropout(g):
    dtype = g.dtype()
    x = g.operand(dtype, g.shape(), constant=False)
    outputs = g.pick(1, 2) if g.opset >= 7 else 1
    if g.opset < 12:
        return g.node("Dropout", [x], {"ratio": g.maybe(g.pick(0.0, 0.3))}, outputs)
    ratio = g.maybe(g.pick(0.0, 0.3, 0.9))
    mode = g.pick(None, False)
    return g.node("Dropout", [x, None if ratio is None else g.give(np.array(ratio, "f4")),
                              None if mode is None else g.give(np.array(mode), constant=True)], {"seed": g.maybe(3)}, outputs)
