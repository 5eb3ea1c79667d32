"""Operators in typical shapes: what operators.py times.

A case is an operator with its operands and attributes. A tuple as operand is a shape, filled with numbers of the case's dtype that change
from run to run; `weight(...)` is the same as a constant; an array is a constant as it stands; None is an operand that is left out.
"""
import dataclasses

import ml_dtypes
import numpy as np

TYPES = {"f32": np.dtype("f4"), "f64": np.dtype("f8"), "f16": np.dtype("f2"), "bf16": np.dtype(ml_dtypes.bfloat16), "i32": np.dtype("i4"),
         "i64": np.dtype("i8"), "u8": np.dtype("u1"), "bool": np.dtype("?")}
FLOATS = ("f32", "f64", "f16", "bf16")
NUMBERS = FLOATS + ("i32", "i64")


@dataclasses.dataclass
class Weight:
    shape: tuple


def weight(*shape):
    return Weight(shape)


@dataclasses.dataclass
class Case:
    op: str
    operands: tuple
    dtypes: tuple
    attributes: dict
    outputs: int = 1
    low: float = 0.1   # contents are uniform in [low, high); integers below 100
    high: float = 0.9
    opset: int = 18

    def label(self):
        def text(operand):
            if isinstance(operand, np.ndarray) and operand.size <= 8:
                return "[" + ",".join(map(str, operand.ravel())) + "]"
            return "-" if operand is None else "x".join(map(str, getattr(operand, "shape", operand)))

        shapes = " ".join(map(text, self.operands))
        shown = " ".join(f"{k}={','.join(map(str, v)) if isinstance(v, (list, tuple)) else v}" for k, v in self.attributes.items())
        return f"{self.op} {shapes} {shown}".strip()

    def array(self, shape, dtype, seed):
        generator = np.random.default_rng(seed)
        if dtype == "bool":
            return generator.random(shape) < 0.5
        if dtype in FLOATS:
            return (self.low + (self.high - self.low) * generator.random(shape)).astype(TYPES[dtype])
        return generator.integers(1, 100, shape).astype(TYPES[dtype])


CASES = []


def add(op, *operands, dtypes=("f32",), **more):
    known = {k: more.pop(k) for k in ("outputs", "low", "high", "opset") if k in more}
    CASES.append(Case(op, operands, dtypes, more, **known))


def i64(*values):
    return np.array(values, "i8")


def picked(high, *shape):
    return np.random.default_rng(7).integers(0, high, shape).astype("i8")


def pointwise():
    for op in """Abs Neg Relu Sigmoid Tanh Exp Log Sqrt Reciprocal Erf Floor Ceil Round Sign Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Atanh
                 Softplus Softsign Elu Selu Celu LeakyRelu HardSigmoid HardSwish ThresholdedRelu Shrink Mish""".split():
        add(op, (1, 64, 56, 56), dtypes=FLOATS if op in ("Relu", "Sigmoid", "Tanh", "Exp", "Sqrt", "Erf", "HardSwish") else ("f32",))
    add("Acosh", (1, 64, 56, 56), low=1.1, high=3)
    add("Gelu", (128, 3072), opset=20, dtypes=FLOATS)
    add("Gelu", (128, 3072), opset=20, approximate="tanh")
    add("Swish", (128, 3072), opset=24)
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        add(op, (1, 64, 56, 56), (1, 64, 56, 56), dtypes=NUMBERS)
        add(op, (1, 64, 56, 56), (64, 1, 1))
        add(op, (8, 128, 768), (768,))
    add("Add", (8, 128, 768), (8, 128, 1))
    add("Add", (512, 1), (1, 512))
    for exponent in (2.0, 3.0, 0.5, -1.0, -0.5, 1.7):
        add("Pow", (128, 3072), np.array(exponent, "f4"))
    add("Pow", (128, 3072), (128, 3072))
    add("PRelu", (1, 64, 56, 56), weight(64, 1, 1))
    add("Clip", (1, 64, 56, 56), np.array(0.2, "f4"), np.array(0.6, "f4"))
    add("Sum", (1, 64, 56, 56), (1, 64, 56, 56), (1, 64, 56, 56))
    add("Mean", (1, 64, 56, 56), (1, 64, 56, 56), (1, 64, 56, 56))
    add("Mod", (1, 64, 56, 56), (1, 64, 56, 56), dtypes=("i32", "i64"))
    add("Mod", (1, 64, 56, 56), (1, 64, 56, 56), fmod=1)
    for op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
        add(op, (1, 64, 56, 56), (1, 64, 56, 56), dtypes=("f32", "i64"))
    for op in ("And", "Or", "Xor"):
        add(op, (1, 64, 56, 56), (1, 64, 56, 56), dtypes=("bool",))
    add("Not", (1, 64, 56, 56), dtypes=("bool",))
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        add(op, (1, 64, 56, 56), (1, 64, 56, 56), dtypes=("i32", "u8"))
    add("BitwiseNot", (1, 64, 56, 56), dtypes=("i32",))
    add("BitShift", (1, 64, 56, 56), np.array([3], "u1"), dtypes=("u8",), direction="LEFT")
    add("IsNaN", (1, 64, 56, 56))
    add("IsInf", (1, 64, 56, 56))
    add("Where", np.random.default_rng(1).random((1, 64, 56, 56)) < 0.5, (1, 64, 56, 56), (1, 64, 56, 56), dtypes=("f32", "i64"))
    for source, to in (("f32", 10), ("f16", 1), ("f32", 16), ("bf16", 1), ("f32", 7), ("i64", 1), ("f32", 11), ("u8", 1), ("f32", 2)):
        add("Cast", (1, 64, 56, 56), dtypes=(source,), to=to)
    add("Identity", (1, 64, 56, 56))
    add("Dropout", (128, 768))


