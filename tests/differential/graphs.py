"""Graphs of 3 to 18 nodes: operators of the other files that read each other's results, and stems that Heddle fuses or folds.

Each node is run by onnxruntime as it is added, so that shapes and contents of what comes next are known: the expected values of the graph
are those of its nodes, one by one.
"""
import numpy as np

import judges
from cases import Case, Generator, NotPossible, is_float

DTYPES = ("f32", "f32", "f32", "f64", "i64", "i32", "bool")
# Not in graphs: random ones, those whose results jump where inputs differ in the last bit are left in.
WITHOUT = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Upsample", "Scatter", "NonMaxSuppression"}
POINTWISE = ["Relu", "Sigmoid", "Tanh", "Add", "Mul", "Sub", "Div", "Clip", "LeakyRelu", "HardSwish", "Max", "Min", "Neg", "Abs", "Exp", "Sqrt", "Where",
             "PRelu", "Elu", "Gelu", "Erf", "Mish", "Softplus", "Cast", "Pow", "HardSigmoid", "Identity", "Dropout"]
STEMS = ["Conv", "MatMul", "Gemm", "ConvTranspose", "BatchNormalization", "MaxPool", "AveragePool", "Softmax", "ReduceMean", "ReduceSum", "Transpose",
         "Reshape", "Concat", "LayerNormalization", "Slice", "Pad", "Resize", "GlobalAveragePool"]


class Graph:
    def __init__(self, seed, operators):
        self.operators = operators
        opset = None
        self.generator = Generator(seed)
        dice = self.generator.dice
        opset = dice.choice([9, 11, 13, 13, 15, 17, 18, 19, 20, 21])
        if "Gelu" in POINTWISE and dice.random() < 0.2:
            opset = 20
        self.generator = Generator(seed, opset=opset, pool={}, only_dtypes=DTYPES)
        self.values = {}

    def try_node(self, op):
        g = self.generator
        kept = (len(g.nodes), dict(g.inputs), dict(g.constants))
        try:
            g.begin(op)
            outputs = self.operators[op](g)
            if outputs is None:
                raise NotPossible(op)
            if len(g.nodes) != kept[0] + 1:
                raise NotPossible("more than one node")
            node = g.nodes[-1]
            arrays = {n: self.values.get(n, g.inputs.get(n, g.constants.get(n))) for n in self.reads(node)}
            alone = Case(g.seed, g.opset, [node], arrays, {}, [o for o in node.output if o], {})
            constants = {n: a for n, a in arrays.items() if n in g.constants}
            alone.inputs = {n: a for n, a in arrays.items() if n not in constants}
            alone.constants = constants
            results = judges.run_onnxruntime(alone.model(), alone.inputs)
            if any(r.size > 20000 or r.ndim > 5 for r in results):
                raise NotPossible("large")
            for name, result in zip(alone.outputs, results):
                self.values[name] = g.pool[name] = result
            return True
        except (NotPossible, judges.Refused, ValueError, IndexError):
            del g.nodes[kept[0]:]
            g.inputs, g.constants = kept[1], kept[2]
            return False

    def reads(self, node):
        names = [n for n in node.input if n]
        for attribute in node.attribute:  # what a subgraph reads from outside
            for inner in attribute.g.node:
                names += [n for n in inner.input if n in self.values or n in self.generator.inputs or n in self.generator.constants]
        return dict.fromkeys(names)

    def convolution_block(self):
        """Conv, often with what is folded or fused behind it, all weights constant."""
        g = self.generator
        x = [n for n, a in g.pool.items() if a.ndim == 4 and str(a.dtype) == "float32" and a.size]
        shape = g.pool[g.dice.choice(x)].shape if x else (g.pick(1, 2), g.pick(1, 3, 8), g.pick(4, 7), g.pick(4, 8))
        name = g.dice.choice([n for n in x if g.pool[n].shape == shape]) if x else g.give(g.array("f32", shape, "plain"), False)
        outputs, k = g.pick(1, 4, 16), g.pick(1, 3)
        operands = [name, g.give(g.array("f32", (outputs, shape[1], k, k), "plain"), True)]
        if g.one_in(2):
            operands.append(g.give(g.array("f32", (outputs,), "plain"), True))
        return g.node("Conv", operands, {"pads": [k // 2] * 4})[0], outputs

    def add_block(self):
        g = self.generator
        if g.one_in(2):
            last, channels = self.convolution_block()
            if not self.evaluate():
                return
            if g.one_in(2):
                g.node("BatchNormalization", [last] + [g.give(g.array("f32", (channels,), k), True) for k in ("plain", "plain", "plain", "positive")],
                       {"epsilon": g.maybe(g.pick(1e-3, 1e-2, 0.1))})
                self.evaluate()
        else:
            self.try_node(g.dice.choice(STEMS))

    def evaluate(self):
        """Of the node that was put there last; takes it out again when it does not run."""
        g = self.generator
        node = g.nodes[-1]
        arrays = {n: self.values.get(n, g.inputs.get(n, g.constants.get(n))) for n in self.reads(node)}
        alone = Case(g.seed, g.opset, [node], arrays, {}, [o for o in node.output if o], {})
        try:
            for name, result in zip(alone.outputs, judges.run_onnxruntime(alone.model(), arrays)):
                self.values[name] = g.pool[name] = result
            return True
        except judges.Refused:
            g.nodes.pop()
            return False

    def make(self):
        g = self.generator
        wanted = g.between(3, 18)
        names = [o for o in self.operators if o not in WITHOUT]
        g.pool.update({})
        for _ in range(4 * wanted):
            if len(g.nodes) >= wanted:
                break
            manner = g.between(0, 9)
            if manner < 2 or not g.nodes:
                self.add_block()
            elif manner < 7:
                self.try_node(g.dice.choice(POINTWISE))
            else:
                self.try_node(g.dice.choice(names))
        if len(g.nodes) < 3:
            raise NotPossible("no graph came of it")
        read = {n for node in g.nodes for n in self.reads(node)}
        outputs = [n for node in g.nodes for n in node.output if n and n not in read]
        inner = [n for n in self.values if n in read]
        if inner and g.one_in(3):
            outputs.append(g.dice.choice(inner))
        g.inputs = {n: a for n, a in g.inputs.items() if n in read}
        g.constants = {n: a for n, a in g.constants.items() if n in read}
        g.features = {"op": "graph", "attributes": {}}
        case = g.case(outputs)
        case.expected = [self.values[n] for n in case.outputs]
        case.values = self.values
        return case


def alone(case, node, values):
    """The case of one node of the graph, reading `values`."""
    names = dict.fromkeys(n for n in node.input if n)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names.update(dict.fromkeys(n for n in inner.input if n in values or n in case.inputs or n in case.constants))
    inputs, constants = {}, {}
    for n in names:
        if n in case.constants:
            constants[n] = case.constants[n]
        else:
            inputs[n] = case.inputs.get(n, values.get(n))
    attributes = {}
    for a in node.attribute:
        if not a.HasField("g"):
            import onnx
            attributes[a.name] = onnx.helper.get_attribute_value(a)
    features = {"op": node.op_type, "attributes": attributes, "inputs": [{**values, **case.arrays()}.get(n) for n in node.input], "opset": case.opset,
                "input_count": len(node.input), "constant": [n in constants for n in node.input]}
    return Case(case.seed, case.opset, [node], inputs, constants, [o for o in node.output if o], features)
