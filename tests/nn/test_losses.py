"""Loss modules against PyTorch, and losses against formulas and sums over all cases."""

import itertools

import numpy as np
import pytest
import tandem as td
from tandem import nn
from tandem.errors import ShapeError
from tandem.nn import functional as F

RNG = np.random.default_rng(0)


def draw(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def draw_signs(*shape):
    return np.sign(draw(*shape))


SCORES, OTHERS, MORE = draw(4, 5), draw(4, 5), draw(4, 5)
CLASSES, FLAGS = np.array([0, 4, 1, 2]), (draw(4, 5) > 0).astype(np.float32)
UNIT = RNG.uniform(0.05, 0.95, (4, 5)).astype(np.float32)
PROBABILITIES = RNG.dirichlet(np.ones(5), 4).astype(np.float32)
LOGS = np.log(PROBABILITIES)
FACTORS = RNG.uniform(0.5, 2, 5).astype(np.float32)
SIGNS = draw_signs(4)

# (name, positional arguments, keyword arguments, inputs)
MODULES = [
    ("CrossEntropyLoss", (FACTORS,), {"ignore_index": 4, "label_smoothing": 0.1}, (SCORES, CLASSES)),
    ("CrossEntropyLoss", (), {"reduction": "sum"}, (SCORES, PROBABILITIES)),
    ("NLLLoss", (None, None, 1), {}, (LOGS, CLASSES)),
    ("BCELoss", (FACTORS,), {}, (UNIT, FLAGS)),
    ("BCEWithLogitsLoss", (), {"pos_weight": FACTORS, "weight": FACTORS}, (SCORES, UNIT)),
    ("MultiMarginLoss", (2, 0.5, FACTORS), {}, (SCORES, CLASSES)),
    (
        "MultiLabelMarginLoss",
        (),
        {},
        (SCORES, np.array([[3, 0, -1, 1, 2], [-1] * 5, [0, 1, 2, 3, 4], [4, 4, -1, 0, 0]])),
    ),
    ("MultiLabelMarginLoss", (), {"reduction": "none"}, (SCORES[0], np.array([3, 0, -1, 1, 2]))),
    ("MultiLabelSoftMarginLoss", (FACTORS,), {}, (SCORES, FLAGS)),
    ("MSELoss", (), {}, (SCORES, OTHERS)),
    ("L1Loss", (), {"reduction": "none"}, (SCORES, OTHERS)),
    ("SmoothL1Loss", (), {"beta": 0.5}, (SCORES, OTHERS)),
    ("HuberLoss", ("sum", 0.5), {}, (SCORES, OTHERS)),
    ("KLDivLoss", (), {"reduction": "batchmean", "log_target": True}, (LOGS, LOGS[::-1].copy())),
    ("GaussianNLLLoss", (), {"full": True, "eps": 0.1}, (SCORES, OTHERS, UNIT)),
    ("PoissonNLLLoss", (False, True, None, 1e-3), {}, (UNIT, abs(OTHERS) * 3)),
    ("SoftMarginLoss", (), {}, (SCORES, np.sign(OTHERS))),
    ("HingeEmbeddingLoss", (0.5,), {}, (SCORES, np.sign(OTHERS))),
    ("CosineEmbeddingLoss", (0.2,), {}, (SCORES, OTHERS, SIGNS)),
    ("MarginRankingLoss", (0.3,), {"reduction": "sum"}, (SCORES[0], OTHERS[0], np.sign(MORE[0]))),
    ("TripletMarginLoss", (0.7, 1.0), {"swap": True}, (SCORES, OTHERS, MORE)),
    ("TripletMarginWithDistanceLoss", (), {"margin": 2.0}, (SCORES, OTHERS, MORE)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", range(len(MODULES)), ids=lambda at: f"{at}-{MODULES[at][0]}")
def test_loss_module_agrees(case):
    torch = pytest.importorskip("torch")
    name, args, kwargs, inputs = MODULES[case]
    losses, gradients = [], []
    for library, convert in ((td, td.asarray), (torch, torch.tensor)):
        given = [convert(x.copy()).requires_grad_(at == 0) for at, x in enumerate(inputs)]
        to_tensor = lambda x, convert=convert: convert(x) if isinstance(x, np.ndarray) else x  # noqa: E731
        loss = getattr(library.nn, name)(
            *map(to_tensor, args), **{k: to_tensor(v) for k, v in kwargs.items()}
        )
        result = loss(*given)
        result.sum().backward()
        losses.append(result.detach().numpy())
        gradients.append(given[0].grad.numpy())
        if library is td:
            np.testing.assert_allclose(td.jit(loss)(*map(td.asarray, inputs)).numpy(), losses[0], rtol=1e-5)
    np.testing.assert_allclose(*losses, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(*gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "reduction"),
    [({"size_average": False}, "sum"), ({"reduce": False}, "none"), ({"reduce": True}, "mean")],
)
def test_old_reductions_are_translated(options, reduction):
    loss = nn.MSELoss(**options)
    assert loss.reduction == reduction and repr(loss) == "MSELoss()"


def test_arguments_of_losses_are_attributes():
    loss = nn.CrossEntropyLoss(td.asarray(FACTORS), ignore_index=3)
    assert loss.ignore_index == 3 and loss.label_smoothing == 0 and list(loss.state_dict()) == ["weight"]
    assert loss.to(td.float64).weight.dtype is td.float64 and nn.BCELoss().weight is None


def multilabel_margin(scores, targets):
    targets = list(itertools.takewhile(lambda target: target >= 0, targets))
    others = [at for at in range(len(scores)) if at not in targets]
    return sum(max(0.0, 1 - scores[y] + scores[i]) for y in targets for i in others) / len(scores)


def test_multilabel_margin_is_the_sum_over_pairs():
    target = np.array([[3, 0, -1, 1, 2], [-1] * 5, [0, 1, 2, 3, 4], [2, 4, 1, -1, 0]])
    got = F.multilabel_margin_loss(td.asarray(SCORES), td.asarray(target), reduction="none")
    np.testing.assert_allclose(
        got.numpy(), [multilabel_margin(*pair) for pair in zip(SCORES, target)], rtol=1e-5
    )


# -- connectionist temporal classification -----------------------------------------------------------------------------
def normalize(scores):
    return scores - np.log(np.exp(scores).sum(-1, keepdims=True))


def ctc_by_enumeration(logs, target, blank):
    """Minus the logarithm of the sum over all paths that collapse to the target."""
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=logs.shape[0]):
        collapsed = [label for label, _ in itertools.groupby(path) if label != blank]
        if collapsed == list(target):
            total += np.exp(sum(logs[step, label] for step, label in enumerate(path)))
    return -np.log(total) if total else np.inf


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_is_the_sum_over_all_paths(blank):
    logs = normalize(draw(5, 4, 3))
    labels = [label for label in range(3) if label != blank]
    a, b = labels
    targets, counts, steps = (
        np.array([[a, b, a], [a, a, b], [b, b, 1], [b, 1, 1]]),
        [3, 2, 0, 1],
        [5, 4, 3, 2],
    )
    want = [
        ctc_by_enumeration(logs[:n, at], target[:count], blank)
        for at, (n, target, count) in enumerate(zip(steps, targets, counts))
    ]
    x = td.asarray(logs)
    got = F.ctc_loss(x, td.asarray(targets), steps, counts, blank, "none")
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)
    flat = np.concatenate([target[:count] for target, count in zip(targets, counts)])
    for lengths in (counts, td.asarray(counts)):
        again = F.ctc_loss(x, td.asarray(flat), td.asarray(steps), lengths, blank, "none")
        np.testing.assert_allclose(again.numpy(), want, rtol=1e-5)
    mean = F.ctc_loss(x, td.asarray(targets), steps, counts, blank).item()
    np.testing.assert_allclose(mean, np.mean(np.array(want) / np.maximum(counts, 1)), rtol=1e-5)
    single = F.ctc_loss(x[:, 0], td.asarray(targets[0]), [5], [3], blank, "none")
    assert single.shape == ()
    np.testing.assert_allclose(single.item(), want[0], rtol=1e-5)


def test_ctc_of_an_impossible_target():
    logs = td.asarray(normalize(draw(2, 1, 3)))
    assert F.ctc_loss(logs, td.asarray([[1, 1]]), [2], [2]).item() == np.inf
    assert F.ctc_loss(logs, td.asarray([[1, 1]]), [2], [2], zero_infinity=True).item() == 0
    with pytest.raises(ShapeError, match="targets 2"):
        F.ctc_loss(logs, td.asarray([[1], [1]]), [2], [1])


def test_ctc_gradient_under_transforms():
    scores, targets = td.asarray(draw(5, 2, 3)), td.asarray([[1, 2], [2, 2]])

    def loss(scores):
        return F.ctc_loss(td.log_softmax(scores, -1), targets, [5, 4], [2, 1])

    gradient = td.jit(td.grad(loss))(scores).numpy()
    np.testing.assert_allclose(gradient, td.grad(loss)(scores).numpy(), rtol=1e-4, atol=1e-6)
    assert td.check_grads(loss, (scores.to(td.float64),)) is None
    assert np.abs(gradient[4, 1]).max() == 0 and np.abs(gradient[3, 1]).max() > 0


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc_agrees_with_torch(reduction):
    torch = pytest.importorskip("torch")
    scores, targets = draw(6, 2, 4), np.array([[1, 2, 2], [3, 1, 0]])
    results = []
    for library, convert in ((td, td.asarray), (torch, torch.tensor)):
        x = convert(scores.copy()).requires_grad_()
        logs = library.nn.functional.log_softmax(x, -1)
        loss = library.nn.CTCLoss(reduction=reduction)(logs, convert(targets), (6, 5), (3, 2))
        loss.sum().backward()
        results.append((loss.detach().numpy(), x.grad.numpy()))
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.parametrize("shapes", [((3, 4), (3, 1)), ((4,), (3, 4))])
def test_unequal_shapes_broadcast_with_a_warning(name, shapes):
    input, target = (td.asarray(draw(*shape)) for shape in shapes)
    loss = getattr(F, name)
    for reduction in ("mean", "none"):
        with pytest.warns(UserWarning, match=f"{name}: the shapes .* broadcast to \\(3, 4\\)"):
            got = loss(input, target, reduction=reduction)
        whole = [td.broadcast_to(x, (3, 4)) for x in (input, target)]
        np.testing.assert_allclose(got.numpy(), loss(*whole, reduction=reduction).numpy(), rtol=1e-6)
    with pytest.raises(ShapeError, match=f"{name}: shapes .* do not broadcast"):
        loss(input, td.ones(5))