def contractions():
    for m, k, n in ((1, 768, 3072), (64, 256, 256), (128, 768, 768), (128, 768, 3072), (512, 512, 512), (37, 100, 50), (1, 1024, 1024),
                    (128, 512, 16384), (7, 33, 129)):
        add("MatMul", (m, k), weight(k, n), dtypes=FLOATS)
    add("MatMul", (12, 128, 64), (12, 64, 128), dtypes=FLOATS)
    add("MatMul", (8, 12, 128, 128), (8, 12, 128, 64))
    add("MatMul", (64, 8, 8), (64, 8, 8))
    add("MatMul", (256, 1024), (1024,))
    add("MatMul", (128, 256), (256, 128), dtypes=("i32",))
    for m, k, n in ((1, 2048, 1000), (8, 2048, 1000), (64, 256, 256), (32, 784, 128)):
        add("Gemm", (m, k), weight(n, k), weight(n), transB=1, dtypes=FLOATS)
    add("Gemm", (256, 64), (256, 128), transA=1)
    for equation, *shapes in (("ij,jk->ik", (256, 256), (256, 256)), ("bij,bjk->bik", (32, 64, 64), (32, 64, 64)), ("ij->ji", (512, 512)),
                              ("bhqd,bhkd->bhqk", (4, 8, 64, 32), (4, 8, 64, 32)), ("bqhd,bkhd->bhqk", (4, 64, 8, 32), (4, 64, 8, 32)),
                              ("ij,ij->i", (512, 256), (512, 256)), ("i,j->ij", (512,), (512,)), ("bii->bi", (32, 64, 64)),
                              ("ijk->ik", (64, 64, 64)), ("btd,dhe->bhte", (4, 64, 256), (256, 8, 32))):
        add("Einsum", *shapes, equation=equation)


