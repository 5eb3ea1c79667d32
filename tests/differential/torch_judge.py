"""PyTorch as a judge, for operators that it has with the same meaning. Each function gets the node's arrays as tensors (None where an operand
is absent) and its attributes with ONNX's defaults, and raises Refused where PyTorch's operator is another one."""
import numpy as np
import onnx
import torch
import torch.nn.functional as F

from cases import BF16, name_of
from judges import Refused

torch.set_num_threads(1)
torch.set_grad_enabled(False)
FUNCTIONS = {}


def judge(*names):
    def keep(function):
        for name in names:
            FUNCTIONS[name] = function
        return function
    return keep


def need(condition):
    if not condition:
        raise Refused("torch has no such form")


def tensor(array):
    if array.dtype == BF16:
        return torch.from_numpy(np.ascontiguousarray(array).view("i2").reshape(array.shape)).view(torch.bfloat16)
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        raise Refused("unsigned")
    return torch.from_numpy(np.ascontiguousarray(array).reshape(array.shape).copy())


def array(value):
    if value.dtype == torch.bfloat16:
        return value.contiguous().view(torch.int16).numpy().view(BF16)
    return value.numpy()


for _name, _function in {
        "Abs": torch.abs, "Neg": torch.neg, "Reciprocal": torch.reciprocal, "Ceil": torch.ceil, "Floor": torch.floor,
        "Round": torch.round, "Sqrt": torch.sqrt, "Exp": torch.exp, "Log": torch.log, "Erf": torch.erf, "Tanh": torch.tanh, "Sin": torch.sin,
        "Cos": torch.cos, "Tan": torch.tan, "Asin": torch.asin, "Acos": torch.acos, "Atan": torch.atan, "Sinh": torch.sinh,
        "Cosh": torch.cosh, "Asinh": torch.asinh, "Acosh": torch.acosh, "Atanh": torch.atanh, "Relu": torch.relu, "Sigmoid": torch.sigmoid,
        "HardSwish": F.hardswish, "Softsign": F.softsign, "Mish": F.mish, "IsNaN": torch.isnan, "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul,
        "Equal": torch.eq, "Greater": torch.gt, "GreaterOrEqual": torch.ge, "Less": torch.lt, "LessOrEqual": torch.le,
        "And": torch.logical_and, "Or": torch.logical_or, "Xor": torch.logical_xor, "Not": torch.logical_not, "MatMul": torch.matmul,
        "BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or, "BitwiseXor": torch.bitwise_xor, "BitwiseNot": torch.bitwise_not,
        "Where": torch.where, "Identity": torch.clone}.items():
    FUNCTIONS[_name] = lambda t, a, o, function=_function: [function(*t)]


@judge("Sign")
def sign(t, a, o):
    need(not t[0].isnan().any())  # whose sign is 0 here, and NaN in NumPy and onnxruntime
    return [torch.sign(t[0])]


@judge("Div")
def div(t, a, o):
    need(t[0].is_floating_point())
    return [t[0] / t[1]]


@judge("Pow")
def pow_(t, a, o):
    need(t[0].dtype == t[1].dtype and t[0].is_floating_point())
    return [torch.pow(*t)]


@judge("Max", "Min")
def extremes(t, a, o):
    out = t[0]
    for x in t[1:]:
        out = (torch.maximum if o == "Max" else torch.minimum)(out, x)
    return [out]


@judge("Softplus")
def softplus(t, a, o):
    x = t[0].double()  # in f16 its exponential overflows at 11
    return [(torch.log1p(torch.exp(-x.abs())) + torch.relu(x)).to(t[0].dtype)]


@judge("LeakyRelu")
def leaky(t, a, o):
    return [F.leaky_relu(t[0], a.get("alpha", 0.01))]


@judge("Elu")
def elu(t, a, o):
    return [F.elu(t[0], a.get("alpha", 1.0))]


@judge("Celu")
def celu(t, a, o):
    return [F.celu(t[0], a.get("alpha", 1.0))]


@judge("Selu")
def selu(t, a, o):
    need("alpha" not in a and "gamma" not in a)
    need(t[0].dtype != torch.float64)  # ONNX's constants are rounded to f32
    return [F.selu(t[0])]


@judge("ThresholdedRelu")
def thresholded(t, a, o):
    return [F.threshold(t[0], a.get("alpha", 1.0), 0.0)]


@judge("Gelu")
def gelu(t, a, o):
    approximate = a.get("approximate", b"none")
    return [F.gelu(t[0], approximate=approximate.decode() if isinstance(approximate, bytes) else approximate)]


@judge("Softmax", "LogSoftmax")
def softmax(t, a, o):
    need(a["opset"] >= 13)
    return [(F.softmax if o == "Softmax" else F.log_softmax)(t[0], a.get("axis", -1))]


@judge("Gemm")
def gemm(t, a, o):
    need(t[0].is_floating_point())
    x = (t[0].T if a.get("transA") else t[0]) @ (t[1].T if a.get("transB") else t[1]) * a.get("alpha", 1.0)
    return [x + a.get("beta", 1.0) * t[2] if len(t) > 2 and t[2] is not None else x]


def padding(a, spatial):
    need(a.get("auto_pad", b"NOTSET") in (b"NOTSET", "NOTSET", b"VALID", "VALID"))
    pads = a.get("pads", [0] * 2 * spatial)
    need(list(pads[:spatial]) == list(pads[spatial:]))
    return list(pads[:spatial])


@judge("Conv")
def conv(t, a, o):
    spatial = t[0].dim() - 2
    f = (F.conv1d, F.conv2d, F.conv3d)[spatial - 1]
    return [f(t[0], t[1], t[2] if len(t) > 2 else None, a.get("strides", [1] * spatial), padding(a, spatial), a.get("dilations", [1] * spatial),
              a.get("group", 1))]


