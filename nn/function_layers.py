"""Layers without state, each declared by a function and the arguments of its constructor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from . import functional as F
from .constructors import REQUIRED, Constructor, DeclaredModule

if TYPE_CHECKING:
    from ..registry.types import Tensor

Layer: TypeAlias = Any  # a class that is made at run time
_HIDDEN = ("return_indices", "count_include_pad", "divisor_override", "inplace")  # by repr, as in PyTorch


class FunctionLayer(DeclaredModule):
    """A function of tensors; its other arguments are those of the constructor, and attributes.

    Args:
        args, kwargs: the arguments, as PyTorch's class of this name takes them.
    """

    function: Callable[..., Any]
    shown: tuple[str, ...] = ()

    def forward(self, *input: Tensor) -> Tensor:
        """The function of the input."""
        options = {name: getattr(self, name) for name in type(self).__signature__.parameters}
        result: Tensor = type(self).function(*input, **options)
        return result

    def extra_repr(self) -> str:
        """The arguments."""
        parts = [
            f"{getattr(self, name[1:])!r}" if name.startswith("=") else f"{name}={getattr(self, name)!r}"
            for name in self.shown
        ]
        if getattr(self, "inplace", False) and "inplace" not in self.shown:
            parts.append("inplace=True")
        return ", ".join(parts)


def make_layer(
    name: str, function: Callable[..., Any], shown: str | None = None, /, **arguments: object
) -> Layer:
    """Return the class of the layer of a function.

    Args:
        name: the name of the class.
        function: a function of tensors, then of the arguments by name.
        shown: the arguments that ``repr`` shows, with ``=`` before those shown without a name; None: all but
            options that PyTorch hides.
        arguments: the arguments of the constructor and their defaults, in PyTorch's order.
    """
    called = getattr(function, "__name__", name)
    names = [one for one in arguments if one not in _HIDDEN] if shown is None else shown.split()
    namespace = {
        "__doc__": f"The layer of :func:`tandem.nn.functional.{called}`, with the arguments after the input.",
        "__module__": __name__,
        "__signature__": Constructor(arguments),
        "function": staticmethod(function),
        "shown": tuple(names),
    }
    return type(name, (FunctionLayer,), namespace)


# -- activations -------------------------------------------------------------------------------------------------------
ReLU = make_layer("ReLU", F.relu, inplace=False)
ReLU6 = make_layer("ReLU6", F.relu6, inplace=False)
LeakyReLU = make_layer("LeakyReLU", F.leaky_relu, negative_slope=0.01, inplace=False)
ELU = make_layer("ELU", F.elu, alpha=1.0, inplace=False)
CELU = make_layer("CELU", F.celu, alpha=1.0, inplace=False)
SELU = make_layer("SELU", F.selu, inplace=False)
GELU = make_layer("GELU", F.gelu, approximate="none")
SiLU = make_layer("SiLU", F.silu, inplace=False)
Mish = make_layer("Mish", F.mish, inplace=False)
Sigmoid = make_layer("Sigmoid", F.sigmoid)
Hardsigmoid = make_layer("Hardsigmoid", F.hardsigmoid, inplace=False)
Hardswish = make_layer("Hardswish", F.hardswish, inplace=False)
LogSigmoid = make_layer("LogSigmoid", F.logsigmoid)
Tanh = make_layer("Tanh", F.tanh)
Hardtanh = make_layer("Hardtanh", F.hardtanh, min_val=-1.0, max_val=1.0, inplace=False)
Softplus = make_layer("Softplus", F.softplus, beta=1.0, threshold=20.0)
Softsign = make_layer("Softsign", F.softsign)
Softshrink = make_layer("Softshrink", F.softshrink, "=lambd", lambd=0.5)
Hardshrink = make_layer("Hardshrink", F.hardshrink, "=lambd", lambd=0.5)
Tanhshrink = make_layer("Tanhshrink", F.tanhshrink)
Threshold = make_layer("Threshold", F.threshold, threshold=REQUIRED, value=REQUIRED, inplace=False)
GLU = make_layer("GLU", F.glu, dim=-1)


class RReLU(FunctionLayer):
    """The layer of :func:`tandem.nn.functional.rrelu`, whose slopes are random in training mode.

    Args:
        lower, upper: the bounds of the slopes.
        inplace: whether to write the result into the input.
    """

    function = staticmethod(F.rrelu)
    shown = ("lower", "upper")
    __signature__ = Constructor({"lower": 1 / 8, "upper": 1 / 3, "inplace": False})

    def forward(self, *input: Tensor) -> Tensor:
        """The positive elements, and the others times a slope."""
        return type(self).function(input[0], self.lower, self.upper, self.training, self.inplace)


def _normalizing(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def normalize(input: Tensor, dim: int | None) -> Tensor:
        return function(input, (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim)

    normalize.__name__ = getattr(function, "__name__", "")
    return normalize


def _softmax2d(input: Tensor) -> Tensor:
    return F.softmax(input, -3)


Softmax = make_layer("Softmax", _normalizing(F.softmax), dim=None)
LogSoftmax = make_layer("LogSoftmax", _normalizing(F.log_softmax), dim=None)
Softmin = make_layer("Softmin", _normalizing(F.softmin), dim=None)
Softmax2d = make_layer("Softmax2d", _softmax2d)

# -- pooling -----------------------------------------------------------------------------------------------------------


class _Strided(FunctionLayer):
    """A layer of windows, whose stride is the size of the window unless it is given."""

    def _set_arguments(self, arguments: dict[str, Any]) -> None:
        if arguments["stride"] is None:
            arguments["stride"] = arguments["kernel_size"]
        super()._set_arguments(arguments)


def _make_pool(
    name: str, function: Callable[..., Any], shown: str | None = None, /, **arguments: object
) -> Layer:
    layer = make_layer(name, function, shown, **arguments)
    return type(name, (_Strided,), dict(vars(layer)))


def _make_max_pool(rank: int) -> Layer:
    options = {"kernel_size": REQUIRED, "stride": None, "padding": 0, "dilation": 1}
    function = getattr(F, f"max_pool{rank}d")
    return _make_pool(f"MaxPool{rank}d", function, **options, return_indices=False, ceil_mode=False)


def _make_avg_pool(rank: int) -> Layer:
    options = {"kernel_size": REQUIRED, "stride": None, "padding": 0, "ceil_mode": False}
    more = {"count_include_pad": True, **({"divisor_override": None} if rank > 1 else {})}
    shown = "kernel_size stride padding"
    return _make_pool(f"AvgPool{rank}d", getattr(F, f"avg_pool{rank}d"), shown, **options, **more)


MaxPool1d, MaxPool2d, MaxPool3d = map(_make_max_pool, (1, 2, 3))
AvgPool1d, AvgPool2d, AvgPool3d = map(_make_avg_pool, (1, 2, 3))
AdaptiveAvgPool1d = make_layer("AdaptiveAvgPool1d", F.adaptive_avg_pool1d, output_size=REQUIRED)
AdaptiveAvgPool2d = make_layer("AdaptiveAvgPool2d", F.adaptive_avg_pool2d, output_size=REQUIRED)
AdaptiveAvgPool3d = make_layer("AdaptiveAvgPool3d", F.adaptive_avg_pool3d, output_size=REQUIRED)
AdaptiveMaxPool1d = make_layer(
    "AdaptiveMaxPool1d", F.adaptive_max_pool1d, output_size=REQUIRED, return_indices=False
)
AdaptiveMaxPool2d = make_layer(
    "AdaptiveMaxPool2d", F.adaptive_max_pool2d, output_size=REQUIRED, return_indices=False
)
AdaptiveMaxPool3d = make_layer(
    "AdaptiveMaxPool3d", F.adaptive_max_pool3d, output_size=REQUIRED, return_indices=False
)
LPPool1d = make_layer(
    "LPPool1d", F.lp_pool1d, norm_type=REQUIRED, kernel_size=REQUIRED, stride=None, ceil_mode=False
)
LPPool2d = make_layer(
    "LPPool2d", F.lp_pool2d, norm_type=REQUIRED, kernel_size=REQUIRED, stride=None, ceil_mode=False
)
LPPool3d = make_layer(
    "LPPool3d", F.lp_pool3d, norm_type=REQUIRED, kernel_size=REQUIRED, stride=None, ceil_mode=False
)


class _Unpool(_Strided):
    """The opposite of a pooling layer with the same arguments; see :func:`tandem.nn.functional.max_unpool1d`."""

    shown = ("kernel_size", "stride", "padding")
    __signature__ = Constructor({"kernel_size": REQUIRED, "stride": None, "padding": 0})
    rank = 1

    def _set_arguments(self, arguments: dict[str, Any]) -> None:
        super()._set_arguments({name: _expand(value, self.rank) for name, value in arguments.items()})

    def forward(self, *input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The elements at their positions; the inputs are the results of pooling with ``return_indices=True``."""
        options = (self.kernel_size, self.stride, self.padding, output_size)
        result: Tensor = type(self).function(*input, *options)
        return result


