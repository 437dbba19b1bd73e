"""``tandem.torch.utils``: data sets, samplers, loaders, checkpoints."""

from collections import namedtuple

import numpy as np
import pytest
import tandem.torch as torch
from tandem.errors import ArgumentError, ShapeError, ValueArgumentError
from tandem.torch.utils import data as td_data
from tandem.torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Squares(td_data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError
        return {"x": torch.tensor([float(index)]), "y": index * index, "name": str(index)}


class Stream(td_data.IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))

    def __len__(self):
        return self.count


def rows(loader):
    return [batch.tolist() for batch in loader]


def test_data_sets():
    x, y = torch.arange(4), torch.ones(4, 2)
    data = td_data.TensorDataset(x, y)
    assert len(data) == 4 and data[2][0].item() == 2 and data[1:3][1].shape == (2, 2)
    both = data + td_data.TensorDataset(x + 10, y)
    assert [both[i][0].item() for i in (0, 3, 4, 7, -1)] == [0, 3, 10, 13, 13] and len(both) == 8
    with pytest.raises(IndexError):
        both[8]
    subset = td_data.Subset(data, [3, 1])
    assert [subset[i][0].item() for i in range(len(subset))] == [3, 1]
    stacked = td_data.StackDataset(a=range(3), b=range(3, 6))
    assert stacked[1] == {"a": 1, "b": 4} and td_data.StackDataset(range(3))[2] == (2,)
    assert list(Stream(2) + Stream(3)) == [0, 1, 0, 1, 2]
    with pytest.raises(ShapeError, match=r"\[2, 4\]"):
        td_data.TensorDataset(x, y[:2])
    with pytest.raises(ValueArgumentError, match="ChainDataset"):
        td_data.ConcatDataset([Stream(2)])


def test_random_split():
    parts = td_data.random_split(range(11), [0.5, 0.3, 0.2], torch.Generator().manual_seed(3))
    assert [len(part) for part in parts] == [6, 3, 2]
    assert sorted(index for part in parts for index in part.indices) == list(range(11))
    again = td_data.random_split(range(11), [6, 3, 2], torch.Generator().manual_seed(3))
    assert [part.indices for part in again] == [part.indices for part in parts]
    with pytest.raises(ValueArgumentError, match="11 examples"):
        td_data.random_split(range(11), [5, 5])


def test_samplers():
    torch.manual_seed(0)
    assert list(td_data.SequentialSampler(range(3))) == [0, 1, 2]
    order = list(td_data.RandomSampler(range(20)))
    assert sorted(order) == list(range(20)) != order
    assert len(list(td_data.RandomSampler(range(3), num_samples=8))) == 8
    drawn = list(td_data.RandomSampler(range(3), replacement=True, num_samples=50))
    assert len(drawn) == 50 and set(drawn) == {0, 1, 2}
    assert sorted(td_data.SubsetRandomSampler([4, 7, 9])) == [4, 7, 9]
    weighted = td_data.WeightedRandomSampler([0.0, 1.0, 3.0], 400)
    counts = np.bincount(list(weighted), minlength=3)
    assert counts[0] == 0 and 2 * counts[1] < counts[2] and len(weighted) == 400
    assert sorted(td_data.WeightedRandomSampler([1.0, 2.0], 2, replacement=False)) == [0, 1]
    batches = td_data.BatchSampler(range(5), 2, drop_last=True)
    assert list(batches) == [[0, 1], [2, 3]] and len(batches) == 2
    for make in (
        lambda: td_data.BatchSampler(range(5), 0, False),
        lambda: td_data.WeightedRandomSampler([1.0], 2, replacement=False),
        lambda: td_data.RandomSampler([]),
    ):
        with pytest.raises(ValueArgumentError):
            make()


