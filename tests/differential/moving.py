"""Operators that move elements or work on shapes and indices."""
import numpy as np

from cases import FLOATS, NUMBER, NotPossible, name_of

OPERATORS = {}
INDEX = ("i32", "i64")


def operator(name):
    def keep(function):
        OPERATORS[name] = function
        return function
    return keep


def axis_of(g, rank, negative=True):
    if rank == 0:
        raise NotPossible("a scalar has no axis")
    return g.between(-rank if negative and g.opset >= 11 else 0, rank - 1)


def some_axes(g, rank):
    axes = sorted(g.dice.sample(range(rank), g.between(0 if g.one_in(8) else min(1, rank), rank)))
    if g.one_in(4):
        g.dice.shuffle(axes)
    return [a - rank if g.opset >= 11 and g.one_in(3) else a for a in axes]


def indices(g, dtype, shape, bound, negative):
    if bound == 0:
        return np.zeros(tuple(shape), "i8" if dtype == "i64" else "i4")
    low = -bound if negative else 0
    return g.numbers.integers(low, bound, tuple(shape)).astype({"i32": "i4", "i64": "i8"}[dtype])


@operator("Transpose")
def transpose(g):
    dtype = g.dtype()
    shape = g.shape(0, 5)
    order = list(range(len(shape)))
    g.dice.shuffle(order)
    return g.node("Transpose", [g.operand(dtype, shape)], {"perm": g.maybe(order, 1 if g.one_in(2) else 2) or None})


def factors(g, count):
    out = []
    while count > 1 and len(out) < 4 and not g.one_in(4):
        options = [d for d in range(1, min(count, 64) + 1) if count % d == 0]
        out.append(g.dice.choice(options))
        count //= out[-1]
    return out + [count]


@operator("Reshape")
def reshape(g):
    dtype = g.dtype()
    shape = g.shape(0, 4)
    count = int(np.prod(shape, dtype=np.int64))
    to = factors(g, count) if count else [0 if d == 0 else d for d in shape]
    allow = None
    if count and g.one_in(2):
        to[g.between(0, len(to) - 1)] = -1
    elif count and len(shape) > 0 and g.one_in(3):
        to = [0, -1][: len(shape)] if len(shape) > 1 else [0]
    elif g.opset >= 14 and g.one_in(3):
        allow = 1
    if count == 0 and g.opset >= 14:
        allow = 1
    return g.node("Reshape", [g.operand(dtype, shape), g.ints(to)], {"allowzero": allow})


