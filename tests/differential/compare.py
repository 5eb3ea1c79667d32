"""Whether two results are the same: dtypes, shapes, integers and what moves data exactly; floats within what the operator's class allows."""
import ml_dtypes
import numpy as np

from cases import BF16, is_float, name_of

# One rounding of the type, and then some.
UNIT = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}

# Bits may not change, the sign of zero included.
MOVES = set("""Identity Transpose Reshape Flatten Squeeze Unsqueeze Concat Split Slice Gather GatherElements GatherND Expand Tile DepthToSpace
SpaceToDepth ReverseSequence Compress Where OneHot Trilu EyeLike ConstantOfShape Pad Shape Size""".split())
# One correctly rounded operation, or two.
PLAIN = set("""Add Sub Mul Div Abs Neg Relu LeakyRelu PRelu Sqrt Reciprocal Ceil Floor Round Sign Clip Max Min Sum Mean Mod ThresholdedRelu Shrink
HardSigmoid HardSwish Cast CastLike Range ReduceMax ReduceMin MaxPool GlobalMaxPool TopK ScatterElements ScatterND Scatter Dropout Softsign""".split())
# Sums of products: errors are relative to what was summed, not to the sum.
SUMS = set("""MatMul Gemm Einsum Conv ConvTranspose AveragePool LpPool GlobalAveragePool GlobalLpPool ReduceSum ReduceMean ReduceL1 ReduceL2
ReduceLogSum ReduceLogSumExp ReduceSumSquare ReduceProd CumSum Resize Upsample GridSample RoiAlign BatchNormalization InstanceNormalization
GroupNormalization LayerNormalization RMSNormalization LpNormalization MeanVarianceNormalization LRN RNN GRU LSTM NegativeLogLikelihoodLoss
SoftmaxCrossEntropyLoss Softmax LogSoftmax ScatterElements ScatterND Sum Mean Loop Scan""".split())
# Differences of numbers near 1, or functions near a zero: errors are relative to 1 or to the argument.
NEAR_ONE = set("""Gelu Elu Celu Selu Sigmoid Mish Swish HardSwish HardSigmoid Softplus Tanh Sin Cos Tan Acos Acosh Asinh Atanh Log Pow Cosh Sinh Exp Erf
LeakyRelu Shrink""".split())
RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}


def tolerance(op, dtype):
    unit = UNIT[dtype]
    if op in MOVES:
        return 0.0
    if op in PLAIN:
        return 4 * unit
    return 64 * unit if dtype in ("f32", "f64") else 4 * unit


def input_scale(case):
    """Of what sums are made of: the product of the two largest finite magnitudes of operands."""
    largest = [1.0]
    for array in case.arrays().values():
        if is_float(array) and array.size:
            wide = np.abs(array.astype("f8"))
            wide = wide[np.isfinite(wide)]
            largest.append(max(1.0, float(wide.max())) if wide.size else 1.0)
    return min(float(np.prod(sorted(largest)[-2:])), 1e30)


def differs(op, ours, theirs, scale=0.0, slack=1.0):
    """None, or (kind, words): kind is dtype, shape, special, value. `theirs` may be wider where it was computed in f32."""
    narrow = name_of(ours.dtype)
    if ours.dtype != theirs.dtype:
        if narrow in ("f16", "bf16") and theirs.dtype == np.dtype("f4"):
            with np.errstate(all="ignore"):
                theirs = theirs.astype(ours.dtype)
        else:
            return "dtype", f"{narrow} and {theirs.dtype}"
    if ours.shape != theirs.shape:
        return "shape", f"{list(ours.shape)} and {list(theirs.shape)}"
    if op in RANDOM or ours.size == 0:
        return None
    if not is_float(ours):
        if np.array_equal(ours, theirs):
            return None
        at = np.unravel_index(np.argmax(ours != theirs), ours.shape)
        return "value", f"at {[int(i) for i in at]} {ours[at]} and {theirs[at]}, {int((ours != theirs).sum())} of {ours.size} elements"
    a, b = ours.astype("f8"), theirs.astype("f8")
    tol = tolerance(op, narrow) * slack
    nan = np.isnan(a) | np.isnan(b)
    odd = (np.isnan(a) != np.isnan(b)) | (~nan & (np.isinf(a) | np.isinf(b)) & (a != b))
    largest = float(ml_dtypes.finfo(ours.dtype).max)
    near = odd & ~nan & (np.minimum(np.abs(a), np.abs(b)) > largest * (1 - 8 * UNIT[narrow] - 4 * tol))
    odd &= ~near  # one rounded up to infinity
    if odd.any():
        at = np.unravel_index(np.argmax(odd), a.shape)
        return "special", f"at {[int(i) for i in at]} {a[at]} and {b[at]}, {int(odd.sum())} of {a.size} elements"
    if op in MOVES:
        wrong = ~nan & ((a != b) | (np.signbit(a) != np.signbit(b)))
    else:
        tiny = float(ml_dtypes.finfo(ours.dtype).tiny)
        with np.errstate(all="ignore"):
            error = np.abs(a - b)
        finite = np.abs(b[np.isfinite(b)])
        floor = tiny
        if op in SUMS:
            floor = max(floor, float(finite.max()) if finite.size else 0.0, scale)
        if op in NEAR_ONE:
            floor = max(floor, 1.0)
        wrong = ~nan & ~near & np.isfinite(a) & np.isfinite(b) & (error > np.maximum(tol * np.maximum(np.abs(b), floor), tiny))
    if not wrong.any():
        return None
    at = np.unravel_index(np.argmax(wrong), a.shape)
    return "value", f"at {[int(i) for i in at]} {a[at]!r} and {b[at]!r}, {int(wrong.sum())} of {a.size} elements"


def distance(ours, theirs):
    """The largest difference of finite elements, relative to the largest of them."""
    worst = 0.0
    for a, b in zip(ours, theirs):
        if a.shape != b.shape or a.size == 0:
            return np.inf
        a, b = a.astype("f8"), b.astype("f8")
        both = np.isfinite(a) & np.isfinite(b)
        if both.any():
            worst = max(worst, float(np.abs(a - b)[both].max()) / max(float(np.abs(b)[both].max()), 1e-30))
    return worst


def compare(op, ours, theirs, scale=0.0, slack=1.0):
    if len(ours) != len(theirs):
        return "count", f"{len(ours)} and {len(theirs)} outputs"
    for i, (a, b) in enumerate(zip(ours, theirs)):
        found = differs(op, a, b, scale, slack)
        if found:
            return found[0], f"output {i}: {found[1]}"
    return None
