"""``tandem.torch.utils.data``: data sets, samplers and the loader of batches, with PyTorch's names and arguments.

datasets.py: Dataset, TensorDataset, Subset, random_split, ...
samplers.py: RandomSampler, BatchSampler, ...
collate.py: default_collate
loader.py: DataLoader
"""

from .collate import default_collate as default_collate
from .collate import default_convert as default_convert
from .datasets import ChainDataset as ChainDataset
from .datasets import ConcatDataset as ConcatDataset
from .datasets import Dataset as Dataset
from .datasets import IterableDataset as IterableDataset
from .datasets import StackDataset as StackDataset
from .datasets import Subset as Subset
from .datasets import TensorDataset as TensorDataset
from .datasets import random_split as random_split
from .loader import DataLoader as DataLoader
from .loader import get_worker_info as get_worker_info
from .samplers import BatchSampler as BatchSampler
from .samplers import RandomSampler as RandomSampler
from .samplers import Sampler as Sampler
from .samplers import SequentialSampler as SequentialSampler
from .samplers import SubsetRandomSampler as SubsetRandomSampler
from .samplers import WeightedRandomSampler as WeightedRandomSampler
