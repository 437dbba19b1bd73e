"""PyTorch's functions of autograd: several roots, chosen inputs, modes, hooks after accumulation, gradcheck."""

import pytest
import tandem as td
from tandem import errors


def leaf(*values):
    return td.asarray(list(values), requires_grad=True)


def test_backward_of_several_tensors():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    td.autograd.backward([(x * y).sum(), x * 2.0], [None, td.asarray([10.0, 100.0])])
    assert x.grad.tolist() == [23.0, 204.0]
    assert y.grad.tolist() == [1.0, 2.0]
    with pytest.raises(errors.ArgumentError, match="2 tensors"):
        td.autograd.backward([x.sum(), y.sum()], [None])


def test_backward_fills_chosen_inputs():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    z = x * y
    (z * z).sum().backward(inputs=[x, z])
    assert x.grad.tolist() == [18.0, 64.0]
    assert z.grad.tolist() == [6.0, 16.0]
    assert y.grad is None
    td.autograd.backward((x * y).sum(), inputs=y)
    assert y.grad.tolist() == [1.0, 2.0]


def test_grad_of_batched_outputs():
    x = leaf(1.0, 2.0)
    rows = td.eye(2)
    (jacobian,) = td.autograd.grad(x * x, x, rows, is_grads_batched=True)
    assert jacobian.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    with pytest.raises(errors.ArgumentError, match="first axis"):
        td.autograd.grad(x * x, x, td.asarray(1.0), is_grads_batched=True)


def test_grad_materializes_zeros():
    x, y = leaf(1.0, 2.0), leaf(3.0)
    assert td.autograd.grad(x.sum(), [x, y], allow_unused=True)[1] is None
    assert td.autograd.grad(x.sum(), [x, y], materialize_grads=True)[1].tolist() == [0.0]


def test_grad_mode_is_set_and_restored():
    x = leaf(1.0)
    with td.set_grad_enabled(False):
        assert not (x * 2.0).requires_grad
        with td.set_grad_enabled(True):
            assert (x * 2.0).requires_grad
        assert not td.is_grad_enabled()
    assert td.is_grad_enabled()
    td.set_grad_enabled(False)
    assert not td.is_grad_enabled()
    td.set_grad_enabled(True)
    assert td.is_grad_enabled()

    @td.set_grad_enabled(False)
    def run():
        return td.is_grad_enabled()

    assert td.is_grad_enabled()
    assert not run()


def test_inference_mode_records_nothing():
    @td.inference_mode
    def run():
        return td.is_grad_enabled()

    assert not run()
    assert not td.inference_mode()(td.is_grad_enabled)()
    with td.inference_mode(False):
        assert td.is_grad_enabled()


def test_hooks_run_after_accumulation():
    x, seen = leaf(1.0, 2.0), []
    handle = x.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.tolist()))
    (x * 3.0).sum().backward()
    (x * 3.0).sum().backward()
    handle.remove()
    (x * 3.0).sum().backward()
    assert seen == [[3.0, 3.0], [6.0, 6.0]]
    with pytest.raises(errors.AutogradError, match="not a leaf"):
        (x * 2.0).register_post_accumulate_grad_hook(print)
    with pytest.raises(errors.ArgumentError, match="function"):
        x.register_post_accumulate_grad_hook(1)


def test_anomalies_name_the_operator():
    x = leaf(0.0)
    with td.autograd.detect_anomaly(), pytest.raises(errors.AutogradError, match="sqrt"):
        (td.sqrt(x) * 0.0).sum().backward()
    with td.autograd.detect_anomaly(check_nan=False):
        (td.sqrt(x) * 0.0).sum().backward()


def test_gradcheck_compares_with_differences():
    x = td.asarray([0.5, 1.5], dtype=td.float64)
    assert td.autograd.gradcheck(lambda x: td.sin(x), (x,))
    assert td.autograd.gradgradcheck(lambda x: td.sin(x), x)

    def wrong(x):
        return x * td.stop_gradient(x)

    assert not td.autograd.gradcheck(wrong, x, raise_exception=False)
    with pytest.raises(errors.GradientCheckError):
        td.autograd.gradcheck(wrong, x)
