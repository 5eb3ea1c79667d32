"""Operators that compute over neighbourhoods, rows or matrices, random operators, and control flow."""
import numpy as np
from onnx import helper

from cases import FLOATS, NUMBER, TYPES, NotPossible, name_of, tensor_proto
from moving import axis_of, some_axes

OPERATORS = {}


def operator(name):
    def keep(function):
        OPERATORS[name] = function
        return function
    return keep


# ---------------------------------------------------------------- matrices
@operator("MatMul")
def mat_mul(g):
    dtype = g.dtype()
    m, k, n = g.extent(), g.extent(), g.extent()
    batch = g.shape(0, 2, 16) if not g.pool else ()
    a, b = tuple(batch) + (m, k), g.partner(batch) + (k, n)
    if g.pool:
        a = g.shape(2, 4, dtype=dtype)
        b = (a[-1], n)
    form = g.between(0, 9)
    if form == 0:
        a = (k,) if not g.pool else a
    elif form == 1:
        b = (a[-1],)
    elif form == 2 and not g.pool:
        a, b = g.partner(batch) + (m, k), tuple(batch) + (k, n)
    return g.node("MatMul", [g.operand(dtype, a), g.operand(dtype, b)])


@operator("Gemm")
def gemm(g):
    dtype = g.dtype()
    m, k, n = g.extent(), g.extent(), g.extent()
    ta, tb = g.maybe(g.pick(0, 1)), g.maybe(g.pick(0, 1))
    c = g.pick(None, (m, n), (n,), (1, n), (m, 1), (1,), ())
    if c is None and g.opset < 11:
        c = (n,)
    factors = (0.5, -1.0, 0.0) if dtype in FLOATS else (2.0, 0.0)  # what half of an integer is, nobody says
    return g.node("Gemm", [g.operand(dtype, (k, m) if ta else (m, k)), g.operand(dtype, (n, k) if tb else (k, n)),
                           None if c is None else g.operand(dtype, c)],
                  {"alpha": g.maybe(g.pick(*factors)), "beta": g.maybe(g.pick(*factors)), "transA": ta, "transB": tb})


@operator("Einsum")
def einsum(g):
    dtype = g.dtype()
    equation, shapes = g.pick(
        ("ij,jk->ik", "ij jk"), ("ij,jk", "ij jk"), ("bij,bjk->bik", "bij bjk"), ("ij->ji", "ij"), ("ii->i", "ii"), ("ii", "ii"),
        ("ij->", "ij"), ("ij->j", "ij"), ("i,j->ij", "i j"), ("i,i", "i i"), ("...ij,...jk->...ik", "abij abjk"), ("bhid,bhjd->bhij", "bhid bhjd"),
        ("ij,ij->ij", "ij ij"), ("ijk,k->ij", "ijk k"), ("ij,jk,kl->il", "ij jk kl"), ("...ii->...i", "aii"), ("... j->...", "aj"),
        ("b...,b...->...", "bij bij"), ("ba", "ba"))
    extents = {c: g.pick(1, 2, 3, 4, 5) for c in "abcdefghijkl"}
    return g.node("Einsum", [g.operand(dtype, tuple(extents[c] for c in s)) for s in shapes.split()], {"equation": equation})


