"""Cases: an ONNX model with its inputs, made from a seed.

`Generator` is what the operators of elementwise.py, moving.py and computing.py are written against: it draws dtypes, shapes and contents, decides which operands are
constants, and collects nodes. With a pool of values (graphs.py) operands are taken from earlier nodes where they fit.
"""
import dataclasses
import random

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BF16 = np.dtype(ml_dtypes.bfloat16)
NAMES = ["", "f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"]  # by heddle_dtype
TYPES = {"f16": np.dtype("f2"), "bf16": BF16, "f32": np.dtype("f4"), "f64": np.dtype("f8"), "i8": np.dtype("i1"), "i16": np.dtype("i2"),
         "i32": np.dtype("i4"), "i64": np.dtype("i8"), "u8": np.dtype("u1"), "u16": np.dtype("u2"), "u32": np.dtype("u4"),
         "u64": np.dtype("u8"), "bool": np.dtype("?")}
ONNX_TEXT = {"tensor(float16)": "f16", "tensor(bfloat16)": "bf16", "tensor(float)": "f32", "tensor(double)": "f64", "tensor(int8)": "i8",
             "tensor(int16)": "i16", "tensor(int32)": "i32", "tensor(int64)": "i64", "tensor(uint8)": "u8", "tensor(uint16)": "u16",
             "tensor(uint32)": "u32", "tensor(uint64)": "u64", "tensor(bool)": "bool"}
NUMBER = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE,
          "i8": TensorProto.INT8, "i16": TensorProto.INT16, "i32": TensorProto.INT32, "i64": TensorProto.INT64, "u8": TensorProto.UINT8,
          "u16": TensorProto.UINT16, "u32": TensorProto.UINT32, "u64": TensorProto.UINT64, "bool": TensorProto.BOOL}
FLOATS = ("f16", "bf16", "f32", "f64")
NEWEST_OPSET = 24
EXTENTS = (1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33)


def name_of(dtype):
    for name, known in TYPES.items():
        if known == dtype:
            return name
    raise KeyError(str(dtype))


def is_float(array):
    return name_of(array.dtype) in FLOATS


def tensor_proto(array, name):
    if array.dtype == BF16:
        return helper.make_tensor(name, TensorProto.BFLOAT16, array.shape, array.tobytes(), raw=True)
    return numpy_helper.from_array(array, name)


class NotPossible(Exception):
    """The operator has no such case (opset, dtype): draw again."""


@dataclasses.dataclass
class Case:
    seed: int
    opset: int
    nodes: list
    inputs: dict      # name -> array, fed in each run
    constants: dict   # name -> array, initialisers
    outputs: list     # names
    features: dict    # of the last node: op, dtype, attributes; what classes.toml asks about
    rename: dict = dataclasses.field(default_factory=dict)

    def model(self, outputs=None, convert=None):
        """The ModelProto. `convert`: what becomes of each array and with it of the declared types."""
        convert = convert or (lambda array: array)
        graph = onnx.GraphProto()
        graph.name = "case"
        graph.node.extend(self.nodes)
        for name, array in self.inputs.items():
            array = convert(array)
            graph.input.append(helper.make_tensor_value_info(name, NUMBER[name_of(array.dtype)], array.shape))
        for name, array in self.constants.items():
            graph.initializer.append(tensor_proto(convert(array), name))
        for name in outputs or self.outputs:
            graph.output.append(onnx.ValueInfoProto(name=name))
        ir = 8 if self.opset <= 18 else self.opset - 11 if self.opset > 19 else 9
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=ir, producer_name="fuzz")

    def arrays(self):
        return {**self.inputs, **self.constants}


