"""Losses as modules, each declared by a function and the arguments of its constructor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..eager.tensor.tensor import Tensor
from . import functional as F
from .constructors import Constructor, DeclaredModule

if TYPE_CHECKING:
    from collections.abc import Callable

_TENSORS = frozenset(("weight", "pos_weight"))  # arguments that are buffers
_OLD_REDUCTIONS = ("size_average", "reduce")  # arguments that PyTorch had before ``reduction``


class Loss(DeclaredModule):
    """The base class of losses.

    Args:
        args, kwargs: the arguments, as PyTorch's class of this name takes them; a tensor becomes a buffer.
    """

    function: Callable[..., Tensor]

    def _set_arguments(self, arguments: dict[str, Any]) -> None:
        size_average, reduce = (arguments.pop(name, None) for name in _OLD_REDUCTIONS)
        if size_average is not None or reduce is not None:
            arguments["reduction"] = _to_reduction(size_average, reduce)
        self.option_names = tuple(arguments)
        tensors = {name: arguments.pop(name) for name in _TENSORS & arguments.keys()}
        super()._set_arguments(arguments)
        for name in sorted(tensors):
            self.register_buffer(name, tensors[name])

    def forward(self, *input: Tensor) -> Tensor:
        """The loss of an input and a target."""
        options = {name: getattr(self, name) for name in self.option_names}
        return type(self).function(*input, **options)


def _to_reduction(size_average: object, reduce: object) -> str:
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def _make_loss(
    name: str, function: Callable[..., Tensor], keyword_only: bool = False, /, **arguments: object
) -> Any:  # noqa: ANN401  # a class that is made at run time
    """Return the class of the loss of a function; ``arguments`` are those of the constructor, with their defaults."""
    doc = f"The loss :func:`tandem.nn.functional.{function.__name__}`, with its arguments after the tensors."
    namespace = {
        "__doc__": doc,
        "__module__": __name__,
        "__signature__": Constructor(arguments, keyword_only),
        "function": staticmethod(function),
    }
    return type(name, (Loss,), namespace)


_OLD: dict[str, object] = dict.fromkeys(_OLD_REDUCTIONS)
_REDUCED: dict[str, object] = {**_OLD, "reduction": "mean"}
_BETWEEN: dict[str, object] = {
    "reduce": None,
    "reduction": "mean",
}  # after an argument behind ``size_average``

# -- classes -----------------------------------------------------------------------------------------------------------
CrossEntropyLoss = _make_loss(
    "CrossEntropyLoss",
    F.cross_entropy,
    weight=None,
    size_average=None,
    ignore_index=-100,
    **_BETWEEN,
    label_smoothing=0.0,
)
NLLLoss = _make_loss("NLLLoss", F.nll_loss, weight=None, size_average=None, ignore_index=-100, **_BETWEEN)
NLLLoss2d = NLLLoss
BCELoss = _make_loss("BCELoss", F.binary_cross_entropy, weight=None, **_REDUCED)
BCEWithLogitsLoss = _make_loss(
    "BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, weight=None, **_REDUCED, pos_weight=None
)
MultiMarginLoss = _make_loss("MultiMarginLoss", F.multi_margin_loss, p=1, margin=1.0, weight=None, **_REDUCED)
MultiLabelMarginLoss = _make_loss("MultiLabelMarginLoss", F.multilabel_margin_loss, **_REDUCED)
MultiLabelSoftMarginLoss = _make_loss(
    "MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, weight=None, **_REDUCED
)
CTCLoss = _make_loss("CTCLoss", F.ctc_loss, blank=0, reduction="mean", zero_infinity=False)

# -- differences and distributions -------------------------------------------------------------------------------------
MSELoss = _make_loss("MSELoss", F.mse_loss, **_REDUCED)
L1Loss = _make_loss("L1Loss", F.l1_loss, **_REDUCED)
SmoothL1Loss = _make_loss("SmoothL1Loss", F.smooth_l1_loss, **_REDUCED, beta=1.0)
HuberLoss = _make_loss("HuberLoss", F.huber_loss, reduction="mean", delta=1.0)
KLDivLoss = _make_loss("KLDivLoss", F.kl_div, **_REDUCED, log_target=False)
GaussianNLLLoss = _make_loss(
    "GaussianNLLLoss", F.gaussian_nll_loss, True, full=False, eps=1e-6, reduction="mean"
)
PoissonNLLLoss = _make_loss(
    "PoissonNLLLoss", F.poisson_nll_loss, log_input=True, full=False, size_average=None, eps=1e-8, **_BETWEEN
)

# -- margins and distances ---------------------------------------------------------------------------------------------
SoftMarginLoss = _make_loss("SoftMarginLoss", F.soft_margin_loss, **_REDUCED)
HingeEmbeddingLoss = _make_loss("HingeEmbeddingLoss", F.hinge_embedding_loss, margin=1.0, **_REDUCED)
CosineEmbeddingLoss = _make_loss("CosineEmbeddingLoss", F.cosine_embedding_loss, margin=0.0, **_REDUCED)
MarginRankingLoss = _make_loss("MarginRankingLoss", F.margin_ranking_loss, margin=0.0, **_REDUCED)
TripletMarginLoss = _make_loss(
    "TripletMarginLoss", F.triplet_margin_loss, margin=1.0, p=2.0, eps=1e-6, swap=False, **_REDUCED
)
TripletMarginWithDistanceLoss = _make_loss(
    "TripletMarginWithDistanceLoss",
    F.triplet_margin_with_distance_loss,
    True,
    distance_function=None,
    margin=1.0,
    swap=False,
    reduction="mean",
)
