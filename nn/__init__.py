"""``td.nn``: modules with PyTorch's names, which are pytrees; loaded at first use.

- activations.py, losses.py, functional.py: layers and losses as functions, ``td.nn.functional``
- attention.py: MultiheadAttention
- calls.py: functional_call
- compiled.py: functions that run as compiled code when calls repeat
- containers.py: Sequential, ModuleList, ModuleDict
- convolution.py: Conv1d, Conv2d, ... and their transposes
- criteria.py: losses as modules
- default_generator.py: the generator of initializers and dropout
- init.py: initializers, ``td.nn.init``
- layers.py: Linear, Embedding, Dropout, activations and pooling as modules
- module.py, parameter.py: Module and Parameter
- normalization.py: LayerNorm, RMSNorm, BatchNorm2d, ...
- recurrent.py: RNN, LSTM, GRU
- recurrent_cells.py: RNNCell, LSTMCell, GRUCell
- state.py: state_dict, devices and dtypes
- tree.py: modules as pytrees
- utils.py: clip_grad_norm_ and others, ``td.nn.utils``
"""

from ..eager.tensor.generator import default_generator as default_generator
from . import functional as functional
from . import init as init
from . import utils as utils
from .attention import MultiheadAttention as MultiheadAttention
from .calls import functional_call as functional_call
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
from .criteria import CrossEntropyLoss as CrossEntropyLoss
from .criteria import GaussianNLLLoss as GaussianNLLLoss
from .criteria import HuberLoss as HuberLoss
from .criteria import KLDivLoss as KLDivLoss
from .criteria import L1Loss as L1Loss
from .criteria import MSELoss as MSELoss
from .criteria import NLLLoss as NLLLoss
from .criteria import SmoothL1Loss as SmoothL1Loss
from .default_generator import manual_seed as manual_seed
from .layers import ELU as ELU
from .layers import GELU as GELU
from .layers import GLU as GLU
from .layers import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from .layers import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from .layers import AvgPool1d as AvgPool1d
from .layers import AvgPool2d as AvgPool2d
from .layers import Dropout as Dropout
from .layers import Dropout2d as Dropout2d
from .layers import Embedding as Embedding
from .layers import Flatten as Flatten
from .layers import Hardtanh as Hardtanh
from .layers import Identity as Identity
from .layers import LeakyReLU as LeakyReLU
from .layers import Linear as Linear
from .layers import LogSigmoid as LogSigmoid
from .layers import LogSoftmax as LogSoftmax
from .layers import MaxPool1d as MaxPool1d
from .layers import MaxPool2d as MaxPool2d
from .layers import ReLU as ReLU
from .layers import ReLU6 as ReLU6
from .layers import Sigmoid as Sigmoid
from .layers import SiLU as SiLU
from .layers import Softmax as Softmax
from .layers import Softplus as Softplus
from .layers import Tanh as Tanh
from .layers import Unflatten as Unflatten
from .module import Module as Module
from .normalization import BatchNorm1d as BatchNorm1d
from .normalization import BatchNorm2d as BatchNorm2d
from .normalization import BatchNorm3d as BatchNorm3d
from .normalization import GroupNorm as GroupNorm
from .normalization import LayerNorm as LayerNorm
from .normalization import RMSNorm as RMSNorm
from .parameter import Parameter as Parameter
from .recurrent import GRU as GRU
from .recurrent import LSTM as LSTM
from .recurrent import RNN as RNN
from .recurrent_cells import GRUCell as GRUCell
from .recurrent_cells import LSTMCell as LSTMCell
from .recurrent_cells import RNNCell as RNNCell