@judge("ConvTranspose")
def conv_transpose(t, a, o):
    spatial = t[0].dim() - 2
    f = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[spatial - 1]
    return [f(t[0], t[1], t[2] if len(t) > 2 else None, a.get("strides", [1] * spatial), padding(a, spatial), a.get("output_padding", [0] * spatial),
              a.get("group", 1), a.get("dilations", [1] * spatial))]


@judge("MaxPool", "AveragePool")
def pool(t, a, o):
    spatial = t[0].dim() - 2
    kernel, strides, pads = list(a["kernel_shape"]), list(a.get("strides", [1] * spatial)), padding(a, spatial)
    need(all(2 * p <= k for p, k in zip(pads, kernel)) and not a.get("ceil_mode") and a["outputs"] == 1)
    if o == "MaxPool":
        return [(F.max_pool1d, F.max_pool2d, F.max_pool3d)[spatial - 1](t[0], kernel, strides, pads, list(a.get("dilations", [1] * spatial)))]
    need(set(a.get("dilations", [1])) == {1})
    return [(F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[spatial - 1](t[0], kernel, strides, pads, count_include_pad=bool(a.get("count_include_pad", 0)))]


@judge("BatchNormalization")
def batch_norm(t, a, o):
    return [F.batch_norm(t[0], t[3], t[4], t[1], t[2], False, 0.0, a.get("epsilon", 1e-5))]


@judge("InstanceNormalization")
def instance_norm(t, a, o):
    need(t[0][0, 0].numel() > 1)
    return [F.instance_norm(t[0], weight=t[1], bias=t[2], eps=a.get("epsilon", 1e-5))]


@judge("GroupNormalization")
def group_norm(t, a, o):
    need(a["opset"] >= 21)
    return [F.group_norm(t[0], a["num_groups"], t[1], t[2], a.get("epsilon", 1e-5))]


@judge("LayerNormalization")
def layer_norm(t, a, o):
    need(a["outputs"] == 1)
    return [F.layer_norm(t[0], t[0].shape[a.get("axis", -1):], t[1], t[2] if len(t) > 2 else None, a.get("epsilon", 1e-5))]


@judge("RMSNormalization")
def rms_norm(t, a, o):
    return [F.rms_norm(t[0], t[0].shape[a.get("axis", -1):], t[1], a.get("epsilon", 1e-5))]


@judge("Swish")
def swish(t, a, o):
    return [t[0] * torch.sigmoid(a.get("alpha", 1.0) * t[0])]


@judge("GridSample")
def grid_sample(t, a, o):
    text = lambda v: v.decode() if isinstance(v, bytes) else v
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(text(a.get("mode", "bilinear")), text(a.get("mode", "bilinear")))
    need(t[0].dtype == t[1].dtype)
    return [F.grid_sample(t[0], t[1], mode, text(a.get("padding_mode", "zeros")), bool(a.get("align_corners", 0)))]


@judge("CumSum")
def cum_sum(t, a, o):
    need(not a.get("exclusive") and not a.get("reverse"))
    return [torch.cumsum(t[0], int(t[1]), dtype=t[0].dtype)]


@judge("Trilu")
def trilu(t, a, o):
    return [(torch.triu if a.get("upper", 1) else torch.tril)(t[0], int(t[1]) if len(t) > 1 and t[1] is not None else 0)]


@judge("Einsum")
def einsum(t, a, o):
    equation = a["equation"].decode() if isinstance(a["equation"], bytes) else a["equation"]
    return [torch.einsum(equation.replace(" ", ""), *t)]


@judge("GatherElements")
def gather_elements(t, a, o):
    axis = a.get("axis", 0)
    index = t[1].long()
    return [torch.gather(t[0], axis, torch.where(index < 0, index + t[0].shape[axis], index))]


@judge("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def losses(t, a, o):
    need(a["outputs"] == 1)
    reduction = a.get("reduction", "mean")
    f = F.nll_loss if o.startswith("Neg") else F.cross_entropy
    return [f(t[0], t[1].long(), t[2] if len(t) > 2 else None, ignore_index=a.get("ignore_index", -100),
              reduction=reduction.decode() if isinstance(reduction, bytes) else reduction)]


@judge("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceLogSumExp")
def reduce(t, a, o):
    axes = list(t[1]) if len(t) > 1 and t[1] is not None else a.get("axes")
    axes = [int(x) for x in axes] if axes is not None and len(axes) else list(range(t[0].dim()))
    need(not a.get("noop_with_empty_axes") and t[0].dim() > 0 and t[0].is_floating_point())
    f = {"ReduceSum": torch.sum, "ReduceMean": torch.mean, "ReduceMax": torch.amax, "ReduceMin": torch.amin, "ReduceLogSumExp": torch.logsumexp}[o]
    return [f(t[0], dim=axes, keepdim=bool(a.get("keepdims", 1)))]


def run_torch(case):
    node = case.nodes[-1]
    if len(case.nodes) != 1 or node.op_type not in FUNCTIONS:
        raise Refused("torch: no such operator")
    arrays = case.arrays()
    try:
        operands = [tensor(arrays[n]) if n else None for n in node.input]
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        attributes.update(opset=case.opset, outputs=len([o for o in node.output if o]))
        return [array(r) for r in FUNCTIONS[node.op_type](operands, attributes, node.op_type)]
    except Refused:
        raise
    except (RuntimeError, TypeError, NotImplementedError, IndexError, ValueError) as error:
        raise Refused(f"torch: {str(error)[:200]}") from error
