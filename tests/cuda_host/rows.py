"""A row of the op table on CUDA tensors."""

import numpy as np
import tandem as td
from optable import arrays_of, check, expected, generator, replace
from tandem.backends.cuda.tensor import CudaTensor
from tandem.registry.function import functions


def to_cuda(tree):
    """Nested arguments with the arrays on the device."""
    return replace(tree, np.ndarray, lambda array: td.asarray(array).to("cuda"))


def back(result):
    """The results of an operator, which lie on the device, on the host."""
    found = result if isinstance(result, tuple) else (result,)
    for item in found:
        assert type(item) is CudaTensor
        assert item.device == "cuda:0"
    return tuple(item.to("cpu") for item in found)


def run_row(op, dtype, sample):
    """An operator's results on the device are those of its reference."""
    args, kwargs = arrays_of(sample, dtype, generator(op, dtype))
    tensors, options = to_cuda((args, kwargs))
    found = []
    replace((tensors, options), td.Tensor, found.append)
    if not found:
        if not op.binder.device_argument:
            return
        options["device"] = "cuda"
    got = back(functions[op.name](*tensors, **options))
    want = expected(op, args, kwargs)
    check(op, got, want, args, f"cuda {op.name} {dtype} {sample}")