def _expand(value: int | Sequence[int] | None, rank: int) -> tuple[int, ...] | None:
    return (value,) * rank if isinstance(value, int) else None if value is None else tuple(value)


def _make_unpool(rank: int) -> Layer:
    function = staticmethod(getattr(F, f"max_unpool{rank}d"))
    namespace = {"__doc__": _Unpool.__doc__, "__module__": __name__, "rank": rank, "function": function}
    return type(f"MaxUnpool{rank}d", (_Unpool,), namespace)


MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = map(_make_unpool, (1, 2, 3))

# -- images ------------------------------------------------------------------------------------------------------------
_WINDOWS: dict[str, object] = {"kernel_size": REQUIRED, "dilation": 1, "padding": 0, "stride": 1}
Unfold = make_layer("Unfold", F.unfold, **_WINDOWS)
Fold = make_layer("Fold", F.fold, output_size=REQUIRED, **_WINDOWS)
PixelShuffle = make_layer("PixelShuffle", F.pixel_shuffle, upscale_factor=REQUIRED)
PixelUnshuffle = make_layer("PixelUnshuffle", F.pixel_unshuffle, downscale_factor=REQUIRED)
ChannelShuffle = make_layer("ChannelShuffle", F.channel_shuffle, groups=REQUIRED)
LocalResponseNorm = make_layer(
    "LocalResponseNorm",
    F.local_response_norm,
    "=size alpha beta k",
    size=REQUIRED,
    alpha=1e-4,
    beta=0.75,
    k=1.0,
)