@operator("Flatten")
def flatten(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    axis = g.between(-len(shape) if g.opset >= 11 else 0, len(shape))
    return g.node("Flatten", [g.operand(dtype, shape)], {"axis": g.maybe(axis, 1 if g.one_in(2) else 2)})


def with_axes(name, g, x, axes, attributes=None):
    """Squeeze, Unsqueeze: axes were an attribute before opset 13."""
    attributes = attributes or {}
    if g.opset < 13:
        return g.node(name, [x], {"axes": axes, **attributes})
    return g.node(name, [x, None if axes is None else g.ints(axes)], attributes)


@operator("Squeeze")
def squeeze(g):
    dtype = g.dtype()
    shape = list(g.shape(0, 3))
    for _ in range(g.between(0, 2)):
        shape.insert(g.between(0, len(shape)), 1)
    ones = [i for i, d in enumerate(shape) if d == 1]
    axes = g.dice.sample(ones, g.between(0, len(ones)))
    axes = [a - len(shape) if g.opset >= 11 and g.one_in(3) else a for a in axes]
    return with_axes("Squeeze", g, g.operand(dtype, shape), None if g.one_in(4) or not axes else axes)


@operator("Unsqueeze")
def unsqueeze(g):
    dtype = g.dtype()
    shape = g.shape(0, 4)
    more = g.between(1, 2)
    axes = g.dice.sample(range(len(shape) + more), more)
    axes = [a - len(shape) - more if g.opset >= 11 and g.one_in(3) else a for a in axes]
    return with_axes("Unsqueeze", g, g.operand(dtype, shape), axes)


@operator("Concat")
def concat(g):
    dtype = g.dtype()
    shape = list(g.shape(1, 4))
    axis = axis_of(g, len(shape))
    parts = []
    for _ in range(g.pick(1, 2, 2, 3, 5)):
        part = list(shape)
        if not g.one_in(3):
            part[axis] = g.pick(0, 1, 2, 3, 5) if not g.pool else g.pick(1, 2, 3)
        parts.append(g.operand(dtype, part))
    return g.node("Concat", parts, {"axis": axis})


@operator("Split")
def split(g):
    dtype = g.dtype()
    shape = list(g.shape(1, 4))
    axis = axis_of(g, len(shape))
    parts = g.between(1, 4)
    given = g.one_in(2)
    if given:
        sizes = [g.between(0 if g.one_in(6) else 1, 4) for _ in range(parts)]
        shape[axis] = sum(sizes)
    elif g.opset < 18:
        shape[axis] = parts * g.between(1, 3)
    else:
        shape[axis] = max(shape[axis], parts)
        if shape[axis] - (parts - 1) * -(-shape[axis] // parts) < 0:
            shape[axis] = parts * 2
    x = g.operand(dtype, shape)
    attributes = {"axis": g.maybe(axis, 1 if axis not in (0,) else 2)}
    if given:
        if g.opset < 13:
            return g.node("Split", [x], {**attributes, "split": sizes}, parts)
        return g.node("Split", [x, g.ints(sizes)], attributes, parts)
    if g.opset >= 18:
        attributes["num_outputs"] = parts
    return g.node("Split", [x], attributes, parts)


@operator("Slice")
def slice_(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    axes = g.dice.sample(range(len(shape)), g.between(1, len(shape)))
    starts, ends, steps = [], [], []
    for a in axes:
        n = shape[a]
        ends_of_range = [-(2**63), -(2**31), 2**31 - 1, 2**63 - 1, -n - 1, n + 1]
        starts.append(g.between(-n - 1, n) if not g.one_in(8) else g.dice.choice(ends_of_range))
        ends.append(g.between(-n - 1, n + 1) if not g.one_in(4) else g.dice.choice(ends_of_range))
        steps.append(g.pick(1, 1, 1, 2, 3, -1, -2, 2**31 - 1, -(2**31)) if g.opset >= 10 else 1)
    if g.opset < 10:
        return g.node("Slice", [g.operand(dtype, shape)], {"starts": starts, "ends": ends, "axes": axes})
    whole = axes == list(range(len(axes)))
    axes = [a - len(shape) if g.opset >= 11 and g.one_in(3) else a for a in axes]
    index = g.pick("i64", "i32")
    if index == "i32":
        starts, ends, steps = [[int(np.clip(v, -(2**31), 2**31 - 1)) for v in list_] for list_ in (starts, ends, steps)]
    return g.node("Slice", [g.operand(dtype, shape), g.ints(starts, dtype=index), g.ints(ends, dtype=index),
                            None if whole and g.one_in(2) and all(s == 1 for s in steps) else g.ints(axes, dtype=index),
                            None if all(s == 1 for s in steps) else g.ints(steps, dtype=index)])


@operator("Gather")
def gather(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    axis = axis_of(g, len(shape))
    if shape[axis] == 0:
        raise NotPossible("nothing to gather")
    index = g.pick(*INDEX)
    return g.node("Gather", [g.operand(dtype, shape), g.give(indices(g, index, g.pick((), (1,), (3,), (2, 2), (5,), (0,) if not g.pool else (2,)),
                                                                     shape[axis], g.opset >= 11))], {"axis": g.maybe(axis, 1 if axis else 2)})


@operator("GatherElements")
def gather_elements(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    axis = axis_of(g, len(shape))
    if shape[axis] == 0:
        raise NotPossible("nothing to gather")
    to = [g.between(1, max(d, 1)) if g.one_in(2) else d for d in shape]
    to[axis] = g.between(1, 6)
    return g.node("GatherElements", [g.operand(dtype, shape), g.give(indices(g, g.pick(*INDEX), to, shape[axis], True))],
                  {"axis": g.maybe(axis, 1 if axis else 2)})


def nd_indices(g, shape, batch, depth):
    lead = list(shape[:batch]) + [g.between(1, 4) for _ in range(g.between(0 if batch else 1, 2))]
    if any(d == 0 for d in shape):
        raise NotPossible("nothing to index")
    low = [-d if g.opset >= 11 else 0 for d in shape[batch:batch + depth]]
    parts = [g.numbers.integers(low[i], shape[batch + i], tuple(lead)) for i in range(depth)]
    return np.stack([np.asarray(p) for p in parts], axis=-1).astype("i8")


@operator("GatherND")
def gather_nd(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    batch = g.between(0, min(1, len(shape) - 1)) if g.opset >= 12 else 0
    depth = g.between(1, len(shape) - batch)
    return g.node("GatherND", [g.operand(dtype, shape), g.give(nd_indices(g, shape, batch, depth))], {"batch_dims": batch or None})


def reductions(g, op):
    if g.opset >= 18:
        return g.pick(None, "none", "add", "mul", "max", "min")
    return g.pick(None, "none", "add", "mul") if g.opset >= 16 else None


def scatter_elements(op):
    def make(g):
        dtype = g.dtype()
        shape = g.shape(1, 4)
        axis = axis_of(g, len(shape))
        if 0 in shape:
            raise NotPossible("nothing to scatter into")
        to = [g.between(1, d) for d in shape]
        reduction = reductions(g, op) if op == "ScatterElements" else None
        index = indices(g, g.pick(*INDEX), to, shape[axis], g.opset >= 11)
        if reduction in (None, "none"):  # which of two updates to one element wins is open: none twice
            line = np.stack([g.numbers.permutation(shape[axis])[:to[axis]] for _ in range(int(np.prod(to)) // max(to[axis], 1))])
            index = np.moveaxis(line.reshape([to[i] for i in range(len(to)) if i != axis % len(to)] + [to[axis]]), -1, axis).astype(index.dtype)
        return g.node(op, [g.operand(dtype, shape), g.give(index), g.operand(dtype, to)],
                      {"axis": g.maybe(axis, 1 if axis else 2), "reduction": reduction})
    OPERATORS[op] = make


scatter_elements("ScatterElements")


@operator("Scatter")
def scatter(g):
    g.opset = g.between(9, 10)
    g.begin("Scatter")
    inner = OPERATORS["ScatterElements"]
    kept = g.node
    g.node = lambda op, *rest, **named: kept("Scatter", *rest, **named)
    try:
        return inner(g)
    finally:
        del g.node


@operator("ScatterND")
def scatter_nd(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    depth = g.between(1, len(shape))
    index = nd_indices(g, shape, 0, depth)
    reduction = reductions(g, "ScatterND")
    if reduction in (None, "none"):
        flat = g.numbers.permutation(int(np.prod(shape[:depth])))[:g.between(1, 4)]
        index = np.stack(np.unravel_index(flat, shape[:depth]), axis=-1).astype("i8")
    return g.node("ScatterND", [g.operand(dtype, shape), g.give(index), g.operand(dtype, list(index.shape[:-1]) + list(shape[depth:]))],
                  {"reduction": reduction})


@operator("Expand")
def expand(g):
    dtype = g.dtype()
    full = g.shape(0, 4)
    x, to = g.partner(full), full
    if g.one_in(3):
        to = g.partner(full)
        x = full if g.one_in(2) else x
    return g.node("Expand", [g.operand(dtype, x), g.ints(list(to))])


@operator("Tile")
def tile(g):
    dtype = g.dtype()
    shape = g.shape(1, 4, 512)
    return g.node("Tile", [g.operand(dtype, shape), g.ints([g.pick(1, 1, 2, 3, 0 if not g.pool else 1) for _ in shape])])


@operator("Pad")
def pad(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    mode = g.pick(None, "constant", "reflect", "edge") if g.opset < 19 else g.pick(None, "constant", "reflect", "edge", "wrap")
    if mode in ("reflect", "edge", "wrap") and 0 in shape:
        raise NotPossible("nothing to repeat")
    rank = len(shape)
    axes = list(range(rank))
    if g.opset >= 18 and g.one_in(3):
        axes = g.dice.sample(axes, g.between(1, rank))
    pads = [0] * (2 * len(axes))
    for i, a in enumerate(axes):
        for side in (0, 1):
            most = {"reflect": shape[a] - 1, "wrap": shape[a]}.get(mode, 3)
            pads[i + side * len(axes)] = g.between(0, min(most, 4))
    if mode in (None, "constant") and g.one_in(4):
        i = g.between(0, len(axes) - 1)
        pads[i] = -g.between(0, max(0, shape[axes[i]] - 1))
    if g.opset < 11:
        return g.node("Pad", [g.operand(dtype, shape)], {"pads": pads, "mode": mode, "value": g.maybe(1.5)})
    value = g.maybe(g.array(dtype, ())) if mode in (None, "constant") else None
    return g.node("Pad", [g.operand(dtype, shape), g.ints(pads), None if value is None else g.give(value),
                          g.ints([a - rank if g.one_in(3) else a for a in axes]) if len(axes) < rank or (g.opset >= 18 and g.one_in(4)) else None],
                  {"mode": mode}) if len(axes) == rank or g.opset >= 18 else None


@operator("DepthToSpace")
def depth_to_space(g):
    dtype = g.dtype()
    b = g.pick(1, 2, 2, 3)
    return g.node("DepthToSpace", [g.operand(dtype, (g.pick(1, 2), b * b * g.pick(1, 2, 3), g.pick(1, 2, 5), g.pick(1, 3, 4)))],
                  {"blocksize": b, "mode": g.maybe(g.pick("DCR", "CRD")) if g.opset >= 11 else None})


@operator("SpaceToDepth")
def space_to_depth(g):
    dtype = g.dtype()
    b = g.pick(1, 2, 2, 3)
    return g.node("SpaceToDepth", [g.operand(dtype, (g.pick(1, 2), g.pick(1, 2, 3), b * g.pick(1, 2, 5), b * g.pick(1, 3, 4)))], {"blocksize": b})


@operator("Shape")
def shape_(g):
    dtype = g.dtype()
    shape = g.shape(0, 5)
    attributes = {}
    if g.opset >= 15:
        attributes = {"start": g.maybe(g.between(-len(shape) - 1, len(shape) + 1)), "end": g.maybe(g.between(-len(shape) - 1, len(shape) + 1))}
    return g.node("Shape", [g.operand(dtype, shape)], attributes)


@operator("Size")
def size(g):
    dtype = g.dtype()
    return g.node("Size", [g.operand(dtype, g.shape())])


@operator("ConstantOfShape")
def constant_of_shape(g):
    from cases import tensor_proto
    dtype = g.dice.choice(g.allowed(0, outputs=True))
    value = g.maybe(g.array(dtype, (1,)), 1 if g.one_in(2) else 2)
    return g.node("ConstantOfShape", [g.ints(list(g.shape()))], {"value": None if value is None else tensor_proto(value, "value")})


@operator("Range")
def range_(g):
    dtype = g.dtype()
    if dtype in FLOATS:
        start, delta, count = g.pick(0.0, 1.5, -2.0), g.pick(1.0, 0.5, -0.25, 0.1), g.between(0, 9)
        limit = start + delta * count + (0.03 * delta if g.one_in(2) else 0)
    else:
        start, delta = g.between(-9, 9), g.pick(1, 2, 3, -1, -4)
        limit = start + delta * g.between(-1, 9) + g.pick(0, 1, -1)
    type_ = g.array(dtype, ()).dtype
    return g.node("Range", [g.give(np.array(v, type_)) for v in (start, limit, delta)])


@operator("EyeLike")
def eye_like(g):
    dtype = g.dtype()
    return g.node("EyeLike", [g.operand(dtype, (g.extent(), g.extent()))],
                  {"k": g.maybe(g.between(-4, 4)), "dtype": g.maybe(NUMBER[g.dice.choice(g.allowed(0, outputs=True))])})


@operator("OneHot")
def one_hot(g):
    dtype, index, depth_type = g.dtype(2), g.dtype(0), g.dtype(1)
    depth = g.between(1, 7)
    shape = g.shape(0, 3, 256)
    low = 0 if index.startswith("u") or not g.one_in(2) else -depth
    content = g.numbers.integers(low, depth + (2 if g.one_in(3) else 0), shape)
    ones = g.array(depth_type, ()).dtype
    return g.node("OneHot", [g.give(np.asarray(content).astype(g.array(index, ()).dtype)),
                             g.give(np.array(depth, ones) if g.opset < 11 or g.one_in(2) else np.array([depth], ones)),
                             g.operand(dtype, (2,))], {"axis": g.maybe(g.between(-len(shape) - 1 if g.opset >= 11 else -1, len(shape)))})


@operator("NonZero")
def non_zero(g):
    dtype = g.dtype()
    x = g.array(dtype, g.shape(1, 4))
    x[g.numbers.integers(0, 2, x.shape).astype(bool)] = 0
    return g.node("NonZero", [g.give(x)])


@operator("Compress")
def compress(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    axis = g.maybe(axis_of(g, len(shape)), 1 if g.one_in(2) else 2)
    count = int(np.prod(shape)) if axis is None else shape[axis]
    return g.node("Compress", [g.operand(dtype, shape), g.give(g.array("bool", (g.between(min(1, count), max(count, 0)),)))], {"axis": axis})


@operator("Unique")
def unique(g):
    dtype = g.dtype()
    shape = g.shape(1, 3, 64)
    if 0 in shape:
        raise NotPossible("empty")
    x = g.numbers.integers(0, 4, shape).astype(g.array(dtype, ()).dtype)
    axis = g.maybe(axis_of(g, len(shape)))
    return g.node("Unique", [g.give(x)], {"axis": axis, "sorted": g.maybe(g.pick(0, 1))}, [True] + [g.one_in(2) for _ in range(3)])


@operator("ReverseSequence")
def reverse_sequence(g):
    dtype = g.dtype()
    shape = g.shape(2, 4)
    if 0 in shape:
        raise NotPossible("empty")
    time = g.pick(0, 1)
    lengths = g.numbers.integers(1, shape[time] + 1, (shape[1 - time],)).astype("i8")
    return g.node("ReverseSequence", [g.operand(dtype, shape), g.give(lengths)], {"time_axis": g.maybe(time, 1 if time else 2),
                                                                                  "batch_axis": g.maybe(1 - time, 1 if time else 2)})


@operator("Trilu")
def trilu(g):
    dtype = g.dtype()
    k = g.maybe(g.between(-5, 5))
    return g.node("Trilu", [g.operand(dtype, g.shape(2, 4)), None if k is None else g.give(np.array(k, "i8"))], {"upper": g.maybe(g.pick(0, 1))})


@operator("CumSum")
def cum_sum(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    axis = g.between(-len(shape), len(shape) - 1)
    return g.node("CumSum", [g.operand(dtype, shape), g.give(np.array(axis, g.pick("i4", "i8")))],
                  {"exclusive": g.maybe(g.pick(0, 1)), "reverse": g.maybe(g.pick(0, 1))})


@operator("TopK")
def top_k(g):
    dtype = g.dtype()
    shape = g.shape(1, 4)
    axis = axis_of(g, len(shape))
    k = g.between(0 if g.one_in(10) else min(1, shape[axis]), shape[axis])
    x = g.array(dtype, shape, g.pick("distinct", "any"))
    if g.one_in(3):
        x = g.numbers.integers(0, 3, shape).astype(x.dtype)
    attributes = {"axis": g.maybe(axis, 1 if axis not in (-1, len(shape) - 1) else 2)}
    if g.opset < 10:
        return g.node("TopK", [g.give(x)], {**attributes, "k": k}, 2)
    if g.opset >= 11:
        attributes["largest"] = g.maybe(g.pick(0, 1))
    return g.node("TopK", [g.give(x), g.ints([k])], attributes, 2)


def arg(name):
    def make(g):
        dtype = g.dtype()
        shape = g.shape(1, 4)
        axis = axis_of(g, len(shape))
        if shape[axis] == 0:
            raise NotPossible("empty")
        x = g.give(g.array(dtype, shape, g.pick("distinct", "any"))) if not g.pool else g.operand(dtype, shape)
        if g.one_in(3) and not g.pool:
            x = g.give(g.numbers.integers(0, 3, shape).astype(g.array(dtype, ()).dtype))
        return g.node(name, [x], {"axis": g.maybe(axis, 1 if axis else 2), "keepdims": g.maybe(g.pick(0, 1)),
                                  "select_last_index": g.maybe(g.pick(0, 1)) if g.opset >= 12 else None})
    OPERATORS[name] = make


arg("ArgMax")
arg("ArgMin")


@operator("NonMaxSuppression")
def non_max_suppression(g):
    batches, classes, boxes = g.pick(1, 2), g.pick(1, 2, 3), g.pick(1, 3, 6, 10)
    centre = g.maybe(g.pick(0, 1))
    corners = g.numbers.random((batches, boxes, 4)).astype("f4")
    if not centre:
        corners[..., 2:] = corners[..., :2] + corners[..., 2:] + 0.05
        if g.one_in(3):
            corners = corners[..., [2, 3, 0, 1]]
    scores = g.numbers.permutation(batches * classes * boxes).reshape(batches, classes, boxes).astype("f4") / 32
    most = g.between(0, boxes + 1)
    overlap, least = g.maybe(g.pick(0.0, 0.3, 0.5, 1.0)), g.maybe(g.pick(0.0, 0.5, 1.0))
    return g.node("NonMaxSuppression", [g.give(corners), g.give(scores), g.ints([most], scalar=False),
                                        None if overlap is None else g.give(np.array([overlap], "f4")),
                                        None if least is None else g.give(np.array([least], "f4"))], {"center_point_box": centre})