class Generator:
    def __init__(self, seed, opset=None, pool=None, only_dtypes=None):
        self.dice = random.Random(seed)
        self.numbers = np.random.Generator(np.random.PCG64(seed & (2**63 - 1)))
        self.seed = seed
        self.opset = opset or self.dice.choice([7, 8, 9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 18, 19, 20, 21, 21])
        self.fixed_opset = opset is not None
        self.pool = pool              # name -> array; None outside graphs
        self.only_dtypes = only_dtypes
        self.nodes, self.inputs, self.constants, self.features = [], {}, {}, {}
        self.count = 0
        self.prefix = "v"
        self.schema = None
        self.bad = False  # the case is meant to be wrong in some way

    # ------------------------------------------------------------ draws
    def one_in(self, n):
        return self.dice.randrange(n) == 0

    def pick(self, *choices):
        return self.dice.choice(choices)

    def maybe(self, value, n=2):
        return value if self.one_in(n) else None

    def between(self, low, high):
        return self.dice.randint(low, high)

    def begin(self, op):
        """The schema of `op` in this opset; moves to a newer opset when it is not there yet."""
        try:
            self.schema = onnx.defs.get_schema(op, max_inclusive_version=self.opset)
        except onnx.defs.SchemaError:
            if self.fixed_opset:
                raise NotPossible(op)
            self.opset = self.between(onnx.defs.get_schema(op, max_inclusive_version=NEWEST_OPSET).since_version, NEWEST_OPSET)
            try:
                self.schema = onnx.defs.get_schema(op, max_inclusive_version=self.opset)
            except onnx.defs.SchemaError as error:
                raise NotPossible(op) from error
        self.features = {"op": op, "attributes": {}, "since": self.schema.since_version}

    def allowed(self, port=0, outputs=False):
        ports = self.schema.outputs if outputs else self.schema.inputs
        port = ports[min(port, len(ports) - 1)]
        return [ONNX_TEXT[t] for t in sorted(port.types) if t in ONNX_TEXT]

    def dtype(self, port=0, among=None):
        allowed = [d for d in self.allowed(port) if among is None or d in among]
        if self.only_dtypes:
            allowed = [d for d in allowed if d in self.only_dtypes]
        if not allowed:
            raise NotPossible("dtype")
        if self.pool and not self.one_in(3):
            have = [name_of(a.dtype) for a in self.pool.values() if name_of(a.dtype) in allowed]
            if have:
                return self.dice.choice(have)
        if "f32" in allowed and self.one_in(2):
            return "f32"
        return self.dice.choice(allowed)

    def extent(self):
        return 0 if self.pool is None and self.one_in(60) else self.dice.choice(EXTENTS)

    def shape(self, low=0, high=4, most=4096, dtype=None):
        if self.pool and not self.one_in(4):
            have = [a.shape for a in self.pool.values() if low <= a.ndim <= high and (dtype is None or name_of(a.dtype) == dtype)]
            if have:
                return tuple(self.dice.choice(have))
        while True:
            rank = self.between(low, high)
            if rank < high and low == 0 and self.one_in(2):
                rank = self.between(max(low, 1), high)
            shape = tuple(self.extent() for _ in range(rank))
            if np.prod(shape, dtype=np.int64) <= most:
                return shape

    def partner(self, shape):
        """A shape that broadcasts with `shape` without being larger."""
        if self.one_in(2):
            return tuple(shape)
        cut = self.between(0, len(shape))
        return tuple(1 if self.one_in(3) else d for d in shape[cut:])

    # ------------------------------------------------------------ contents
    def array(self, dtype, shape, kind="any"):
        shape = tuple(int(d) for d in shape)
        type_ = TYPES[dtype]
        if dtype == "bool":
            return np.asarray(self.numbers.integers(0, 2, shape).astype(type_))
        if dtype not in FLOATS:
            return self.integers(dtype, shape, kind)
        manner = self.between(0, 9)
        if kind == "any" and manner == 0:
            out = self.numbers.integers(-4, 5, shape).astype("f8")
        elif kind == "any" and manner == 1:
            out = self.numbers.standard_normal(shape) * 10.0 ** self.numbers.integers(-6, 5, shape)
        else:
            out = self.numbers.standard_normal(shape) * self.pick(0.1, 1, 1, 3)
        out = np.array(out, dtype="f8").reshape(shape)
        if kind == "positive":
            out = np.abs(out) + 1e-3
        elif kind == "unit":
            out = np.clip(out, -1, 1) if not self.one_in(5) else out
        elif kind == "above one":
            out = np.abs(out) + 1 if not self.one_in(5) else out
        elif kind == "distinct":
            out = self.numbers.permutation(out.size).reshape(shape).astype("f8") / 8 - out.size / 16
        with np.errstate(all="ignore"):
            out = out.astype(type_)
        if kind in ("any", "unit", "above one") and self.one_in(8) and out.size:
            self.put_specials(out, dtype)
        return out

    def put_specials(self, out, dtype):
        info = ml_dtypes.finfo(TYPES[dtype])
        specials = [np.nan, np.inf, -np.inf, 0.0, -0.0, float(info.max), float(-info.max), float(info.tiny), float(info.smallest_subnormal),
                    float(-info.smallest_subnormal), 0.5, -0.5, 1.5, 2.5, 1.0, -1.0]
        if self.one_in(2):  # without those whose sums overflow in some order of addition
            specials = [s for s in specials if not abs(s) == float(info.max)]
        flat = out.reshape(-1)
        for _ in range(self.between(1, max(1, min(6, flat.size)))):
            with np.errstate(all="ignore"):
                flat[self.between(0, flat.size - 1)] = np.array(self.dice.choice(specials)).astype(out.dtype)

    def integers(self, dtype, shape, kind):
        info = np.iinfo(TYPES[dtype])
        if kind in ("positive", "above one"):
            out = self.numbers.integers(1, 10, shape)
        elif kind == "distinct":
            size = int(np.prod(shape))
            out = self.numbers.permutation(size).reshape(shape) % (info.max if size > info.max else size + 1)
        elif self.one_in(8) and kind == "any":
            out = self.numbers.integers(info.min, info.max, shape, dtype=TYPES[dtype], endpoint=True)
            flat = np.asarray(out).reshape(-1)
            if flat.size and np.ndim(out):
                flat[self.between(0, flat.size - 1)] = self.pick(info.min, info.max, 0)
        else:
            out = self.numbers.integers(0 if info.min == 0 else -9, 10, shape)
        return np.asarray(out).astype(TYPES[dtype]).reshape(shape)

    # ------------------------------------------------------------ nodes
    def new_name(self):
        self.count += 1
        return f"{self.prefix}{self.count}"

    def give(self, array, constant=None):
        """A new operand; constant: True, False, or None for a throw."""
        name = self.new_name()
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        constant = self.one_in(2) if constant is None else constant
        (self.constants if constant else self.inputs)[name] = array
        return name

    def operand(self, dtype, shape, kind="any", constant=None):
        if self.pool and constant is not True and not self.one_in(4):
            have = [n for n, a in self.pool.items() if name_of(a.dtype) == dtype and a.shape == tuple(shape)]
            if have:
                return self.dice.choice(have[-4:])
        return self.give(self.array(dtype, shape, kind), constant)

    def ints(self, values, constant=None, dtype="i64", scalar=False):
        array = np.array(values, dtype=TYPES[dtype])
        return self.give(array if scalar else array.reshape(-1), True if self.pool is not None else constant)

    def node(self, op, inputs, attributes=None, outputs=1):
        attributes = {k: v for k, v in (attributes or {}).items() if v is not None}
        inputs = [n or "" for n in inputs]
        while inputs and not inputs[-1]:
            inputs.pop()
        names = [self.new_name() if wanted else "" for wanted in ([True] * outputs if isinstance(outputs, int) else outputs)]
        node = helper.make_node(op, inputs, names, name=f"n{len(self.nodes)}", **attributes)
        self.nodes.append(node)
        self.features["attributes"] = attributes
        return names

    def case(self, outputs):
        if not self.inputs and self.constants:  # something is fed, or all of it would be folded away
            if self.one_in(2):
                name = next(iter(self.constants))
                self.inputs[name] = self.constants.pop(name)
        features = dict(self.features)
        arrays = {**self.inputs, **self.constants}
        features["inputs"] = [arrays.get(n) for n in self.nodes[-1].input]
        features["opset"] = self.opset
        features["input_count"] = len(self.nodes[-1].input)
        features["constant"] = [n in self.constants for n in self.nodes[-1].input]
        return Case(self.seed, self.opset, self.nodes, self.inputs, self.constants, [o for o in outputs if o], features)
