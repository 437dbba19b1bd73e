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


def test_backward_to_a_tensor_that_retains_its_gradient_adds_it_once():
    x = td.ones(2).requires_grad_()
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward(inputs=[y])
    assert y.grad.tolist() == [3.0, 3.0] and x.grad is None


def test_backward_and_grad_refuse_contradicting_arguments():
    x, y = td.ones(2).requires_grad_(), td.ones(3).requires_grad_()
    with pytest.raises(ValueError, match="inputs is empty"):
        x.sum().backward(inputs=[])
    with pytest.raises(ValueError, match="allow_unused"):
        td.autograd.grad(x.sum(), (x, y), materialize_grads=True, allow_unused=False)
    assert td.autograd.grad(x.sum(), (x, y), materialize_grads=True)[1].tolist() == [0, 0, 0]


def test_gradcheck_checks_functions_that_save_in_a_context():
    def make(factor):
        class Scale(td.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, gradient):
                (x,) = ctx.saved_tensors
                return gradient * factor * x

        return Scale.apply

    x = td.asarray([0.5, 2.0], dtype=td.float64, requires_grad=True)
    index = td.asarray([1, 0])
    assert td.autograd.gradcheck(make(2), x) and td.autograd.gradgradcheck(make(2), x)
    assert td.autograd.gradcheck(lambda x, index: make(2)(x)[index], (x, index))
    assert not td.autograd.gradcheck(make(3), x, raise_exception=False)
    with pytest.raises(td.errors.GradientCheckError, match="argument 0"):
        td.autograd.gradcheck(make(3), x)
    assert td.autograd.gradcheck(lambda x, y: x * 2 + y.detach() ** 2, (x, td.ones(2, dtype=td.float64)))
    assert x.grad is None


def test_hook_of_several_tensors_gets_all_gradients():
    calls, a, b = [], td.ones(2).requires_grad_(), td.ones(2).requires_grad_()
    c, d = a * 2, b * 3
    graph = td.autograd.graph
    handle = graph.register_multi_grad_hook((c, d), lambda found: calls.append([g.tolist() for g in found]))
    first = graph.register_multi_grad_hook((c, d), calls.append, mode="any")
    (c + d).sum().backward(retain_graph=True)
    assert [[1.0, 1.0], [1.0, 1.0]] in calls and len(calls) == 2
    first.remove()
    handle.remove()
    c.sum().backward()
    assert len(calls) == 2
    with pytest.raises(TypeError, match="mode"):
        graph.register_multi_grad_hook((c,), calls.append, mode="some")


def test_hook_of_several_tensors_starts_anew_in_each_pass():
    """As in PyTorch: None for a tensor that a pass does not reach; a pass that fails leaves nothing to the next."""
    calls, a, b = [], td.ones(2).requires_grad_(), td.ones(2).requires_grad_()
    c, d = a * 2, b * 3
    register = td.autograd.graph.register_multi_grad_hook
    register((c, d), lambda gradients: calls.append([None if g is None else g.tolist() for g in gradients]))
    register((c, d), lambda gradient: calls.append(gradient.tolist()), mode="any")
    c.sum().backward(retain_graph=True)
    assert calls == [[1.0, 1.0], [[1.0, 1.0], None]]
    with d.register_hook(lambda gradient: {}[0]), pytest.raises(KeyError):
        (c + 2 * d).sum().backward(retain_graph=True)
    calls.clear()
    (3 * d).sum().backward(retain_graph=True)
    (c + d).sum().backward(retain_graph=True)
    assert calls == [[3.0, 3.0], [None, [3.0, 3.0]], [1.0, 1.0], [[1.0, 1.0], [1.0, 1.0]]]


def test_saved_tensor_hooks_can_be_disabled():
    graph = td.autograd.graph
    with (
        graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(td.errors.UnsupportedError, match="not here"),
        graph.saved_tensors_hooks(lambda x: x, lambda x: x),
    ):
        pass
    with graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        y = td.ones(2).requires_grad_() * 2
    y.sum().backward()
