"""``tandem.torch``: calls whose meaning in PyTorch is not NumPy's."""

import numpy as np
import pytest
import tandem as td
import tandem.torch as torch
from hypothesis import given, settings
from hypothesis import strategies as st

X = torch.tensor([[1.0, 5.0, 2.0], [7.0, 4.0, 9.0]])


@settings(deadline=None)
@given(st.integers(0, 9), st.integers(1, 10))
def test_split_takes_the_size_of_a_part(length, size):
    parts = torch.split(torch.arange(length), size)
    assert [part.tolist() for part in parts] == [
        list(range(length))[at : at + size] for at in range(0, max(length, 1), size)
    ]


def test_split_takes_sizes():
    assert [part.shape for part in torch.split(X, [1, 2], 1)] == [(2, 1), (2, 2)]
    assert [part.shape for part in torch.chunk(torch.arange(7), 3)] == [(3,), (3,), (1,)]
    assert [part.shape for part in torch.tensor_split(torch.arange(7), 3)] == [(3,), (2,), (2,)]
    for call, text in (
        (lambda: torch.split(X, [1, 1], 1), "add up to 3"),
        (lambda: torch.split(X, 0), "positive"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_extrema_take_an_axis_by_position():
    values, indices = torch.max(X, 1)
    assert values.tolist() == [5.0, 9.0] and indices.tolist() == [1, 2]
    assert torch.min(X, 0, True).indices.tolist() == [[0, 1, 0]]
    assert torch.max(X).item() == 9.0 and torch.max(X, 4.0 * td.ones(3)).tolist()[0] == [4.0, 5.0, 4.0]
    assert torch.max(X, other=X + 1.0).tolist() == (X + 1.0).tolist()


def test_medians_are_elements():
    assert torch.median(X).item() == 4.0 and torch.median(X, 0).values.tolist() == [1.0, 4.0, 2.0]
    assert torch.nanmedian(torch.tensor([1.0, td.nan, 3.0])).item() == 1.0


@pytest.mark.parametrize("name", ["std", "var"])
def test_spread_divides_by_one_less(name):
    function, exact = getattr(torch, name), getattr(np, name)
    assert np.allclose(function(X).numpy(), exact(X.numpy(), ddof=1))
    assert np.allclose(function(X, False).numpy(), exact(X.numpy()))
    assert np.allclose(function(X, 1, True, True).numpy(), exact(X.numpy(), 1, ddof=1, keepdims=True))
    assert np.allclose(function(X, dim=0, correction=0).numpy(), exact(X.numpy(), 0))
    both = getattr(torch, f"{name}_mean")(X, 1)
    assert np.allclose(both[0].numpy(), exact(X.numpy(), 1, ddof=1)) and np.allclose(
        both[1].numpy(), X.numpy().mean(1)
    )


def test_order_takes_an_axis_by_position():
    assert torch.sort(X, 1, True).indices.tolist() == [[1, 2, 0], [2, 0, 1]]
    assert torch.argsort(X, 0).tolist() == [[0, 1, 0], [1, 0, 1]]
    assert torch.topk(X, 2, 1, False).values.tolist() == [[1.0, 2.0], [4.0, 7.0]]
    assert torch.kthvalue(X, 2, 1, True).values.tolist() == [[2.0], [7.0]]
    assert torch.mode(torch.tensor([2, 1, 2])).indices.item() == 2
    assert [x.tolist() for x in torch.unique(torch.tensor([3, 1, 3]), return_counts=True)] == [[1, 3], [1, 2]]


def test_axes_are_exchanged_and_tensors_tiled():
    x = td.zeros((2, 3, 4))
    assert torch.transpose(x, 0, 2).shape == (4, 3, 2) and torch.t(X).shape == (3, 2)
    assert torch.repeat(X, 2, 1).tolist() == torch.tile(X, (2, 1)).tolist() == [*X.tolist()] * 2
    with pytest.raises(ValueError, match="one for each axis"):
        torch.repeat(X, 2)
    with pytest.raises(ValueError, match="at most two axes"):
        torch.t(x)


def test_positions_are_rows():
    assert torch.nonzero(X > 4).tolist() == torch.argwhere(X > 4).tolist() == [[0, 1], [1, 0], [1, 2]]
    assert [x.tolist() for x in torch.nonzero(X > 4, as_tuple=True)] == [[0, 1, 1], [1, 0, 2]]
    assert [x.tolist() for x in torch.where(X > 4)] == [[0, 1, 1], [1, 0, 2]]
    assert torch.where(X > 4, X, 0.0).tolist() == [[0.0, 5.0, 0.0], [7.0, 0.0, 9.0]]


def test_elements_are_selected():
    assert torch.gather(X, 1, torch.tensor([[2], [0]])).tolist() == [[2.0], [7.0]]
    assert torch.gather(X, 0, torch.tensor([[1]])).tolist() == [[7.0]]
    assert torch.index_select(X, 1, torch.tensor([2, 0])).tolist() == [[2.0, 1.0], [9.0, 7.0]]
    assert torch.masked_select(X, torch.tensor([True, False, True])).tolist() == [1.0, 2.0, 7.0, 9.0]
    assert torch.narrow(X, 1, -2, 2).tolist() == [[5.0, 2.0], [4.0, 9.0]]
    with pytest.raises(IndexError, match="exceed an axis"):
        torch.narrow(X, 1, 2, 2)


def test_meshgrid_and_cross_have_other_defaults():
    rows, _ = torch.meshgrid(torch.arange(2), torch.arange(3))
    assert rows.tolist() == [[0, 0, 0], [1, 1, 1]] and td.meshgrid(torch.arange(2), torch.arange(3))[
        0
    ].shape == (3, 2)
    a, b = np.random.default_rng(0).normal(size=(2, 3, 3))
    assert np.allclose(torch.cross(td.asarray(a), td.asarray(b)).numpy(), np.cross(a, b, axis=0))


def test_arithmetic_has_its_options():
    assert (
        torch.add(X, X, alpha=2).tolist() == (X * 3.0).tolist()
        and torch.sub(X, X, alpha=1).tolist() == [[0.0] * 3] * 2
    )
    ints = torch.tensor([-7, 7])
    assert torch.div(ints, 2, rounding_mode="trunc").tolist() == [-3, 3]
    assert torch.div(ints, 2, rounding_mode="floor").tolist() == [-4, 3]
    assert torch.div(torch.tensor([-7.0]), 2, rounding_mode="trunc").tolist() == [-3.0]
    assert torch.equal(X, X) is True and torch.equal(X, X + 1.0) is False
    with pytest.raises(ValueError, match="rounding_mode"):
        torch.div(ints, 2, rounding_mode="up")


def test_tensor_copies_and_from_numpy_shares():
    array = np.ones(3, np.float32)
    copied, shared = torch.tensor(array), torch.from_numpy(array)
    array[0] = 5.0
    assert copied.tolist() == [1.0] * 3 and shared.tolist() == [5.0, 1.0, 1.0]
    assert torch.tensor(1.0).dtype is torch.float and torch.tensor(1).dtype is torch.long
    with pytest.raises(TypeError, match="NumPy array"):
        torch.from_numpy([1.0])


def test_functions_are_transformed():
    def program(x):
        return torch.std(x, 1) + torch.max(x, 1).values + torch.split(x, 2, 1)[1][:, 0]

    wanted = program(X)
    assert np.allclose(td.jit(program)(X).numpy(), wanted.numpy())
    assert td.grad(lambda x: program(x).sum())(X).shape == X.shape
    row = td.vmap(lambda r: torch.sort(r, 0).values)(X)
    assert row.tolist() == [[1.0, 2.0, 5.0], [4.0, 7.0, 9.0]]


def test_methods_are_those_of_tandem():
    assert torch.Tensor is td.Tensor and X.std().item() == td.std(X).item() != torch.std(X).item()


def test_modules_of_networks_are_imported_as_in_pytorch():
    import tandem.torch.nn.functional as functional
    from tandem.torch import nn, optim
    from tandem.torch.optim import lr_scheduler

    assert nn.Linear is td.nn.Linear and functional.relu is td.nn.functional.relu
    assert optim.Adam is td.optim.Adam and lr_scheduler.StepLR is td.optim.lr_scheduler.StepLR
    with pytest.raises(AttributeError, match="Linear"):
        nn.Linaer  # noqa: B018


def test_flips_are_copies_as_in_pytorch():
    x = td.asarray([[1.0, 2.0], [3.0, 4.0]])
    torch = td.torch
    results = [
        torch.flip(x, [0]),
        torch.flip(x, 0, 1),
        torch.fliplr(x),
        torch.flipud(x),
        torch.rot90(x, 1, [0, 1]),
    ]
    wanted = [[[3, 4], [1, 2]], [[4, 3], [2, 1]], [[2, 1], [4, 3]], [[3, 4], [1, 2]], [[2, 4], [1, 3]]]
    x.zero_()
    assert [result.tolist() for result in results] == wanted


def test_squeeze_skips_axes_of_other_lengths():
    torch, x = td.torch, td.zeros((1, 3, 1))
    shapes = [torch.squeeze(x, dim).shape for dim in (0, 1, -1, (0, 1), (0, 2), None)]
    assert shapes == [(3, 1), (1, 3, 1), (1, 3), (3, 1), (3,), (3,)]
    with pytest.raises(IndexError):
        torch.squeeze(x, 3)


@pytest.mark.parametrize("function", [torch.complex, torch.polar])
def test_parts_of_complex_numbers_are_tensors(function):
    for args in ((1.0, 0.3), (torch.ones(2), 0.3), (1, torch.ones(2))):
        with pytest.raises(TypeError, match="takes tensors"):
            function(*args)
