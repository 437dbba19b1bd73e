"""Functions of ``tandem.torch`` that are methods, or in ``nn.functional``, ``linalg`` and ``random``, of PyTorch."""

import numpy as np
import pytest
import tandem as td
import tandem.torch as torch

try:
    import torch as pytorch
except ImportError:
    pytorch = None

MATRIX = np.array([[1.0, 2.0, 0.5], [4.0, -1.0, 6.0]], np.float32)
CALLS = {
    "batch_norm": lambda m, x: m.batch_norm(
        x, x[0], x[1], m.zeros(3), m.ones(3), False, momentum=0.1, eps=1e-5, cudnn_enabled=False
    ),
    "batch_norm of the batch": lambda m, x: m.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False),
    "instance_norm": lambda m, x: m.instance_norm(
        x[None], m.ones(2), m.zeros(2), None, None, True, 0.1, 1e-5, False
    ),
    "group_norm": lambda m, x: m.group_norm(x[None], 2, x[:, 0], x[:, 1], 1e-5, False),
    "embedding": lambda m, x: m.embedding(x, m.tensor([[1, 0], [0, 0]])),
    "cosine_similarity": lambda m, x: m.cosine_similarity(x, x + 1, 1),
    "pairwise_distance": lambda m, x: m.pairwise_distance(x, x + 1),
    "pixel_shuffle": lambda m, x: m.pixel_shuffle(m.arange(16.0).reshape(1, 4, 2, 2), 2),
    "pixel_unshuffle": lambda m, x: m.pixel_unshuffle(m.arange(16.0).reshape(1, 1, 4, 4), 2),
    "channel_shuffle": lambda m, x: m.channel_shuffle(m.arange(16.0).reshape(1, 4, 2, 2), 2),
    "prelu": lambda m, x: m.prelu(x, m.tensor([0.25])),
    "selu": lambda m, x: m.selu(x),
    "celu": lambda m, x: m.celu(x, alpha=0.5),
    "rrelu": lambda m, x: m.rrelu(x),
    "threshold": lambda m, x: m.threshold(x, 1.0, 20.0),
    "rms_norm": lambda m, x: m.rms_norm(x, (3,)),
    "adaptive_avg_pool1d": lambda m, x: m.adaptive_avg_pool1d(x[None], 2),
    "detach": lambda m, x: m.detach(x),
    "fill": lambda m, x: m.fill(x, 3),
    "scalar_tensor": lambda m, x: m.scalar_tensor(3),
    "scalar_tensor of a dtype": lambda m, x: m.scalar_tensor(3, dtype=m.int64),
    "vander": lambda m, x: m.linalg.vander(x),
    "vander of integers": lambda m, x: m.linalg.vander(m.tensor([1, 2, 3]), N=4),
    "in place": lambda m, x: m.sqrt_(m.exp_(x.clone())),
    "clamp_": lambda m, x: m.clamp_(x.clone(), 0, 2),
    "fill_": lambda m, x: m.fill_(x.clone(), 3),
    "selu_": lambda m, x: m.selu_(x.clone()),
}


@pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("name", CALLS)
def test_functions_agree_with_pytorch(name):
    ours, theirs = CALLS[name](torch, torch.tensor(MATRIX)), CALLS[name](pytorch, pytorch.tensor(MATRIX))
    assert ours.shape == tuple(theirs.shape) and ours.dtype.name == str(theirs.dtype).rpartition(".")[2]
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-5, atol=1e-6)


def test_functions_agree_with_recorded_values():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert torch.embedding(x, torch.tensor([1, 0])).tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert torch.linalg.vander(torch.tensor([[2, 3]]), N=3).tolist() == [[[1, 2, 4], [1, 3, 9]]]
    assert torch.scalar_tensor(3).dtype == td.float32 and torch.fill(x, 7)[0].tolist() == [7.0, 7.0]


def test_fill_has_no_gradient():
    x = torch.ones(2, requires_grad=True)
    torch.fill(x, 3.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_batch_norm_updates_running_moments():
    mean, var = torch.zeros(3), torch.ones(3)
    torch.batch_norm(torch.tensor(MATRIX), None, None, mean, var, True, 0.5, 1e-5, False)
    np.testing.assert_allclose(mean.numpy(), 0.5 * MATRIX.mean(0))
    np.testing.assert_allclose(var.numpy(), 0.5 + 0.5 * MATRIX.var(0, ddof=1), rtol=1e-6)


def test_in_place_methods_are_functions():
    names = {name for name in dir(torch.zeros(1)) if name.endswith("_") and not name.startswith("_")}
    assert len(names) > 150 and names <= {*dir(torch)}
    assert all(getattr(torch, name) is getattr(td.Tensor, name) for name in names)
    assert not hasattr(torch, "map2_") and "map2_" not in dir(torch)


@pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")
def test_in_place_functions_of_pytorch_exist():
    names = {name for name in dir(pytorch) if name.endswith("_") and not name.startswith("_")}
    assert {name for name in names if not hasattr(torch, name)} <= {
        "alpha_dropout_",
        "as_strided_",
        "dropout_",
        "embedding_renorm_",
        "feature_alpha_dropout_",
        "feature_dropout_",
        "resize_as_sparse_",
    }


def test_in_place_function_writes_its_argument():
    x = torch.zeros(2)
    assert torch.exp_(x) is x and torch.add_(x, 1).tolist() == x.tolist() == [2.0, 2.0]


def test_linalg_error_is_what_functions_raise():
    assert torch.linalg.LinAlgError is td.errors.LinearAlgebraError
    with pytest.raises(torch.linalg.LinAlgError, match="cholesky"):
        torch.linalg.cholesky(-torch.eye(2))


def test_version_is_that_of_tandem():
    assert torch.__version__ == td.__version__


def test_fork_rng_restores_the_generator():
    torch.manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        inside = torch.rand(3)
        with pytest.raises(KeyError), torch.random.fork_rng():
            torch.random.manual_seed(5)
            raise KeyError
        assert not torch.equal(torch.rand(3), inside)
    assert torch.equal(torch.rand(3), inside)
    with torch.random.fork_rng(enabled=False):
        torch.random.manual_seed(0)
    assert torch.equal(torch.rand(3), inside) and torch.random.initial_seed() == 0
    assert torch.random.split is td.random.split
