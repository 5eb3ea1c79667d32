"""The other implementations: onnxruntime, onnxruntime in f32 for the 16-bit floats, ONNX's reference implementation."""
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from cases import BF16

ort.set_default_logger_severity(4)
NARROW = (np.dtype("f2"), BF16)


class Refused(Exception):
    pass


def session_options():
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.disable_prepacking", "1")
    return options


OPTIONS = session_options()


def run_onnxruntime(model, inputs):
    """`inputs`: name -> array."""
    try:
        session = ort.InferenceSession(model.SerializeToString(), OPTIONS, providers=["CPUExecutionProvider"])
        feeds = {name: value_of(array) for name, array in inputs.items()}
        return [array_of(v) for v in session.run_with_ort_values([o.name for o in session.get_outputs()], feeds)]
    except Exception as error:  # of many kinds, none of them documented
        raise Refused(f"onnxruntime: {str(error)[:300]}") from error


def value_of(array):
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    if array.dtype == BF16:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view("u2"), TensorProto.BFLOAT16)
    return ort.OrtValue.ortvalue_from_numpy(array)


def array_of(value):
    if value.element_type() == TensorProto.BFLOAT16:
        raise Refused("bf16 results")
    return value.numpy()


def widened(array):
    return array.astype("f4") if array.dtype in NARROW else array


# Attributes and inner graphs name types, which widening would have to follow.
TYPED = ("Cast", "CastLike", "ConstantOfShape", "EyeLike", "If", "Loop", "Scan", "RandomNormal", "RandomUniform", "RandomNormalLike",
         "RandomUniformLike", "Bernoulli", "Multinomial", "Constant")


def run_widened(case):
    """In f32 where the case has f16 or bf16: what a kernel gives that rounds once. Not for nodes that name types."""
    if any(n.op_type in TYPED for n in case.nodes):
        raise Refused("names types")
    return run_onnxruntime(case.model(convert=widened), {n: widened(a) for n, a in case.inputs.items()})


def run_reference(model, inputs):
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = ReferenceEvaluator(model).run(None, dict(inputs))
        if any(r is None for r in results):
            raise Refused("the reference gives nothing")
        return [np.asarray(r) for r in results]
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"reference: {type(error).__name__} {str(error)[:200]}") from error


def is_narrow(case):
    return any(a.dtype in NARROW for a in case.arrays().values())


def opinions(case):
    """(name, outputs) of each judge that has one, lazily, best first."""
    if is_narrow(case):
        order = [("onnxruntime-f32", lambda: run_widened(case)), ("reference", lambda: run_reference(case.model(), case.inputs)),
                 ("onnxruntime", lambda: run_onnxruntime(case.model(), case.inputs))]
    else:
        order = [("onnxruntime", lambda: run_onnxruntime(case.model(), case.inputs)),
                 ("reference", lambda: run_reference(case.model(), case.inputs))]
    return order