@pytest.mark.parametrize("workers", [0, 2])
def test_loader(workers):
    loader = td_data.DataLoader(Squares(7), batch_size=3, num_workers=workers)
    batches = list(loader)
    assert [batch["x"].shape for batch in batches] == [(3, 1), (3, 1), (1, 1)] and len(loader) == 3
    assert batches[1]["y"].tolist() == [9, 16, 25] and batches[1]["name"] == ["3", "4", "5"]
    assert len(list(td_data.DataLoader(Squares(7), 3, drop_last=True, num_workers=workers))) == 2
    numbers = td_data.TensorDataset(torch.arange(10))
    generator = torch.Generator().manual_seed(5)
    shuffled = td_data.DataLoader(numbers, 4, True, generator=generator, num_workers=workers)
    epochs = [[x for (batch,) in shuffled for x in batch.tolist()] for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(10)) and epochs[0] != epochs[1]
    single = td_data.DataLoader(Squares(3), batch_size=None, num_workers=workers)
    assert [one["y"] for one in single] == [0, 1, 4]
    mine = td_data.DataLoader(range(4), batch_sampler=[[3, 0], [1]], collate_fn=sum, num_workers=workers)
    assert list(mine) == [3, 1]
    next(iter(loader))  # a loop that ends early
    with pytest.raises(ZeroDivisionError):
        list(td_data.DataLoader([1], collate_fn=lambda batch: 1 / 0, num_workers=workers))


def test_loader_of_a_stream():
    assert rows(td_data.DataLoader(Stream(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert rows(td_data.DataLoader(Stream(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(td_data.DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    assert len(td_data.DataLoader(Stream(5), batch_size=2)) == 3


def test_loader_refuses_contradictions():
    sampler = td_data.SequentialSampler(range(3))
    for options in (
        {"shuffle": True, "sampler": sampler},
        {"batch_sampler": [[0]], "batch_size": 2},
        {"batch_size": None, "drop_last": True},
    ):
        with pytest.raises(ArgumentError):
            td_data.DataLoader(range(3), **options)
    with pytest.raises(ArgumentError, match="order of an IterableDataset"):
        td_data.DataLoader(Stream(3), shuffle=True)


def test_collation():
    Pair = namedtuple("Pair", "a b")
    got = td_data.default_collate([Pair(1.5, np.ones(2)), Pair(2.5, np.zeros(2))])
    assert isinstance(got, Pair) and got.a.dtype is torch.float64 and got.b.shape == (2, 2)
    flags, (numbers, text) = td_data.default_collate([(True, (1, "a")), (False, (2, "b"))])
    assert flags.dtype is torch.bool and numbers.dtype is torch.int64 and text == ("a", "b")
    with pytest.raises(ShapeError, match="several lengths"):
        td_data.default_collate([[1], [1, 2]])
    with pytest.raises(ArgumentError, match="collate_fn"):
        td_data.default_collate([object()])
    assert td_data.default_convert({"x": np.ones(2), "y": ["a"]})["y"] == ["a"]


def test_checkpoints():
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    x = torch.ones(4, 2)
    gradients = []
    for run in (
        net,
        lambda x: checkpoint(net, x, use_reentrant=False),
        lambda x: checkpoint_sequential(net, 2, x, use_reentrant=False),
    ):
        net.zero_grad()
        run(x).sum().backward()
        gradients.append(net[0].weight.grad.numpy().copy())
    for other in gradients[1:]:
        np.testing.assert_allclose(other, gradients[0], rtol=1e-6)
    assert torch.utils.checkpoint.checkpoint is checkpoint
    with pytest.raises(AttributeError):
        torch.utils.tensorboard  # noqa: B018


def test_mixed_precision_modules():
    from tandem.torch.amp import GradScaler, autocast
    from tandem.torch.cuda.amp import GradScaler as CudaGradScaler
    from tandem.torch.cuda.amp import autocast as cuda_autocast

    assert GradScaler is CudaGradScaler is torch.optim.GradScaler
    x = torch.ones(2, 2)
    with autocast("cpu", dtype=torch.bfloat16):
        assert (x @ x).dtype is torch.bfloat16
    with cuda_autocast():
        assert torch.is_autocast_enabled("cuda") and (x @ x).dtype is torch.float32
    assert torch.cuda.is_available() in (True, False) and torch.amp.is_autocast_available("cpu")
