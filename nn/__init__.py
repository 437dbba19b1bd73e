"""``td.nn``: modules with PyTorch's names, which are pytrees; loaded at first use.

- functional.py, functions/: layers and losses as functions, ``td.nn.functional``
- function_layers.py: layers without parameters: activations, pooling, padding, dropout
- attention.py: MultiheadAttention
- calls.py: functional_call, stack_module_state
- containers.py: Sequential, ModuleList, ModuleDict
- computed.py: attributes that are computed: weight_norm, parametrizations
- constructors.py: constructors that are declared by their arguments
- convolution.py: Conv1d, Conv2d, ... and their transposes
- criteria.py: losses as modules
- default_generator.py: the generator of initializers and dropout
- hooks.py: hooks of modules
- init.py: initializers, ``td.nn.init``
- lazy_layers.py: LazyLinear, LazyConv2d, ...
- layers.py: Linear, Embedding, Flatten, PReLU
- module.py, parameter.py: Module and Parameter
- normalization.py: LayerNorm, RMSNorm, BatchNorm2d, InstanceNorm2d, ...
- parameter_containers.py: ParameterList, ParameterDict
- recurrent.py: RNN, LSTM, GRU
- recurrent_cells.py: RNNCell, LSTMCell, GRUCell
- state.py: state_dict, devices and dtypes
- transformer.py: Transformer, TransformerEncoder, TransformerDecoder and their layers
- tree.py: modules as pytrees
- utils: clip_grad_norm_, packed sequences, computed weights, ``td.nn.utils``
"""

