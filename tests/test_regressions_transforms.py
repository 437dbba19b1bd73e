"""Programs that transforms once got wrong."""

import pytest
import tandem as td


def _noisy(generator):
    return lambda x: (x * generator.normal((3,), dtype=td.float64)).sum()


def _noise_differs(value, gradient, x):
    """Whether the noise of a linear function's value is other than that of its gradient."""
    return abs(float(value.detach()) - float((gradient * x).sum())) > 1e-12


@pytest.mark.parametrize("wrap", ["eager", "jit"])
def test_a_checkpointed_function_draws_the_same_numbers_when_it_runs_again(wrap):
    generator, x = td.Generator(0), td.asarray([1.0, 2.0, 3.0], dtype=td.float64)
    noisy = _noisy(generator)
    light = td.value_and_grad(lambda x: td.checkpoint(noisy)(x) + noisy(x) + td.checkpoint(noisy)(x))
    found = td.jit(light) if wrap == "jit" else light
    assert not _noise_differs(*found(x), x)
    after = generator.get_state()
    generator.manual_seed(0)
    for _ in range(3):
        noisy(x)
    assert (generator.get_state() == after).all()  # the second runs count for nothing


def test_what_a_checkpointed_function_draws_by_jitted_ones_is_the_same_again():
    generator, x = td.Generator(0), td.asarray([1.0, 2.0, 3.0], dtype=td.float64)
    draw = td.jit(lambda: generator.normal((3,), dtype=td.float64))
    given = td.jit(lambda x, generator: _noisy(generator)(x))
    light = td.checkpoint(lambda x: (x * draw()).sum() + given(x, generator))
    for _ in range(3):  # the second call of a jitted function may be answered by machine code
        assert not _noise_differs(*td.value_and_grad(light)(x), x)
        leaf = td.asarray(x.numpy(), requires_grad=True)
        value = td.checkpoint(lambda x: (x * draw()).sum())(leaf)
        value.backward()
        assert not _noise_differs(value, leaf.grad, x)


def test_checkpoint_with_a_policy_draws_again_in_step():
    generator, x = td.Generator(0), td.asarray([1.0, 2.0, 3.0], dtype=td.float64)
    policies = td.checkpoint_policies
    for policy in (policies.everything_saveable, policies.nothing_saveable, policies.dots_saveable):
        light = td.checkpoint(_noisy(generator), policy=policy)
        assert not _noise_differs(*td.value_and_grad(light)(x), x)


@pytest.mark.parametrize("argnums", [(0, 0), (0, -2), (1, 0, 1)])
@pytest.mark.parametrize("transform", [td.grad, td.value_and_grad, td.jacfwd, td.jacrev])
def test_an_argument_is_named_once(transform, argnums):
    with pytest.raises(td.errors.ArgumentError, match="twice"):
        transform(lambda x, y: x * y, argnums=argnums)(2.0, 3.0)
