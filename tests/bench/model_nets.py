"""Whole nets as exporters write them to ONNX, with random weights, for models.py: name -> function(batch) -> (model, inputs by name)."""
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper, shape_inference


class Net:
    """A graph that grows by an operator at a time; values are names."""

    def __init__(self, batch):
        self.batch, self.random, self.nodes, self.weights, self.inputs, self.channels, self.symbols = (
            batch, np.random.default_rng(7), [], [], [], {}, [])

    def value(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape, scale=None):
        fan = math.prod(shape[1:]) if len(shape) > 1 else 16
        return self.value((self.random.standard_normal(shape) * (scale or 1.0 / math.sqrt(fan))).astype(np.float32))

    def numbers(self, *numbers):
        return self.value(np.array(numbers, np.int64))

    def number(self, number):
        return self.value(np.array(number, np.float32))

    def input(self, name, *shape, below=None):
        """Floats, or whole numbers below a bound."""
        shape = (self.batch, *shape)
        array = self.random.standard_normal(shape).astype(np.float32) if below is None else self.random.integers(0, below, shape)
        self.inputs.append((name, array))
        if len(shape) > 2:
            self.channels[name] = shape[1]
        return name

    def op(self, kind, *operands, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(operands), names, **attributes))
        if operands and operands[0] in self.channels and kind not in ("Reshape", "Transpose", "Flatten", "Concat", "Split"):
            self.channels[names[0]] = self.channels[operands[0]]
        return names[0] if outputs == 1 else names

    def conv(self, x, outputs, kernel=1, stride=1, groups=1, dilation=1, pad=None, spatial=2):
        pad = (kernel - 1) * dilation // 2 if pad is None else pad
        w = self.weight(outputs, self.channels[x] // groups, *[kernel] * spatial)
        y = self.op("Conv", x, w, self.weight(outputs, scale=0.1), kernel_shape=[kernel] * spatial, strides=[stride] * spatial, group=groups,
                    dilations=[dilation] * spatial, pads=[pad] * 2 * spatial)
        self.channels[y] = outputs
        return y

    def relu(self, x):
        return self.op("Relu", x)

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def norm(self, x):
        c = self.channels[x]
        ones = [self.value((1 + 0.1 * self.random.standard_normal(c)).astype(np.float32)) for _ in range(2)]
        return self.op("BatchNormalization", x, ones[0], self.weight(c, scale=0.1), self.weight(c, scale=0.1),
                       self.value(np.full(c, 1.1, np.float32)))

    def concat(self, *values):
        y = self.op("Concat", *values, axis=1)
        self.channels[y] = sum(self.channels[v] for v in values)
        return y

    def split(self, x, parts):
        each = self.channels[x] // parts
        names = self.op("Split", x, self.numbers(*[each] * parts), outputs=parts, axis=1)
        self.channels.update({n: each for n in names})
        return names

    def pool(self, x, kernel=3, stride=2, pad=1, kind="MaxPool"):
        return self.op(kind, x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def gate(self, x, squeezed, sigmoid="Sigmoid"):
        s = self.op("GlobalAveragePool", x)
        s = self.conv(self.relu(self.conv(s, squeezed)), self.channels[x])
        return self.op("Mul", x, self.op(sigmoid, s))

    def head(self, x, classes=1000):
        flat = self.op("Flatten", self.op("GlobalAveragePool", x))
        return self.op("Gemm", flat, self.weight(classes, self.channels[x]), self.weight(classes, scale=0.1), transB=1)

    def linear(self, x, inputs, outputs, bias=True):
        y = self.op("MatMul", x, self.weight(inputs, outputs, scale=1 / math.sqrt(inputs)))
        return self.op("Add", y, self.weight(outputs, scale=0.1)) if bias else y

    def layer_norm(self, x, width):
        return self.op("LayerNormalization", x, self.weight(width, scale=1), self.weight(width, scale=0.1), axis=-1)

    def rms_norm(self, x, width):
        mean = self.op("ReduceMean", self.op("Pow", x, self.number(2)), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.number(1e-5)))
        return self.op("Mul", self.op("Mul", x, self.op("Reciprocal", root)), self.weight(width, scale=1))

    def gelu(self, x, tanh=False):
        if tanh:
            cube = self.op("Mul", self.op("Pow", x, self.number(3)), self.number(0.044715))
            inner = self.op("Tanh", self.op("Mul", self.op("Add", x, cube), self.number(math.sqrt(2 / math.pi))))
        else:
            inner = self.op("Erf", self.op("Div", x, self.number(math.sqrt(2))))
        return self.op("Mul", self.op("Mul", x, self.op("Add", inner, self.number(1))), self.number(0.5))

    def heads(self, x, tokens, heads, width, axes):
        return self.op("Transpose", self.op("Reshape", x, self.numbers(self.batch, tokens, heads, width)), perm=axes)

    def attention(self, x, tokens, width, heads, mask=None, rotate=None):
        each = width // heads
        q, k, v = (self.linear(x, width, width) for _ in range(3))
        q, v = (self.heads(y, tokens, heads, each, [0, 2, 1, 3]) for y in (q, v))
        k = self.heads(k, tokens, heads, each, [0, 2, 1, 3])
        if rotate:
            q, k = rotate(q), rotate(k)
        scores = self.op("Mul", self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2])), self.number(1 / math.sqrt(each)))
        scores = self.op("Add", scores, mask) if mask else scores
        mixed = self.op("Transpose", self.op("MatMul", self.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.linear(self.op("Reshape", mixed, self.numbers(self.batch, tokens, width)), width, width)

    def made(self, *outputs):
        kinds = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
        inputs = [helper.make_tensor_value_info(name, kinds[a.dtype.name], a.shape) for name, a in self.inputs]
        ends = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs]
        graph = helper.make_graph(self.nodes, "net", inputs, ends, self.weights)
        model = shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), strict_mode=True)
        del model.graph.value_info[:]
        return model, dict(self.inputs)