from .. import lazy as _lazy
from ..eager.tensor.generator import default_generator as default_generator
from . import functional as functional
from . import init as init
from . import utils as utils
from .attention import MultiheadAttention as MultiheadAttention
from .calls import functional_call as functional_call
from .calls import stack_module_state as stack_module_state
from .containers import ModuleDict as ModuleDict
from .containers import ModuleList as ModuleList
from .containers import Sequential as Sequential
from .convolution import Conv1d as Conv1d
from .convolution import Conv2d as Conv2d
from .convolution import Conv3d as Conv3d
from .convolution import ConvTranspose1d as ConvTranspose1d
from .convolution import ConvTranspose2d as ConvTranspose2d
from .convolution import ConvTranspose3d as ConvTranspose3d
from .criteria import BCELoss as BCELoss
from .criteria import BCEWithLogitsLoss as BCEWithLogitsLoss
from .criteria import CosineEmbeddingLoss as CosineEmbeddingLoss
from .criteria import CrossEntropyLoss as CrossEntropyLoss
from .criteria import CTCLoss as CTCLoss
from .criteria import GaussianNLLLoss as GaussianNLLLoss
from .criteria import HingeEmbeddingLoss as HingeEmbeddingLoss
from .criteria import HuberLoss as HuberLoss
from .criteria import KLDivLoss as KLDivLoss
from .criteria import L1Loss as L1Loss
from .criteria import MarginRankingLoss as MarginRankingLoss
from .criteria import MSELoss as MSELoss
from .criteria import MultiLabelMarginLoss as MultiLabelMarginLoss
from .criteria import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from .criteria import MultiMarginLoss as MultiMarginLoss
from .criteria import NLLLoss as NLLLoss
from .criteria import NLLLoss2d as NLLLoss2d
from .criteria import PoissonNLLLoss as PoissonNLLLoss
from .criteria import SmoothL1Loss as SmoothL1Loss
from .criteria import SoftMarginLoss as SoftMarginLoss
from .criteria import TripletMarginLoss as TripletMarginLoss
from .criteria import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from .default_generator import manual_seed as manual_seed
from .function_layers import CELU as CELU
from .function_layers import ELU as ELU
from .function_layers import GELU as GELU
from .function_layers import GLU as GLU
from .function_layers import SELU as SELU
from .function_layers import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from .function_layers import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from .function_layers import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from .function_layers import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from .function_layers import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from .function_layers import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from .function_layers import AlphaDropout as AlphaDropout
from .function_layers import AvgPool1d as AvgPool1d
from .function_layers import AvgPool2d as AvgPool2d
from .function_layers import AvgPool3d as AvgPool3d
from .function_layers import ChannelShuffle as ChannelShuffle
from .function_layers import CircularPad1d as CircularPad1d
from .function_layers import CircularPad2d as CircularPad2d
from .function_layers import CircularPad3d as CircularPad3d
from .function_layers import ConstantPad1d as ConstantPad1d
from .function_layers import ConstantPad2d as ConstantPad2d
from .function_layers import ConstantPad3d as ConstantPad3d
from .function_layers import CosineSimilarity as CosineSimilarity
from .function_layers import Dropout as Dropout
from .function_layers import Dropout1d as Dropout1d
from .function_layers import Dropout2d as Dropout2d
from .function_layers import Dropout3d as Dropout3d
from .function_layers import FeatureAlphaDropout as FeatureAlphaDropout
from .function_layers import Fold as Fold
from .function_layers import Hardshrink as Hardshrink
from .function_layers import Hardsigmoid as Hardsigmoid
from .function_layers import Hardswish as Hardswish
from .function_layers import Hardtanh as Hardtanh
from .function_layers import LeakyReLU as LeakyReLU
from .function_layers import LocalResponseNorm as LocalResponseNorm
from .function_layers import LogSigmoid as LogSigmoid
from .function_layers import LogSoftmax as LogSoftmax
from .function_layers import LPPool1d as LPPool1d
from .function_layers import LPPool2d as LPPool2d
from .function_layers import LPPool3d as LPPool3d
from .function_layers import MaxPool1d as MaxPool1d
from .function_layers import MaxPool2d as MaxPool2d
from .function_layers import MaxPool3d as MaxPool3d
from .function_layers import MaxUnpool1d as MaxUnpool1d
from .function_layers import MaxUnpool2d as MaxUnpool2d
from .function_layers import MaxUnpool3d as MaxUnpool3d
from .function_layers import Mish as Mish
from .function_layers import PairwiseDistance as PairwiseDistance
from .function_layers import PixelShuffle as PixelShuffle
from .function_layers import PixelUnshuffle as PixelUnshuffle
from .function_layers import ReflectionPad1d as ReflectionPad1d
from .function_layers import ReflectionPad2d as ReflectionPad2d
from .function_layers import ReflectionPad3d as ReflectionPad3d
from .function_layers import ReLU as ReLU
from .function_layers import ReLU6 as ReLU6
from .function_layers import ReplicationPad1d as ReplicationPad1d
from .function_layers import ReplicationPad2d as ReplicationPad2d
from .function_layers import ReplicationPad3d as ReplicationPad3d
from .function_layers import RReLU as RReLU
from .function_layers import Sigmoid as Sigmoid
from .function_layers import SiLU as SiLU
from .function_layers import Softmax as Softmax
from .function_layers import Softmax2d as Softmax2d
from .function_layers import Softmin as Softmin
from .function_layers import Softplus as Softplus
from .function_layers import Softshrink as Softshrink
from .function_layers import Softsign as Softsign
from .function_layers import Tanh as Tanh
from .function_layers import Tanhshrink as Tanhshrink
from .function_layers import Threshold as Threshold
from .function_layers import Unfold as Unfold
from .function_layers import Upsample as Upsample
from .function_layers import UpsamplingBilinear2d as UpsamplingBilinear2d
from .function_layers import UpsamplingNearest2d as UpsamplingNearest2d
from .function_layers import ZeroPad1d as ZeroPad1d
from .function_layers import ZeroPad2d as ZeroPad2d
from .function_layers import ZeroPad3d as ZeroPad3d
from .layers import Bilinear as Bilinear
from .layers import Embedding as Embedding
from .layers import EmbeddingBag as EmbeddingBag
from .layers import Flatten as Flatten
from .layers import Identity as Identity
from .layers import Linear as Linear
from .layers import PReLU as PReLU
from .layers import Unflatten as Unflatten
from .lazy_layers import LazyBatchNorm1d as LazyBatchNorm1d
from .lazy_layers import LazyBatchNorm2d as LazyBatchNorm2d
from .lazy_layers import LazyBatchNorm3d as LazyBatchNorm3d
from .lazy_layers import LazyConv1d as LazyConv1d
from .lazy_layers import LazyConv2d as LazyConv2d
from .lazy_layers import LazyConv3d as LazyConv3d
from .lazy_layers import LazyConvTranspose1d as LazyConvTranspose1d
from .lazy_layers import LazyConvTranspose2d as LazyConvTranspose2d
from .lazy_layers import LazyConvTranspose3d as LazyConvTranspose3d
from .lazy_layers import LazyInstanceNorm1d as LazyInstanceNorm1d
from .lazy_layers import LazyInstanceNorm2d as LazyInstanceNorm2d
from .lazy_layers import LazyInstanceNorm3d as LazyInstanceNorm3d
from .lazy_layers import LazyLinear as LazyLinear
from .module import Module as Module
from .normalization import BatchNorm1d as BatchNorm1d
from .normalization import BatchNorm2d as BatchNorm2d
from .normalization import BatchNorm3d as BatchNorm3d
from .normalization import GroupNorm as GroupNorm
from .normalization import InstanceNorm1d as InstanceNorm1d
from .normalization import InstanceNorm2d as InstanceNorm2d
from .normalization import InstanceNorm3d as InstanceNorm3d
from .normalization import LayerNorm as LayerNorm
from .normalization import RMSNorm as RMSNorm
from .parameter import Parameter as Parameter
from .parameter_containers import ParameterDict as ParameterDict
from .parameter_containers import ParameterList as ParameterList
from .recurrent import GRU as GRU
from .recurrent import LSTM as LSTM
from .recurrent import RNN as RNN
from .recurrent import Recurrent as RNNBase
from .recurrent_cells import GRUCell as GRUCell
from .recurrent_cells import LSTMCell as LSTMCell
from .recurrent_cells import RecurrentCell as RNNCellBase
from .recurrent_cells import RNNCell as RNNCell
from .transformer import Transformer as Transformer
from .transformer import TransformerDecoder as TransformerDecoder
from .transformer import TransformerDecoderLayer as TransformerDecoderLayer
from .transformer import TransformerEncoder as TransformerEncoder
from .transformer import TransformerEncoderLayer as TransformerEncoderLayer

_lazy.refuse_unknown(__name__, "td.nn.")
