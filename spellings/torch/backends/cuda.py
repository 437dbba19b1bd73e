"""``torch.backends.cuda``: products of float32 matrices are computed in float32, also where TF32 is allowed."""

from types import SimpleNamespace

from ...backends.cuda.public import is_available

matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=False,
    allow_bf16_reduced_precision_reduction=False,
)


def is_built() -> bool:
    """Whether a CUDA device can be used: tandem compiles CUDA code when it runs."""
    return is_available()