def resnet(blocks, bottleneck, groups=1, width=64, dilate=False):
    def make(net, x):
        x = net.pool(net.relu(net.conv(x, 64, 7, 2)))
        for stage, count in enumerate(blocks):
            inner = width << stage
            out = inner * (4 if bottleneck and groups == 1 else 2 if bottleneck else 1)
            for i in range(count):
                spread = 1 << (stage - 1) if dilate and stage > 1 else 1
                stride = 2 if i == 0 and stage > 0 and spread == 1 else 1
                y = net.relu(net.conv(x, inner)) if bottleneck else x
                y = net.relu(net.conv(y, inner, 3, stride, groups, spread))
                y = net.conv(y, out) if bottleneck else net.conv(y, out, 3, 1, 1, spread)
                same = net.channels[x] == out and stride == 1
                x = net.relu(net.op("Add", y, x if same else net.conv(x, out, 1, stride)))
                net.channels[x] = out
        return x
    return make


def classifier(make, size=224):
    def build(batch):
        net = Net(batch)
        return net.made(net.head(make(net, net.input("x", 3, size, size))))
    return build


def mobilenet_v2(net, x):
    x = net.op("Clip", net.conv(x, 32, 3, 2), net.number(0), net.number(6))
    for t, c, n, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(n):
            inner, y, stride = net.channels[x] * t, x, s if i == 0 else 1
            for step in ((1, 1, 1), (3, stride, inner)) if t > 1 else ((3, stride, inner),):
                y = net.op("Clip", net.conv(y, inner, step[0], step[1], step[2]), net.number(0), net.number(6))
            y = net.conv(y, c)
            x = net.op("Add", y, x) if stride == 1 and net.channels[x] == c else y
            net.channels[x] = c
    return net.op("Clip", net.conv(x, 1280), net.number(0), net.number(6))