def conv(batch, channels, size, outputs, kernel, stride=1, pad=None, group=1, dilation=1, dtypes=("f32",), op="Conv", **more):
    size, kernel = (size if isinstance(size, tuple) else (size, size)), (kernel if isinstance(kernel, tuple) else (kernel, kernel))
    kernel = (kernel * len(size))[:len(size)] if len(set(kernel)) == 1 else kernel[-len(size):]
    pads = [(k - 1) * dilation // 2 if pad is None else pad for k in kernel]
    filters = (outputs, channels // group) if op == "Conv" else (channels, outputs // group)
    add(op, (batch, channels, *size), weight(*filters, *kernel), weight(outputs), dtypes=dtypes, strides=[stride] * len(size),
        pads=pads * 2, group=group, dilations=[dilation] * len(size), **more)


def convolutions():
    for batch in (1, 8):
        conv(batch, 3, 224, 64, 7, 2)
        conv(batch, 64, 56, 64, 3, dtypes=FLOATS if batch == 1 else ("f32",))
        conv(batch, 64, 56, 256, 1, dtypes=FLOATS if batch == 1 else ("f32",))
        conv(batch, 256, 56, 64, 1)
        conv(batch, 128, 28, 128, 3)
        conv(batch, 256, 14, 256, 3)
        conv(batch, 512, 7, 512, 3)
        conv(batch, 1024, 14, 2048, 1, 2)
        conv(batch, 64, 56, 128, 3, 2)
        conv(batch, 32, 112, 32, 3, group=32, dtypes=FLOATS if batch == 1 else ("f32",))
        conv(batch, 144, 56, 144, 3, 2, group=144)
        conv(batch, 960, 7, 960, 3, group=960)
        conv(batch, 240, 14, 240, 5, group=240)
        conv(batch, 96, 56, 96, 7, group=96)
        conv(batch, 384, 14, 384, 7, group=384)
        conv(batch, 32, 256, 4, 1)
        conv(batch, 24, 56, 24, 3)
        conv(batch, 3, 128, 16, 3, 2)
        conv(batch, 20, 40, 50, 5)
        conv(batch, 64, 64, 1, 1)
        conv(batch, 64, 56, 64, 3, dilation=2)
        conv(batch, 64, 56, 64, 3, dilation=16)
        conv(batch, 128, 28, 128, 3, group=4)
        conv(batch, 128, 28, 128, 3, group=32)
        conv(batch, 64, 32, 64, 3, group=64, dilation=2)
        conv(batch, 64, 32, 64, 3, group=64, dilation=16)
    conv(1, 64, 56, 64, (1, 7))
    conv(1, 64, 56, 64, (7, 1))
    conv(1, 80, (400,), 256, 5)
    conv(1, 256, (512,), 256, 5)
    conv(1, 256, (512,), 256, 3, dilation=8)
    conv(1, 256, (512,), 256, 31, group=256)
    conv(1, 512, (400,), 512, 9, group=512)
    conv(8, 128, (1000,), 128, 3, group=128)
    conv(1, 1, (16000,), 64, 400, 160, pad=0)
    conv(1, 256, (512, 1), 512, (5, 1))
    conv(1, 1, (80, 400), 32, 3, 2)
    conv(1, 16, (16, 32, 32), 32, 3)
    for channels, size, outputs, kernel, stride in ((64, 28, 32, 2, 2), (128, 16, 64, 2, 2), (64, 32, 32, 4, 2), (32, 32, 16, 3, 2), (256, 8, 128, 4, 2)):
        conv(1, channels, size, outputs, kernel, stride, pad=(kernel - stride) // 2, op="ConvTranspose")
    conv(1, 64, (200,), 32, 16, 8, pad=4, op="ConvTranspose")
    conv(8, 64, 28, 32, 2, 2, pad=0, op="ConvTranspose")
    conv(1, 64, 28, 64, 4, 2, pad=1, group=64, op="ConvTranspose")


def pools():
    for op in ("MaxPool", "AveragePool"):
        for batch, channels, size, kernel, stride in ((1, 64, 112, 3, 2), (8, 64, 112, 3, 2), (1, 64, 56, 2, 2), (1, 24, 56, 3, 1), (1, 192, 28, 3, 1),
                                                      (1, 256, 13, 5, 1), (1, 512, 20, 13, 1), (1, 20, 24, 2, 2), (1, 6, 28, 2, 2)):
            add(op, (batch, channels, size, size), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                pads=[(kernel - 1) // 2] * 4, dtypes=FLOATS if size == 112 and batch == 1 else ("f32",))
        add(op, (1, 64, 1000), kernel_shape=[3], strides=[2], pads=[1, 1])
        add(op, (1, 32, 16, 28, 28), kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    add("MaxPool", (1, 64, 56, 56), kernel_shape=[2, 2], strides=[2, 2], outputs=2)
    add("AveragePool", (1, 1024, 7, 7), kernel_shape=[7, 7])
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        add(op, (1, 512, 7, 7), dtypes=FLOATS)
        add(op, (8, 2048, 7, 7))
        add(op, (1, 64, 56, 56))
    add("GlobalLpPool", (1, 512, 7, 7), p=2)
    add("LpPool", (1, 64, 56, 56), kernel_shape=[3, 3], strides=[2, 2], p=2)


def normalisations():
    for axis, shape in ((-1, (128, 768)), (-1, (12, 128, 128)), (-1, (3136, 49)), (-1, (16384, 8)), (-1, (1, 50000)), (1, (1, 21, 128, 128)),
                        (-1, (64, 49, 49)), (1, (8, 1000))):
        add("Softmax", shape, axis=axis, dtypes=FLOATS if shape == (12, 128, 128) else ("f32",))
        add("LogSoftmax", shape, axis=axis)
    add("Hardmax", (128, 768))
    add("LayerNormalization", (128, 768), weight(768), weight(768), dtypes=FLOATS)
    add("LayerNormalization", (3136, 96), weight(96), weight(96))
    add("RMSNormalization", (128, 768), weight(768), opset=23)
    add("BatchNormalization", (1, 64, 56, 56), weight(64), weight(64), weight(64), weight(64), dtypes=FLOATS)
    add("InstanceNormalization", (1, 64, 56, 56), weight(64), weight(64))
    add("GroupNormalization", (1, 64, 56, 56), weight(64), weight(64), num_groups=8, opset=21)
    add("LRN", (1, 64, 56, 56), size=5)
    add("LpNormalization", (128, 768), axis=-1, p=2)
    add("LpNormalization", (128, 768), axis=-1, p=1)
    add("MeanVarianceNormalization", (4, 64, 28, 28))
    add("NegativeLogLikelihoodLoss", (64, 1000), picked(1000, 64))
    add("SoftmaxCrossEntropyLoss", (64, 1000), picked(1000, 64))


def reductions():
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
               "ReduceLogSum"):
        for shape, axes in (((128, 768), [1]), ((128, 768), [0]), ((8, 64, 56, 56), [2, 3]), ((64, 64, 64), [1]), ((8, 64, 28, 28), [0, 2, 3])):
            if op == "ReduceSum" or op in ("ReduceMean", "ReduceMax") or shape == (128, 768):
                dtypes = NUMBERS if op == "ReduceSum" and axes == [1] else ("f32",)
                if op == "ReduceSum":
                    add(op, shape, i64(*axes), dtypes=dtypes, opset=13)
                else:
                    add(op, shape, axes=axes, opset=13)
    add("ReduceSum", (1 << 20,), i64(0), opset=13)
    for op in ("ArgMax", "ArgMin"):
        add(op, (128, 1000), axis=1)
        add(op, (1, 21, 128, 128), axis=1)
    for axis in (0, 1):
        add("CumSum", (512, 512), np.array(axis, "i8"), dtypes=("f32", "i64"))
    add("CumSum", (64, 64, 64), np.array(1, "i8"))
    for shape, k, axis in (((1, 1000), 5, -1), ((64, 1000), 5, -1), ((1, 50000), 50, -1), ((1, 80, 8400), 100, -1), ((8, 64, 28, 28), 3, 1)):
        add("TopK", shape, i64(k), axis=axis, outputs=2)
    add("Unique", (10000,), dtypes=("i64",), sorted=1)
    add("NonZero", (256, 256), dtypes=("bool",))


def movements():
    for shape, perm in (((1, 3, 224, 224), [0, 2, 3, 1]), ((1, 56, 56, 64), [0, 3, 1, 2]), ((1, 128, 12, 64), [0, 2, 1, 3]), ((512, 512), [1, 0]),
                        ((8, 12, 128, 64), [0, 1, 3, 2]), ((1, 2, 58, 28, 28), [0, 2, 1, 3, 4])):
        add("Transpose", shape, perm=perm, dtypes=("f32", "f16", "u8", "i64") if shape == (512, 512) else ("f32",))
    for axis, shapes in ((1, [(1, 64, 56, 56)] * 2), (1, [(8, 32, 28, 28)] * 4), (-1, [(128, 64)] * 8), (0, [(64, 768)] * 2)):
        add("Concat", *shapes, axis=axis)
    add("Split", (1, 64, 56, 56), axis=1, outputs=2, num_outputs=2)
    add("Split", (128, 2304), axis=1, outputs=3, num_outputs=3)
    add("Slice", (1, 64, 56, 56), i64(0, 0), i64(56, 28), i64(2, 3), i64(2, 1))
    add("Slice", (128, 768), i64(0), i64(384), i64(1))
    add("Slice", (1, 3, 224, 224), i64(-1), i64(-300), i64(3), i64(-1))
    add("Pad", (1, 64, 56, 56), i64(0, 0, 1, 1, 0, 0, 1, 1))
    for mode in ("reflect", "edge"):
        add("Pad", (1, 64, 56, 56), i64(0, 0, 2, 2, 0, 0, 2, 2), mode=mode)
    add("Expand", (64, 1, 1), i64(8, 64, 28, 28))
    add("Expand", (128, 1), i64(128, 768))
    add("Tile", (1, 64, 28, 28), i64(1, 1, 2, 2))
    add("Gather", weight(30000, 256), picked(30000, 512), dtypes=("f32", "f16"))
    add("Gather", (128, 768), picked(768, 64), axis=1)
    add("Gather", (8, 128, 768), np.array(0, "i8"), axis=1)
    add("GatherElements", (256, 256), picked(256, 256, 256), axis=0)
    add("GatherElements", (256, 256), picked(256, 256, 256), axis=1)
    add("GatherND", (64, 64, 128), picked(64, 1000, 2))
    add("ScatterElements", (256, 256), picked(256, 256, 256), (256, 256), axis=1)
    add("ScatterElements", (256, 256), picked(256, 256, 256), (256, 256), axis=0, reduction="add")
    add("ScatterElements", (1000, 64), np.broadcast_to(picked(1000, 4000, 1), (4000, 64)).copy(), (4000, 64), axis=0, reduction="add")
    add("ScatterND", (1000, 64), picked(1000, 500, 1), (500, 64))
    add("ScatterND", (64, 64, 64), picked(64, 2000, 2), (2000, 64), reduction="add")
    add("OneHot", picked(1000, 256), np.array(1000, "i8"), np.array([0, 1], "f4"))
    add("DepthToSpace", (1, 64, 56, 56), blocksize=2)
    add("DepthToSpace", (1, 64, 56, 56), blocksize=2, mode="CRD")
    add("SpaceToDepth", (1, 16, 112, 112), blocksize=2)
    add("ReverseSequence", (64, 8, 256), np.full(8, 50, "i8"), batch_axis=1, time_axis=0)
    add("Trilu", (12, 128, 128), upper=0)
    add("Compress", (1000, 64), np.random.default_rng(2).random(1000) < 0.5, axis=0)
    add("ConstantOfShape", i64(256, 256))
    add("EyeLike", (512, 512))
    add("Range", np.array(0, "i8"), np.array(65536, "i8"), np.array(1, "i8"))
    for mode, more in (("nearest", {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}), ("nearest", {}),
                       ("linear", {}), ("linear", {"coordinate_transformation_mode": "align_corners"}), ("cubic", {})):
        add("Resize", (1, 64, 28, 28), None, np.array([1, 1, 2, 2], "f4"), mode=mode, **more)
    add("Resize", (1, 3, 224, 224), None, np.array([1, 1, 0.5, 0.5], "f4"), mode="linear")
    add("Resize", (1, 64, 200), None, np.array([1, 1, 2], "f4"), mode="nearest")
    add("Resize", (8, 256, 16, 16), None, np.array([1, 1, 2, 2], "f4"), mode="nearest")
    for mode in ("linear", "nearest", "cubic"):
        add("GridSample", (1, 64, 28, 28), (1, 28, 28, 2), mode=mode, opset=20)
    boxes = np.array([[4 * i % 20, 3 * i % 20, 4 * i % 20 + 20, 3 * i % 20 + 24] for i in range(32)], "f4")
    add("RoiAlign", (1, 64, 50, 50), boxes, np.zeros(32, "i8"), output_height=7, output_width=7, sampling_ratio=2)
    corners = np.random.default_rng(4).random((1, 1000, 2)).astype("f4")
    add("NonMaxSuppression", np.concatenate([corners, corners + 0.1], -1), (1, 8, 1000), i64(50), np.array([0.5], "f4"), np.array([0.3], "f4"))


def recurrent():
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        for batch, steps, inputs, units in ((1, 64, 128, 128), (8, 32, 256, 256)):
            add(op, (steps, batch, inputs), weight(1, gates * units, inputs), weight(1, gates * units, units), weight(1, 2 * gates * units),
                hidden_size=units)


for family in (pointwise, contractions, convolutions, pools, normalisations, reductions, movements, recurrent):
    family()