# ---------------------------------------------------------------- windows
def window(g, spatial, ceil=False, dilations=True):
    """Attributes kernel_shape, strides, pads, dilations and auto_pad, and the extents of a picture that they fit."""
    kernel = [g.pick(1, 2, 3, 3, 5) for _ in range(spatial)]
    strides = [g.pick(1, 1, 2, 3) for _ in range(spatial)]
    dilation = [g.pick(1, 1, 1, 2, 3) if dilations else 1 for _ in range(spatial)]
    extent = [max(g.pick(1, 2, 4, 5, 7, 8, 13), dilation[i] * (kernel[i] - 1) + 1) for i in range(spatial)]
    attributes = {"strides": strides if not g.one_in(3) else None, "dilations": dilation if dilations and dilation != [1] * spatial else None}
    if attributes["strides"] is None:
        strides = [1] * spatial
    manner = g.between(0, 5)
    if manner == 0:
        attributes["auto_pad"] = g.pick("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
    elif manner < 4:
        attributes["pads"] = [g.between(0, max(0, min(2, kernel[i % spatial] - 1))) for i in range(2 * spatial)]
    return kernel, attributes, extent


@operator("Conv")
def conv(g):
    dtype = g.dtype()
    spatial = g.pick(1, 2, 2, 2, 3)
    kernel, attributes, extent = window(g, spatial)
    groups = g.pick(1, 1, 1, 2, 4)
    inputs, outputs = groups * g.pick(1, 2, 3, 8), groups * g.pick(1, 2, 5, 16)
    if g.one_in(6):
        groups = inputs = outputs = g.pick(2, 8, 16, 17)  # depthwise
    shape = (g.pick(1, 1, 2, 3), inputs, *extent)
    if g.one_in(40):
        shape = (0, *shape[1:])
    bias = g.maybe((outputs,))
    return g.node("Conv", [g.operand(dtype, shape), g.operand(dtype, (outputs, inputs // groups, *kernel)),
                           None if bias is None else g.operand(dtype, bias)],
                  {"group": groups if groups > 1 else None, "kernel_shape": kernel if not g.one_in(3) else None, **attributes})


@operator("ConvTranspose")
def conv_transpose(g):
    dtype = g.dtype()
    spatial = g.pick(1, 2, 2, 3)
    kernel, attributes, extent = window(g, spatial)
    groups = g.pick(1, 1, 2)
    inputs, outputs = groups * g.pick(1, 2, 4), g.pick(1, 2, 5)
    strides = attributes.get("strides") or [1] * spatial
    if attributes.get("auto_pad") in (None, "NOTSET") and g.one_in(3):
        attributes["output_padding"] = [g.between(0, max(0, s - 1)) for s in strides]
    bias = g.maybe((outputs * groups,))
    return g.node("ConvTranspose", [g.operand(dtype, (g.pick(1, 2), inputs, *[min(e, 6) for e in extent])),
                                    g.operand(dtype, (inputs, outputs, *kernel)), None if bias is None else g.operand(dtype, bias)],
                  {"group": groups if groups > 1 else None, "kernel_shape": kernel if not g.one_in(3) else None, **attributes})


def pool(name):
    def make(g):
        dtype = g.dtype()
        spatial = g.pick(1, 2, 2, 2, 3)
        kernel, attributes, extent = window(g, spatial, dilations=(name == "MaxPool" and g.opset >= 10) or
                                            (name == "AveragePool" and g.opset >= 19) or (name == "LpPool" and g.opset >= 18))
        if (name in ("MaxPool", "AveragePool") and g.opset >= 10) or (name == "LpPool" and g.opset >= 18):
            attributes["ceil_mode"] = g.maybe(g.pick(0, 1))
        if name == "AveragePool":
            attributes["count_include_pad"] = g.maybe(g.pick(0, 1))
        if name == "LpPool":
            attributes["p"] = g.maybe(g.pick(1, 2, 3))
        outputs = 1
        if name == "MaxPool" and g.opset >= 8:
            outputs = g.pick(1, 1, 2)
            attributes["storage_order"] = g.maybe(g.pick(0, 1)) if outputs == 2 else None
        return g.node(name, [g.operand(dtype, (g.pick(1, 2), g.pick(1, 3, 16), *extent), "distinct" if outputs == 2 else "any")],
                      {"kernel_shape": kernel, **attributes}, outputs)
    OPERATORS[name] = make


for _name in ("MaxPool", "AveragePool", "LpPool"):
    pool(_name)


def global_pool(name):
    def make(g):
        dtype = g.dtype()
        return g.node(name, [g.operand(dtype, g.shape(3, 5) if g.pool else (g.extent(), g.extent(), *[g.pick(1, 2, 3, 7) for _ in range(g.pick(1, 2, 3))]))],
                      {"p": g.maybe(g.pick(1, 2, 3))} if name == "GlobalLpPool" else {})
    OPERATORS[name] = make


for _name in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
    global_pool(_name)


@operator("Resize")
def resize(g, upsample=False):
    dtype = g.dtype()
    rank = g.pick(4, 4, 3, 2) if not upsample else 4
    shape = tuple(g.pick(1, 2, 3, 4, 5, 8) for _ in range(rank))
    mode = g.pick("nearest", "linear", "cubic") if g.opset >= 11 else g.pick("nearest", "linear")
    moved = list(range(rank)) if mode == "nearest" and g.one_in(3) else list(range(rank))[-g.pick(1, 2):]
    scales = [g.pick(0.5, 2.0, 1.5, 0.6, 3.0, 1.0, 0.25, 1.3333334) if i in moved else 1.0 for i in range(rank)]
    if upsample:
        scales = [max(s, 1.0) for s in scales]
    scales = [s if int(np.floor(np.float32(s) * d)) > 0 else 1.0 for s, d in zip(scales, shape)]
    if mode == "cubic":
        moved = [i for i in moved if i >= rank - 2]
        shape = (1, 1, *shape[-2:]) if rank == 4 and g.one_in(2) else shape
    x = g.operand(dtype, shape)
    if g.opset < 11:
        return g.node("Upsample" if upsample else "Resize", [x, g.give(np.array(scales, "f4"))], {"mode": g.maybe(mode, 1 if mode != "nearest" else 2)})
    attributes = {"mode": g.maybe(mode, 1 if mode != "nearest" else 2)}
    frames = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"] + (["half_pixel_symmetric"] if g.opset >= 19 else [])
    attributes["coordinate_transformation_mode"] = g.maybe(g.dice.choice(frames), 1 if g.one_in(2) else 2)
    if mode == "nearest":
        attributes["nearest_mode"] = g.maybe(g.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        attributes["cubic_coeff_a"] = g.maybe(g.pick(-0.5, -0.75))
        attributes["exclude_outside"] = g.maybe(g.pick(0, 1))
    if g.opset >= 18 and mode != "nearest" and g.one_in(4):
        attributes["antialias"] = 1
    if g.one_in(3):
        sizes = [max(1, int(np.floor(s * d))) if i in moved else d for i, (s, d) in enumerate(zip(scales, shape))]
        return g.node("Resize", [x, g.give(np.zeros(0, "f4"), True) if g.opset < 13 else None,
                                 g.give(np.zeros(0, "f4"), True) if g.opset < 13 else None, g.ints(sizes)], attributes)
    return g.node("Resize", [x, g.give(np.zeros(0, "f4"), True) if g.opset < 13 else None, g.give(np.array(scales, "f4"))], attributes)


@operator("Upsample")
def upsample(g):
    g.opset = 9
    g.begin("Upsample")
    return resize(g, upsample=True)


@operator("GridSample")
def grid_sample(g):
    dtype = g.dtype()
    spatial = 2 if g.opset < 20 else g.pick(2, 2, 3)
    n, c = g.pick(1, 2), g.pick(1, 3)
    size, out = [g.pick(1, 2, 4, 5) for _ in range(spatial)], [g.pick(1, 2, 4) for _ in range(spatial)]
    modes = ("bilinear", "nearest", "bicubic") if g.opset < 20 else ("linear", "nearest", "cubic")
    mode = g.dice.choice(modes if spatial == 2 else modes[:2])
    grid = (g.numbers.random((n, *out, spatial)) * 2.6 - 1.3).astype(TYPES[dtype if g.opset < 20 else g.pick(dtype)])
    if "f4" not in str(grid.dtype) and g.opset < 20:
        grid = grid.astype(TYPES[dtype])
    return g.node("GridSample", [g.operand(dtype, (n, c, *size)), g.give(grid)],
                  {"mode": g.maybe(mode, 1 if g.one_in(2) else 2), "padding_mode": g.maybe(g.pick("zeros", "border", "reflection")),
                   "align_corners": g.maybe(g.pick(0, 1))})


@operator("RoiAlign")
def roi_align(g):
    dtype = g.dtype()
    n, c, h, w = g.pick(1, 2), g.pick(1, 3), g.pick(4, 6, 9), g.pick(4, 7)
    rois = g.between(1, 3)
    scale = g.maybe(g.pick(0.5, 0.25))
    corners = (g.numbers.random((rois, 4)) * (min(h, w) / (scale or 1.0))).astype(TYPES[dtype])
    corners[:, 2:] = corners[:, :2] + np.abs(corners[:, 2:]) / 2
    return g.node("RoiAlign", [g.operand(dtype, (n, c, h, w)), g.give(corners), g.give(g.numbers.integers(0, n, rois).astype("i8"))],
                  {"mode": g.maybe(g.pick("avg", "max")), "output_height": g.maybe(g.pick(1, 2, 3)), "output_width": g.maybe(g.pick(1, 2, 3)),
                   "sampling_ratio": g.maybe(g.pick(0, 1, 2, 3)), "spatial_scale": scale,
                   "coordinate_transformation_mode": g.maybe(g.pick("half_pixel", "output_half_pixel")) if g.opset >= 16 else None})


# ---------------------------------------------------------------- rows
def channels(g, dtype):
    return (g.pick(1, 2, 3), g.pick(1, 3, 4, 8), *[g.pick(1, 2, 5, 8) for _ in range(g.pick(0, 1, 2, 2, 3))])


@operator("BatchNormalization")
def batch_normalization(g):
    dtype = g.dtype()
    shape = channels(g, dtype)
    c = (shape[1],)
    g.features["kind"] = "inference"
    return g.node("BatchNormalization", [g.operand(dtype, shape), g.operand(dtype, c), g.operand(dtype, c), g.operand(dtype, c),
                                         g.give(g.array(dtype, c, "positive"))], {"epsilon": g.maybe(g.pick(1e-3, 1e-2, 0.5)), "momentum": g.maybe(0.5)})


@operator("InstanceNormalization")
def instance_normalization(g):
    dtype = g.dtype()
    shape = channels(g, dtype)
    if len(shape) < 3:
        shape = shape + (4,)
    return g.node("InstanceNormalization", [g.operand(dtype, shape), g.operand(dtype, shape[1:2]), g.operand(dtype, shape[1:2])],
                  {"epsilon": g.maybe(g.pick(1e-3, 0.5))})


@operator("GroupNormalization")
def group_normalization(g):
    dtype = g.dtype()
    groups = g.pick(1, 2, 4)
    shape = (g.pick(1, 2), groups * g.pick(1, 2, 3), *[g.pick(1, 2, 5) for _ in range(g.pick(1, 2))])
    scales = (shape[1],) if g.opset >= 21 else (groups,)
    return g.node("GroupNormalization", [g.operand(dtype, shape), g.operand(dtype, scales), g.operand(dtype, scales)],
                  {"num_groups": groups, "epsilon": g.maybe(g.pick(1e-3, 0.5))})


@operator("RMSNormalization")
def rms_normalization(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    axis = g.between(-len(shape), len(shape) - 1)
    return g.node("RMSNormalization", [g.operand(dtype, shape), g.operand(dtype, shape[axis:])],
                  {"axis": g.maybe(axis, 1 if axis not in (-1, len(shape) - 1) else 2), "epsilon": g.maybe(g.pick(1e-3, 1e-2))})


@operator("LayerNormalization")
def layer_normalization(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    axis = g.between(-len(shape), len(shape) - 1)
    rest = shape[axis:] if axis < 0 else shape[axis:]
    bias = g.maybe(1)
    outputs = g.pick([True], [True], [True, True, True], [True, False, True])
    return g.node("LayerNormalization", [g.operand(dtype, shape), g.operand(dtype, rest), None if bias is None else g.operand(dtype, rest)],
                  {"axis": g.maybe(axis, 1 if axis not in (-1, len(shape) - 1) else 2), "epsilon": g.maybe(g.pick(1e-3, 1e-2))},
                  outputs if dtype == "f32" else [True])


@operator("LRN")
def lrn(g):
    dtype = g.dtype()
    return g.node("LRN", [g.operand(dtype, channels(g, dtype) + ((3,) if g.one_in(2) else (2, 2)))],
                  {"size": g.pick(1, 3, 5, 2), "alpha": g.maybe(g.pick(0.01, 1.0)), "beta": g.maybe(g.pick(0.5, 1.0)), "bias": g.maybe(2.0)})


@operator("LpNormalization")
def lp_normalization(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    return g.node("LpNormalization", [g.operand(dtype, shape)], {"axis": g.maybe(g.between(0, len(shape) - 1)), "p": g.maybe(g.pick(1, 2))})


@operator("MeanVarianceNormalization")
def mean_variance_normalization(g):
    dtype = g.dtype()
    shape = (g.pick(1, 2, 3), g.pick(1, 3), g.pick(1, 2, 5), g.pick(2, 4))
    return g.node("MeanVarianceNormalization", [g.operand(dtype, shape)], {"axes": g.maybe(some_axes(g, 4) or [0])})


def softmax(name):
    def make(g):
        dtype = g.dtype()
        shape = g.shape(1, 4)
        axis = axis_of(g, len(shape))
        return g.node(name, [g.operand(dtype, shape)], {"axis": g.maybe(axis)})
    OPERATORS[name] = make


for _name in ("Softmax", "LogSoftmax", "Hardmax"):
    softmax(_name)


def reduction(name):
    def make(g):
        dtype = g.dtype()
        shape = g.shape(0, 4)
        kind = "positive" if "Log" in name and not g.one_in(5) else "any"
        x = g.operand(dtype, shape, kind)
        axes = None if g.one_in(4) or not shape else some_axes(g, len(shape))
        keep = g.maybe(g.pick(0, 1))
        if g.opset < (13 if name == "ReduceSum" else 18):
            return g.node(name, [x], {"axes": axes or None, "keepdims": keep})
        return g.node(name, [x, None if axes is None else g.ints(axes)], {"keepdims": keep, "noop_with_empty_axes": g.maybe(g.pick(0, 1), 3)})
    OPERATORS[name] = make


for _name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"):
    reduction("Reduce" + _name)


def recurrent(name, gates):
    def make(g):
        dtype = g.dtype()
        steps, batch, size, hidden = g.pick(1, 2, 5), g.pick(1, 2, 3), g.pick(1, 3, 4), g.pick(1, 2, 5)
        direction = g.pick(None, "forward", "reverse", "bidirectional")
        d = 2 if direction == "bidirectional" else 1
        layout = g.maybe(g.pick(0, 1)) if g.opset >= 14 else None
        x = (batch, steps, size) if layout else (steps, batch, size)
        state = (batch, d, hidden) if layout else (d, batch, hidden)
        bias, lengths, initial = g.maybe(1), g.maybe(1, 3), g.maybe(1, 3)
        attributes = {"hidden_size": hidden, "direction": direction, "layout": layout, "clip": g.maybe(g.pick(0.5, 3.0), 4)}
        if name == "GRU":
            attributes["linear_before_reset"] = g.maybe(g.pick(0, 1))
        if name == "LSTM":
            attributes["input_forget"] = g.maybe(g.pick(0, 1), 4)
        if g.one_in(4):
            one = {"RNN": g.pick(["Relu"], ["Sigmoid"], ["Tanh"]), "GRU": g.pick(["Sigmoid", "Relu"], ["HardSigmoid", "Tanh"]),
                   "LSTM": g.pick(["Sigmoid", "Tanh", "Relu"], ["Sigmoid", "Softsign", "Tanh"])}[name]
            attributes["activations"] = one * d
        inputs = [g.operand(dtype, x), g.operand(dtype, (d, gates * hidden, size), "plain"), g.operand(dtype, (d, gates * hidden, hidden), "plain"),
                  None if bias is None else g.operand(dtype, (d, 2 * gates * hidden)),
                  None if lengths is None else g.give(g.numbers.integers(1, steps + 1, batch).astype("i4")),
                  None if initial is None else g.operand(dtype, state)]
        if name == "LSTM":
            inputs += [None if initial is None or g.one_in(2) else g.operand(dtype, state),
                       None if not g.one_in(4) else g.operand(dtype, (d, 3 * hidden))]
        return g.node(name, inputs, attributes, [True, g.one_in(2)] + ([g.one_in(2)] if name == "LSTM" else []))
    OPERATORS[name] = make


recurrent("RNN", 1)
recurrent("GRU", 3)
recurrent("LSTM", 4)


def loss(name):
    def make(g):
        dtype = g.dtype()
        shape = (g.pick(1, 3, 4), g.pick(2, 3, 5), *[g.pick(1, 2, 3) for _ in range(g.pick(0, 0, 1, 2))])
        target = g.numbers.integers(0, shape[1], (shape[0], *shape[2:])).astype(g.pick("i4", "i8"))
        ignore = g.maybe(g.pick(0, 1, -1))
        if ignore == -1:
            target[g.numbers.integers(0, 3, target.shape) == 0] = -1
        weights = g.maybe(1)
        outputs = g.pick(1, 2) if name == "SoftmaxCrossEntropyLoss" else 1
        return g.node(name, [g.operand(dtype, shape), g.give(target), None if weights is None else g.give(g.array(dtype, (shape[1],), "positive"))],
                      {"reduction": g.maybe(g.pick("none", "sum", "mean")), "ignore_index": ignore}, outputs)
    OPERATORS[name] = make


loss("NegativeLogLikelihoodLoss")
loss("SoftmaxCrossEntropyLoss")


# ---------------------------------------------------------------- random: dtype and shape are compared, and that numbers differ
@operator("RandomNormal")
def random_normal(g):
    return g.node("RandomNormal", [], {"shape": list(g.shape(1, 3)), "dtype": g.maybe(NUMBER[g.pick("f32", "f64", "f16")]), "mean": g.maybe(2.0)})


@operator("RandomUniform")
def random_uniform(g):
    return g.node("RandomUniform", [], {"shape": list(g.shape(1, 3)), "dtype": g.maybe(NUMBER[g.pick("f32", "f64", "f16")]), "low": g.maybe(-2.0)})


@operator("RandomNormalLike")
def random_normal_like(g):
    return g.node("RandomNormalLike", [g.operand(g.dtype(among=("f32", "f64", "i32")), g.shape())], {"dtype": NUMBER[g.pick("f32", "f64")]})


@operator("RandomUniformLike")
def random_uniform_like(g):
    return g.node("RandomUniformLike", [g.operand(g.dtype(among=("f32", "f64", "i32")), g.shape())], {"dtype": NUMBER[g.pick("f32", "f64")]})


@operator("Bernoulli")
def bernoulli(g):
    dtype = g.dtype()
    p = g.numbers.random(g.shape()).astype(TYPES[dtype])
    return g.node("Bernoulli", [g.give(p)], {"dtype": g.maybe(NUMBER[g.pick("f32", "i32", "bool")])})


@operator("Multinomial")
def multinomial(g):
    dtype = g.dtype()
    return g.node("Multinomial", [g.give(g.numbers.random((g.pick(1, 3), g.pick(1, 4))).astype(TYPES[dtype]))],
                  {"sample_size": g.maybe(g.pick(1, 5)), "dtype": g.maybe(NUMBER[g.pick("i32", "i64")])})


# ---------------------------------------------------------------- control flow
def body_value(name, array):
    return helper.make_tensor_value_info(name, NUMBER[name_of(array.dtype)], None)


@operator("If")
def if_(g):
    dtype = g.dtype(among=None) if False else g.pick("f32", "i64", "f64", "i32")
    shape = g.shape(0, 3)
    captured = g.operand(dtype, shape, constant=g.maybe(False))
    other = g.array(dtype, shape if g.one_in(2) else g.shape(0, 3))
    condition = g.give(np.array(bool(g.between(0, 1))))
    branches = []
    for name, what in (("then", g.pick("Add", "Mul", "Sub")), ("else", g.pick("constant", "Neg", "capture"))):
        output = g.new_name()
        if what == "constant":
            graph = helper.make_graph([helper.make_node("Constant", [], [output], value=tensor_proto(other, "value"))], name, [], [body_value(output, other)])
        elif what == "capture":
            graph = helper.make_graph([helper.make_node("Identity", [captured], [output])], name, [], [body_value(output, other)])
        else:
            graph = helper.make_graph([helper.make_node(what, [captured] if what == "Neg" else [captured, captured], [output])], name, [],
                                      [body_value(output, other)])
        branches.append(graph)
    g.features["dtype"] = dtype
    out = g.node("If", [condition], {"then_branch": branches[0], "else_branch": branches[1]})
    g.features["attributes"] = {}
    return out


@operator("Loop")
def loop(g):
    dtype = g.pick("f32", "i64", "f64")
    shape = g.shape(0, 2)
    trips = g.between(0, 4)
    carried, step = g.array(dtype, shape), g.give(g.array(dtype, shape))
    i, c, x, y, c2, s = (g.new_name() for _ in range(6))
    nodes = [helper.make_node("Add", [x, step], [y]), helper.make_node("Identity", [c], [c2])]
    outputs = [helper.make_tensor_value_info(c2, NUMBER["bool"], []), body_value(y, carried)]
    scanned = g.one_in(2)
    if scanned:
        nodes.append(helper.make_node("Identity", [y], [s]))
        outputs.append(body_value(s, carried))
    body = helper.make_graph(nodes, "body", [helper.make_tensor_value_info(i, NUMBER["i64"], []), helper.make_tensor_value_info(c, NUMBER["bool"], []),
                                             helper.make_tensor_value_info(x, NUMBER[dtype], shape)], outputs)
    g.features["dtype"] = dtype
    out = g.node("Loop", [g.give(np.array(trips, "i8")), g.give(np.array(not g.one_in(8))), g.give(carried)], {"body": body}, 2 if scanned else 1)
    g.features["attributes"] = {}
    return out


@operator("Scan")
def scan(g):
    if g.opset < 9:
        raise NotPossible("batched Scan")
    dtype = g.pick("f32", "i64", "f64")
    shape, steps = g.shape(0, 2), g.between(1, 4)
    state, series = g.array(dtype, shape), g.array(dtype, (steps, *shape))
    a, b, c, d = (g.new_name() for _ in range(4))
    body = helper.make_graph([helper.make_node(g.pick("Add", "Mul"), [a, b], [c]), helper.make_node("Identity", [c], [d])], "body",
                             [helper.make_tensor_value_info(a, NUMBER[dtype], shape), helper.make_tensor_value_info(b, NUMBER[dtype], shape)],
                             [helper.make_tensor_value_info(c, NUMBER[dtype], shape), helper.make_tensor_value_info(d, NUMBER[dtype], shape)])
    g.features["dtype"] = dtype
    directions = [g.pick(0, 1)] if g.one_in(2) else None
    out = g.node("Scan", [g.give(state), g.give(series)], {"body": body, "num_scan_inputs": 1, "scan_input_directions": directions,
                                                           "scan_output_directions": [g.pick(0, 1)] if g.one_in(3) else None}, 2)
    g.features["attributes"] = {"scan_input_directions": directions} if directions else {}
    return out