def mobilenet_v3(net, x):
    x = net.op("HardSwish", net.conv(x, 16, 3, 2))
    for k, inner, c, gated, act, s in ((3, 16, 16, 0, "Relu", 1), (3, 64, 24, 0, "Relu", 2), (3, 72, 24, 0, "Relu", 1), (5, 72, 40, 1, "Relu", 2),
                                       (5, 120, 40, 1, "Relu", 1), (3, 240, 80, 0, "HardSwish", 2), (3, 200, 80, 0, "HardSwish", 1),
                                       (3, 480, 112, 1, "HardSwish", 1), (5, 672, 160, 1, "HardSwish", 2), (5, 960, 160, 1, "HardSwish", 1)):
        y = net.op(act, net.conv(x, inner))
        y = net.op(act, net.conv(y, inner, k, s, inner))
        y = net.gate(y, inner // 4, "HardSigmoid") if gated else y
        net.channels[y] = inner
        y = net.conv(y, c)
        x = net.op("Add", y, x) if s == 1 and net.channels[x] == c else y
        net.channels[x] = c
    return net.op("HardSwish", net.conv(x, 960))


def efficientnet(net, x):
    x = net.silu(net.conv(x, 32, 3, 2))
    for t, c, n, s, k in ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for i in range(n):
            before, stride = net.channels[x], s if i == 0 else 1
            y = net.silu(net.conv(x, before * t)) if t > 1 else x
            y = net.silu(net.conv(y, before * t, k, stride, before * t))
            y = net.conv(net.gate(y, max(1, before // 4)), c)
            x = net.op("Add", y, x) if stride == 1 and before == c else y
            net.channels[x] = c
    return net.silu(net.conv(x, 1280))


def densenet(net, x):
    x = net.pool(net.relu(net.norm(net.conv(x, 64, 7, 2))))
    for stage, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            y = net.conv(net.relu(net.norm(x)), 128)
            x = net.concat(x, net.conv(net.relu(net.norm(y)), 32, 3))
        if stage < 3:
            x = net.pool(net.conv(net.relu(net.norm(x)), net.channels[x] // 2), 2, 2, 0, "AveragePool")
    return net.relu(net.norm(x))


def squeezenet(net, x):
    x = net.pool(net.relu(net.conv(x, 64, 3, 2)), pad=0)
    for squeezed, each, pooled in ((16, 64, 0), (16, 64, 1), (32, 128, 0), (32, 128, 1), (48, 192, 0), (48, 192, 0), (64, 256, 0), (64, 256, 0)):
        s = net.relu(net.conv(x, squeezed))
        x = net.concat(net.relu(net.conv(s, each)), net.relu(net.conv(s, each, 3)))
        x = net.pool(x, pad=0) if pooled else x
    return net.relu(net.conv(x, 512))


def shufflenet(net, x):
    x = net.pool(net.relu(net.conv(x, 24, 3, 2)))
    size = 56
    for c, n in ((116, 4), (232, 8), (464, 4)):
        size //= 2
        for i in range(n):
            half = c // 2
            if i == 0:
                a = net.relu(net.conv(net.conv(x, net.channels[x], 3, 2, net.channels[x]), half))
                b = x
            else:
                a, b = net.split(x, 2)
            b = net.relu(net.conv(b, half))
            b = net.relu(net.conv(net.conv(b, half, 3, 2 if i == 0 else 1, half), half))
            x = net.op("Reshape", net.concat(a, b), net.numbers(net.batch, 2, half, size, size))
            x = net.op("Reshape", net.op("Transpose", x, perm=[0, 2, 1, 3, 4]), net.numbers(net.batch, c, size, size))
            net.channels[x] = c
    return net.relu(net.conv(x, 1024))


def convnext(net, x):
    def along(y, back):
        return net.op("Transpose", y, perm=[0, 3, 1, 2] if back else [0, 2, 3, 1])
    x = net.conv(x, 96, 4, 4, pad=0)
    for stage, count in enumerate((3, 3, 9, 3)):
        width = 96 << stage
        if stage > 0:
            x = along(net.layer_norm(along(x, False), width // 2), True)
            net.channels[x] = width // 2
            x = net.conv(x, width, 2, 2, pad=0)
        for _ in range(count):
            y = net.layer_norm(along(net.conv(x, width, 7, groups=width), False), width)
            y = net.linear(net.gelu(net.linear(y, width, 4 * width)), 4 * width, width)
            x = net.op("Add", x, along(net.op("Mul", y, net.weight(width, scale=1)), True))
            net.channels[x] = width
    return x


def unet(batch):
    net = Net(batch)
    x, kept = net.input("x", 3, 128, 128), []
    def twice(y, width):
        return net.relu(net.conv(net.relu(net.conv(y, width, 3)), width, 3))
    for width in (32, 64, 128):
        x = twice(x, width)
        kept.append(x)
        x = net.pool(x, 2, 2, 0)
    x = twice(x, 256)
    for width in (128, 64, 32):
        y = net.op("ConvTranspose", x, net.weight(net.channels[x], width, 2, 2), net.weight(width, scale=0.1), kernel_shape=[2, 2], strides=[2, 2])
        net.channels[y] = width
        x = twice(net.concat(kept.pop(), y), width)
    return net.made(net.op("Sigmoid", net.conv(x, 2)))


def deeplab(batch):
    net = Net(batch)
    x = resnet((2, 2, 2, 2), False, dilate=True)(net, net.input("x", 3, 224, 224))
    parts = [net.relu(net.conv(x, 128))] + [net.relu(net.conv(x, 128, 3, dilation=d)) for d in (6, 12, 18)]
    whole = net.op("Expand", net.relu(net.conv(net.op("GlobalAveragePool", x), 128)), net.numbers(batch, 128, 28, 28))
    net.channels[whole] = 128
    x = net.conv(net.relu(net.conv(net.concat(*parts, whole), 128)), 21)
    return net.made(net.op("Resize", x, "", net.value(np.array([1, 1, 8, 8], np.float32)), mode="linear", coordinate_transformation_mode="half_pixel"))


def detector(batch):
    net = Net(batch)
    def step(y, width, kernel=3, stride=1):
        return net.silu(net.conv(y, width, kernel, stride))
    def stage(y, width, count):
        a, b = net.split(step(y, width, 1), 2)
        parts = [a, b]
        for _ in range(count):
            z = net.op("Add", parts[-1], step(step(parts[-1], width // 2), width // 2))
            net.channels[z] = width // 2
            parts.append(z)
        return step(net.concat(*parts), width, 1)
    x = step(step(net.input("x", 3, 320, 320), 16, 3, 2), 32, 3, 2)
    x = stage(x, 32, 1)
    middle = stage(step(x, 64, 3, 2), 64, 2)
    deep = stage(step(middle, 128, 3, 2), 128, 2)
    last = step(stage(step(deep, 256, 3, 2), 256, 1), 128, 1)
    pooled = [last]
    for _ in range(3):
        pooled.append(net.pool(pooled[-1], 5, 1, 2))
    last, ends = step(net.concat(*pooled), 256, 1), []
    for skip, width in ((deep, 128), (middle, 64)):
        ends.append(last)
        up = net.op("Resize", last, "", net.value(np.array([1, 1, 2, 2], np.float32)), mode="nearest", coordinate_transformation_mode="asymmetric",
                    nearest_mode="floor")
        net.channels[up] = net.channels[last]
        last = stage(net.concat(up, skip), width, 1)
    return net.made(*[net.conv(step(e, 64), 84) for e in [*ends, last]])


def super_resolution(batch):
    net = Net(batch)
    x = net.relu(net.conv(net.input("x", 1, 112, 112), 64, 5))
    x = net.conv(net.relu(net.conv(net.relu(net.conv(x, 64, 3)), 32, 3)), 9, 3)
    return net.made(net.op("DepthToSpace", x, blocksize=3))


def encoder(width, heads, layers, tokens, words):
    def build(batch):
        net = Net(batch)
        x = net.op("Gather", net.weight(words, width, scale=1), net.input("tokens", tokens, below=words))
        x = net.layer_norm(net.op("Add", x, net.weight(1, tokens, width, scale=0.1)), width)
        for _ in range(layers):
            x = net.layer_norm(net.op("Add", x, net.attention(x, tokens, width, heads)), width)
            x = net.layer_norm(net.op("Add", x, net.linear(net.gelu(net.linear(x, width, 4 * width)), 4 * width, width)), width)
        return net.made(x)
    return build


def gpt(batch, width=512, heads=8, layers=6, tokens=128, words=16384):
    net = Net(batch)
    mask = net.value(np.triu(np.full((tokens, tokens), -1e9, np.float32), 1))
    x = net.op("Add", net.op("Gather", net.weight(words, width, scale=1), net.input("tokens", tokens, below=words)), net.weight(1, tokens, width))
    for _ in range(layers):
        x = net.op("Add", x, net.attention(net.layer_norm(x, width), tokens, width, heads, mask))
        x = net.op("Add", x, net.linear(net.gelu(net.linear(net.layer_norm(x, width), width, 4 * width), True), 4 * width, width))
    return net.made(net.linear(net.layer_norm(x, width), width, words, False))


def llama(batch, width=512, heads=8, layers=6, tokens=128, words=8192):
    net = Net(batch)
    each = width // heads
    angles = np.outer(np.arange(tokens), 1e4 ** (-np.arange(0, each, 2) / each))
    cos, sin = (net.value(np.tile(f(angles), 2).astype(np.float32)) for f in (np.cos, np.sin))
    mask = net.value(np.triu(np.full((tokens, tokens), -1e9, np.float32), 1))
    def rotate(y):
        a, b = net.op("Split", y, net.numbers(each // 2, each // 2), outputs=2, axis=-1)
        turned = net.op("Concat", net.op("Neg", b), a, axis=-1)
        return net.op("Add", net.op("Mul", y, cos), net.op("Mul", turned, sin))
    x = net.op("Gather", net.weight(words, width, scale=1), net.input("tokens", tokens, below=words))
    for _ in range(layers):
        x = net.op("Add", x, net.attention(net.rms_norm(x, width), tokens, width, heads, mask, rotate))
        y = net.rms_norm(x, width)
        y = net.op("Mul", net.silu(net.linear(y, width, 1376, False)), net.linear(y, width, 1376, False))
        x = net.op("Add", x, net.linear(y, 1376, width, False))
    return net.made(net.linear(net.rms_norm(x, width), width, words, False))


def vit(batch, width=384, heads=6, layers=12):
    net = Net(batch)
    x = net.op("Reshape", net.conv(net.input("x", 3, 224, 224), width, 16, 16, pad=0), net.numbers(batch, width, 196))
    x = net.op("Concat", net.op("Expand", net.weight(1, 1, width), net.numbers(batch, 1, width)), net.op("Transpose", x, perm=[0, 2, 1]), axis=1)
    x = net.op("Add", x, net.weight(1, 197, width))
    for _ in range(layers):
        x = net.op("Add", x, net.attention(net.layer_norm(x, width), 197, width, heads))
        x = net.op("Add", x, net.linear(net.gelu(net.linear(net.layer_norm(x, width), width, 4 * width)), 4 * width, width))
    return net.made(net.linear(net.op("Gather", net.layer_norm(x, width), net.numbers(0), axis=1), width, 1000))


def mixer(batch, width=512, patches=196, layers=8):
    net = Net(batch)
    x = net.op("Reshape", net.conv(net.input("x", 3, 224, 224), width, 16, 16, pad=0), net.numbers(batch, width, patches))
    x = net.op("Transpose", x, perm=[0, 2, 1])
    for _ in range(layers):
        y = net.op("Transpose", net.layer_norm(x, width), perm=[0, 2, 1])
        y = net.linear(net.gelu(net.linear(y, patches, 256)), 256, patches)
        x = net.op("Add", x, net.op("Transpose", y, perm=[0, 2, 1]))
        x = net.op("Add", x, net.linear(net.gelu(net.linear(net.layer_norm(x, width), width, 2048)), 2048, width))
    return net.made(net.linear(net.op("ReduceMean", x, axes=[1], keepdims=0), width, 1000))


def recurrent(kind, hidden, gates):
    def build(batch):
        net = Net(batch)
        x = net.op("Transpose", net.op("Gather", net.weight(10000, 256, scale=1), net.input("tokens", 64, below=10000)), perm=[1, 0, 2])
        width = 256
        for _ in range(2):
            more = {"linear_before_reset": 1} if kind == "GRU" else {}
            y = net.op(kind, x, net.weight(2, gates * hidden, width, scale=0.06), net.weight(2, gates * hidden, hidden, scale=0.06),
                       net.weight(2, 2 * gates * hidden, scale=0.1), hidden_size=hidden, direction="bidirectional", **more)
            x = net.op("Reshape", net.op("Transpose", y, perm=[0, 2, 1, 3]), net.numbers(64, batch, 2 * hidden))
            width = 2 * hidden
        return net.made(net.linear(x, width, 45))
    return build


def conformer(batch, width=256, heads=4, layers=6, frames=200):
    """Speech: attention beside depthwise convolutions along time, gated."""
    net = Net(batch)
    x = net.linear(net.input("x", frames, 80), 80, width)
    net.channels.clear()
    for _ in range(layers):
        x = net.op("Add", x, net.linear(net.silu(net.linear(net.layer_norm(x, width), width, 4 * width)), 4 * width, width))
        x = net.op("Add", x, net.attention(net.layer_norm(x, width), frames, width, heads))
        y = net.op("Transpose", net.layer_norm(x, width), perm=[0, 2, 1])
        net.channels[y] = width
        a, b = net.split(net.conv(y, 2 * width, spatial=1), 2)
        y = net.op("Mul", a, net.op("Sigmoid", b))
        net.channels[y] = width
        y = net.conv(net.silu(net.norm(net.conv(y, width, 15, groups=width, spatial=1))), width, spatial=1)
        x = net.op("Add", x, net.op("Transpose", y, perm=[0, 2, 1]))
    return net.made(x)


def tcn(batch, width=128):
    """Sequences: dilated convolutions along time, with gates."""
    net = Net(batch)
    x = net.conv(net.input("x", 64, 1000), width, spatial=1)
    for i in range(8):
        y = net.relu(net.conv(net.relu(net.conv(x, width, 3, dilation=1 << i, groups=width, spatial=1)), 2 * width, spatial=1))
        x = net.op("Add", x, net.conv(y, width, spatial=1))
        net.channels[x] = width
    return net.made(net.conv(x, 32, spatial=1))


def dlrm(batch):
    net = Net(batch)
    x, tables = net.input("dense", 13), []
    for inputs, outputs in ((13, 512), (512, 256), (256, 64)):
        x = net.relu(net.linear(x, inputs, outputs))
    for i in range(26):
        rows = net.op("Gather", net.weight(10000, 64, scale=0.1), net.input(f"bag{i}", 20, below=10000))
        tables.append(net.op("ReduceSum", rows, net.numbers(1), keepdims=1))
    every = net.op("Concat", net.op("Unsqueeze", x, net.numbers(1)), *tables, axis=1)
    pairs = net.op("Reshape", net.op("MatMul", every, net.op("Transpose", every, perm=[0, 2, 1])), net.numbers(batch, 27 * 27))
    x = net.op("Concat", x, net.op("Gather", pairs, net.numbers(*[27 * i + j for i in range(27) for j in range(i)]), axis=1), axis=1)
    for inputs, outputs in ((64 + 351, 512), (512, 256), (256, 1)):
        x = net.linear(net.relu(x) if inputs < 415 else x, inputs, outputs)
    return net.made(net.op("Sigmoid", x))


def mlp(batch):
    net = Net(batch)
    x = net.input("x", 784)
    for inputs, outputs in ((784, 1024), (1024, 1024)):
        x = net.relu(net.linear(x, inputs, outputs))
    return net.made(net.op("Softmax", net.linear(x, 1024, 10), axis=-1))


NETS = {
    "resnet18": classifier(resnet((2, 2, 2, 2), False)),
    "resnet50": classifier(resnet((3, 4, 6, 3), True)),
    "resnext50": classifier(resnet((3, 4, 6, 3), True, groups=32, width=128)),
    "mobilenet_v2": classifier(mobilenet_v2),
    "mobilenet_v3": classifier(mobilenet_v3),
    "efficientnet_b0": classifier(efficientnet),
    "densenet121": classifier(densenet),
    "squeezenet": classifier(squeezenet),
    "shufflenet_v2": classifier(shufflenet),
    "convnext_tiny": classifier(convnext),
    "unet": unet,
    "deeplab": deeplab,
    "detector": detector,
    "super_resolution": super_resolution,
    "bert_small": encoder(512, 8, 6, 128, 30000),
    "gpt_small": gpt,
    "llama_small": llama,
    "vit_small": vit,
    "mixer": mixer,
    "conformer": conformer,
    "tcn": tcn,
    "lstm_tagger": recurrent("LSTM", 256, 4),
    "gru_tagger": recurrent("GRU", 256, 3),
    "dlrm": dlrm,
    "mlp": mlp,
}
