"""Padded and packed sequences, and recurrent layers on them."""

import numpy as np
import pytest
import tandem as td
from tandem import nn
from tandem.errors import ArgumentError, ShapeError, ValueArgumentError
from tandem.nn.utils import rnn

RNG = np.random.default_rng(0)
LENGTHS = [2, 4, 1, 3]
SEQUENCES = [RNG.standard_normal((length, 3)).astype(np.float32) for length in LENGTHS]
PADDED = np.zeros((4, 4, 3), np.float32)
for at, sequence in enumerate(SEQUENCES):
    PADDED[at, : len(sequence)] = sequence


def assert_close(ours, want, tolerance=1e-5):
    ours = ours.detach().numpy() if isinstance(ours, td.Tensor) else ours
    np.testing.assert_allclose(ours, want, rtol=tolerance, atol=tolerance)


def test_sequences_are_padded_and_unpadded():
    tensors = [td.asarray(sequence) for sequence in SEQUENCES]
    assert_close(rnn.pad_sequence(tensors, batch_first=True), PADDED)
    assert_close(rnn.pad_sequence(tensors), PADDED.swapaxes(0, 1))
    left = rnn.pad_sequence(tensors, batch_first=True, padding_value=-1.0, padding_side="left")
    assert left[2, :3].tolist() == [[-1.0] * 3] * 3
    assert_close(left[2, 3], SEQUENCES[2][0])
    for back, sequence in zip(rnn.unpad_sequence(td.asarray(PADDED), LENGTHS, batch_first=True), SEQUENCES):
        assert_close(back, sequence)
    with pytest.raises(ArgumentError, match="at least one"):
        rnn.pad_sequence([])
    with pytest.raises(ValueArgumentError, match="'up'"):
        rnn.pad_sequence(tensors, padding_side="up")


def test_packed_elements_are_ordered_by_step():
    packed = rnn.pack_padded_sequence(td.asarray(PADDED), td.asarray(LENGTHS), True, enforce_sorted=False)
    order = [1, 3, 0, 2]
    want = [SEQUENCES[at][step] for step in range(4) for at in order if LENGTHS[at] > step]
    assert_close(packed.data, np.stack(want))
    assert packed.batch_sizes.tolist() == [4, 3, 2, 1] and packed.sorted_indices.tolist() == order
    assert packed.unsorted_indices.tolist() == [2, 0, 3, 1] and packed.lengths.tolist() == [4, 3, 2, 1]
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True)
    assert_close(padded, PADDED)
    assert lengths.tolist() == LENGTHS
    padded, _ = rnn.pad_packed_sequence(packed, padding_value=9.0, total_length=6)
    assert padded.shape == (6, 4, 3) and padded[5].min().item() == 9 and padded[1, 2, 0].item() == 9
    for back, sequence in zip(rnn.unpack_sequence(packed.to(td.float64)), SEQUENCES):
        assert back.dtype is td.float64
        assert_close(back, sequence)


def test_wrong_lengths_are_refused():
    x = td.asarray(PADDED)
    with pytest.raises(ShapeError, match="3 lengths for 4"):
        rnn.pack_padded_sequence(x, [1, 1, 1])
    with pytest.raises(ValueArgumentError, match="enforce_sorted=False"):
        rnn.pack_padded_sequence(x, LENGTHS, batch_first=True)
    with pytest.raises(ValueArgumentError, match="from 1 to 4"):
        rnn.pack_padded_sequence(x, [5, 1, 1, 0])
    with pytest.raises(ValueArgumentError, match="below the longest"):
        rnn.pad_packed_sequence(rnn.pack_sequence([td.ones(3)]), total_length=2)
    with pytest.raises(ShapeError, match="packed elements"):
        nn.GRU(2, 3)(rnn.pack_sequence([td.ones((3, 4))]))


@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}])
@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_packed_sequences_are_computed_one_by_one(name, options):
    layer = getattr(nn, name)(3, 4, batch_first=True, **options)
    packed = rnn.pack_sequence([td.asarray(sequence) for sequence in SEQUENCES], enforce_sorted=False)
    output, state = layer(packed)
    jitted, _ = td.jit(lambda layer, packed: layer(packed))(layer, packed)
    assert_close(jitted.data, output.data.detach().numpy())
    for at, back in enumerate(rnn.unpack_sequence(output)):
        alone, alone_state = layer(td.asarray(SEQUENCES[at]))
        assert_close(back, alone.detach().numpy())
        for one, two in zip(
            state if name == "LSTM" else [state], alone_state if name == "LSTM" else [alone_state]
        ):
            assert_close(one[:, at], two.detach().numpy())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("GRU", {"bidirectional": True}),
        ("LSTM", {"num_layers": 2, "proj_size": 2, "bidirectional": True}),
        ("LSTM", {}),
        ("RNN", {"bias": False, "nonlinearity": "relu"}),
    ],
)
def test_packed_sequences_agree_with_torch(name, options):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn, name)(3, 4, **options)
    ours = getattr(nn, name)(3, 4, **options)
    assert list(ours.state_dict()) == list(theirs.state_dict()) and repr(ours) == repr(theirs)
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    sizes = [options.get("proj_size", 4), 4][: 2 if name == "LSTM" else 1]
    count = options.get("num_layers", 1) * (2 if "bidirectional" in options else 1)
    states = [RNG.standard_normal((count, 4, size)).astype(np.float32) for size in sizes]
    results = []
    for library, convert, module in ((td, td.asarray, ours), (torch, torch.tensor, theirs)):
        utils = library.nn.utils.rnn
        given = [convert(state) for state in states]
        sequences = [convert(sequence) for sequence in SEQUENCES]
        packed = utils.pack_sequence(sequences, enforce_sorted=False)
        output, state = module(packed, tuple(given) if name == "LSTM" else given[0])
        padded, _ = utils.pad_packed_sequence(output)
        states_ = state if name == "LSTM" else (state,)
        ((padded**2).sum() + sum((one**3).sum() for one in states_)).backward()
        results.append([padded, *states_, *(p.grad for p in module.parameters())])
    for one, two in zip(*results):
        assert_close(one, two.detach().numpy(), 1e-4)


def test_projected_states():
    lstm = nn.LSTM(3, 4, proj_size=2)
    output, (h, c) = lstm(td.asarray(PADDED))
    assert output.shape == (4, 4, 2) and h.shape == (1, 4, 2) and c.shape == (1, 4, 4)
    assert [tuple(w.shape) for w in lstm.all_weights[0]] == [(16, 3), (16, 2), (16,), (16,), (2, 4)]
    lstm.flatten_parameters()
    with pytest.raises(ValueArgumentError, match="proj_size"):
        nn.LSTM(3, 4, proj_size=4)
