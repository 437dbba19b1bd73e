"""Jitted models on CUDA tensors compared with the CPU, forward and backward; reports of compiled functions."""

from pathlib import Path

import numpy as np
import pytest
import tandem as td
from cuda_jit_harness import block, block_arguments, check_model, mlp, mlp_arguments, native
from optable import replace
from rotation import one_each_commit
from tandem import errors
from tandem.backends.cuda.runtime.compiler import nvrtc_file

pytestmark = pytest.mark.usefixtures("cuda")
MODELS = [(mlp, mlp_arguments), (block, block_arguments)]


@pytest.mark.parametrize(("loss", "arguments"), MODELS)
def test_models_agree_with_the_cpu(loss, arguments):
    check_model(loss, arguments)


# -- what is shown -----------------------------------------------------------------------------------------------------
@native
def test_the_source_without_cuda():
    f = td.jit(lambda x, w: td.layer_norm(td.gelu(x @ w), (16,)) + td.zeros(16))
    text = None
    for device in ("cpu", "meta", "cuda"):
        lowered = f.lower(td.ones((8, 16), device=device), td.ones((16, 16), device=device), device="cuda")
        text = text or lowered.cuda_source()
        assert lowered.cuda_source() == text
        assert {row.choice for row in lowered.kernels()} <= {
            "callback",
            "blas",
            "fused",
            "reduction",
            "constant",
        }
    for part in ("__global__", "td::gelu_erf", "td::rsqrt", "test_cuda_jit_models.py:", "td::matmul"):
        assert part in text
    with pytest.raises(errors.LoweringError, match="cuda_source"):
        lowered.llvm_ir()
    with pytest.raises(errors.LoweringError, match="llvm_ir"):
        f.lower(td.ones((8, 16)), td.ones((16, 16))).cuda_source()
    with pytest.raises(errors.ArgumentError, match="'tpu'"):
        f.lower(td.ones((8, 16)), td.ones((16, 16)), device="tpu")


def test_what_was_lowered_for_cuda_runs_there():
    f = td.jit(lambda x, device: td.exp(x) * device)
    compiled = f.lower(td.ones(4, device="cuda"), device=2.0).compile()  # the function's own parameter
    assert compiled(td.zeros(4, device="cuda"), 2.0).tolist() == [2.0] * 4
    g = td.jit(lambda x: td.exp(x) + td.ones(4) + td.arange(4) * 0)
    compiled = g.lower(td.ones(4), device="cuda").compile()
    assert compiled(td.zeros(4, device="cuda")).tolist() == [2.0] * 4


@native
@pytest.mark.parametrize("architecture", one_each_commit(75, 80, 90, 100))
def test_nvrtc_compiles_module_of_model(architecture):
    pytest.importorskip("cupy", reason="NVRTC comes through cupy: pip install 'tandem-dispatch[cuda]'")
    for loss, arguments in MODELS:
        given_ = replace(arguments(), np.ndarray, td.asarray)
        source = td.jit(td.value_and_grad(loss)).lower(*given_, device="cuda").cuda_source()
        assert Path(nvrtc_file(source, f"sm_{architecture}")).read_bytes()[:4] == b"\x7fELF"