class Upsample(FunctionLayer):
    """The layer of :func:`tandem.nn.functional.interpolate`, with its arguments after the input."""

    function = staticmethod(F.interpolate)
    __signature__ = Constructor(
        {
            "size": None,
            "scale_factor": None,
            "mode": "nearest",
            "align_corners": None,
            "recompute_scale_factor": None,
        }
    )

    def forward(self, *input: Tensor) -> Tensor:
        """The resampled input."""
        options = (self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)
        result: Tensor = F.interpolate(input[0], *options)
        return result

    def extra_repr(self) -> str:
        """The size or the factor, and the mode."""
        name = "size" if self.scale_factor is None else "scale_factor"
        value = getattr(self, name)
        return f"{name}={float(value) if name == 'scale_factor' else value!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """:class:`Upsample` of images with the nearest elements, to a ``size`` or by a ``scale_factor``."""

    __signature__ = Constructor({"size": None, "scale_factor": None})
    mode = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor = None


class UpsamplingBilinear2d(UpsamplingNearest2d):
    """:class:`Upsample` of images with ``mode="bilinear"`` and ``align_corners=True``."""

    mode, align_corners = "bilinear", True


# -- pairs of tensors --------------------------------------------------------------------------------------------------
CosineSimilarity = make_layer("CosineSimilarity", F.cosine_similarity, "", dim=1, eps=1e-8)
PairwiseDistance = make_layer("PairwiseDistance", F.pairwise_distance, "", p=2.0, eps=1e-6, keepdim=False)


# -- padding -----------------------------------------------------------------------------------------------------------
class _Padding(FunctionLayer):
    """Pad the last axes: the argument is one number, or two for each axis, the last axis first."""

    rank = 1
    mode = "constant"
    padding: Any
    __signature__ = Constructor({"padding": REQUIRED})

    def _set_arguments(self, arguments: dict[str, Any]) -> None:
        padding = arguments["padding"]
        arguments["padding"] = (padding,) * (2 * self.rank) if isinstance(padding, int) else tuple(padding)
        super()._set_arguments(arguments)

    def forward(self, *input: Tensor) -> Tensor:
        """The padded input."""
        return F.pad(input[0], self.padding, self.mode, getattr(self, "value", None))

    def extra_repr(self) -> str:
        """The numbers."""
        value = f", value={self.value}" if hasattr(self, "value") else ""
        return f"{'padding=' if value else ''}{self.padding}{value}"


def _make_paddings(name: str, mode: str) -> list[Layer]:
    signature = Constructor({"padding": REQUIRED, **({"value": REQUIRED} if name == "Constant" else {})})
    shared = {"__doc__": _Padding.__doc__, "__module__": __name__, "mode": mode, "__signature__": signature}
    return [type(f"{name}Pad{rank}d", (_Padding,), {**shared, "rank": rank}) for rank in (1, 2, 3)]


ZeroPad1d, ZeroPad2d, ZeroPad3d = _make_paddings("Zero", "constant")
ConstantPad1d, ConstantPad2d, ConstantPad3d = _make_paddings("Constant", "constant")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _make_paddings("Reflection", "reflect")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _make_paddings("Replication", "replicate")
CircularPad1d, CircularPad2d, CircularPad3d = _make_paddings("Circular", "circular")

# -- dropout -----------------------------------------------------------------------------------------------------------


class Dropout(FunctionLayer):
    """Set a random share of the elements to zero in training mode; see :func:`tandem.nn.functional.dropout`.

    Args:
        p: the probability that an element is dropped.
        inplace: whether to write the result into the input.
    """

    function = staticmethod(F.dropout)
    shown = ("p", "inplace")
    __signature__ = Constructor({"p": 0.5, "inplace": False})

    def forward(self, *input: Tensor) -> Tensor:
        """The input with elements dropped, scaled."""
        return type(self).function(input[0], self.p, self.training, self.inplace)


def _make_dropout(name: str, function: Callable[..., Tensor]) -> Layer:
    return type(
        name,
        (Dropout,),
        {"__doc__": Dropout.__doc__, "__module__": __name__, "function": staticmethod(function)},
    )


Dropout1d, Dropout2d, Dropout3d = (
    _make_dropout(f"Dropout{rank}d", getattr(F, f"dropout{rank}d")) for rank in (1, 2, 3)
)
AlphaDropout = _make_dropout("AlphaDropout", F.alpha_dropout)
FeatureAlphaDropout = _make_dropout("FeatureAlphaDropout", F.feature_alpha_dropout)
