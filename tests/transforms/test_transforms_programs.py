"""Typical differentiated programs, eager and jitted: gradients are checked and the programs reach their results."""

import numpy as np
import pytest
import tandem as td

RNG = np.random.default_rng(3)


def f64(values):
    return td.asarray(values, dtype=td.float64)


def draw(*shape):
    return f64(RNG.normal(size=shape))


# -- a fluid: advection and a few steps of pressure projection ---------------------------------------------------------
def advect(field, vx, vy):
    def shifted(f, axis, by):
        return td.roll(f, by, axis)

    dx = (shifted(field, 1, -1) - shifted(field, 1, 1)) / 2
    dy = (shifted(field, 0, -1) - shifted(field, 0, 1)) / 2
    return field - 0.1 * (vx * dx + vy * dy)


def project(vx, vy):
    def around(p):
        return td.roll(p, 1, 0) + td.roll(p, -1, 0) + td.roll(p, 1, 1) + td.roll(p, -1, 1)

    divergence = (td.roll(vx, -1, 1) - td.roll(vx, 1, 1) + td.roll(vy, -1, 0) - td.roll(vy, 1, 0)) / 2
    p = td.zeros_like(divergence)
    for _ in range(5):
        p = (around(p) - divergence) / 4
    return vx - (td.roll(p, -1, 1) - td.roll(p, 1, 1)) / 2, vy - (td.roll(p, -1, 0) - td.roll(p, 1, 0)) / 2


def fluid(v):
    vx, vy, smoke = v["x"], v["y"], SMOKE
    for _ in range(3):
        vx, vy = project(advect(vx, vx, vy), advect(vy, vx, vy))
        smoke = advect(smoke, vx, vy)
    return ((smoke - TARGET) ** 2).mean()


SMOKE, TARGET = draw(6, 6), draw(6, 6)


# -- others ------------------------------------------------------------------------------------------------------------
INPUTS, LABELS = draw(12, 4), f64(RNG.integers(0, 2, 12))


def recurrent(p):
    h = td.zeros((2, 5), dtype=td.float64)
    for step in range(6):
        h = td.tanh(h @ p["hh"] + INPUTS[2 * step : 2 * step + 2] @ p["xh"] + p["b"])
    return (h @ p["out"]).sum() ** 2


def logistic(p):
    scores = INPUTS @ p["w"] + p["b"]
    return (td.softplus(scores) - LABELS * scores).mean() + 0.01 * (p["w"] ** 2).sum()


def kernel(p):
    """The negative log marginal likelihood of a Gaussian process, by a Cholesky factorisation written out."""
    x = INPUTS[:5, :2]
    square = ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1)
    k = td.exp(p["amplitude"]) * td.exp(-square * td.exp(p["scale"])) + 0.1 * td.eye(5, dtype=td.float64)
    low = {}
    for j in range(5):
        low[j, j] = td.sqrt(k[j, j] - sum(low[j, m] ** 2 for m in range(j)))
        for i in range(j + 1, 5):
            low[i, j] = (k[i, j] - sum(low[i, m] * low[j, m] for m in range(j))) / low[j, j]
    solved = []
    for i in range(5):
        solved.append((LABELS[i] - sum(low[i, m] * solved[m] for m in range(i))) / low[i, i])
    return sum(z * z for z in solved) / 2 + sum(td.log(low[i, i]) for i in range(5))


def mixture(p):
    means, spread = p["means"], td.exp(p["spread"])
    square = ((INPUTS[:, None, :] - means[None]) ** 2).sum(-1) / spread
    return -td.logsumexp(td.log_softmax(p["weights"]) - square - 2 * td.log(spread), axis=1).mean()


PROGRAMS = {
    "fluid": (fluid, {"x": draw(6, 6), "y": draw(6, 6)}),
    "recurrent": (recurrent, {"hh": draw(5, 5) / 3, "xh": draw(4, 5), "b": draw(5), "out": draw(5, 1)}),
    "logistic": (logistic, {"w": draw(4), "b": draw()}),
    "kernel": (kernel, {"amplitude": f64(0.3), "scale": f64(-0.5)}),
    "mixture": (mixture, {"means": draw(3, 4), "spread": draw(3), "weights": draw(3)}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f, p = PROGRAMS[name]
    td.check_grads(f, (p,), order=2 if name in ("logistic", "mixture", "kernel") else 1)
    g = td.grad(f)(p)
    for other in (td.jit(td.grad(f))(p), td.grad(td.jit(f))(p), td.grad(td.checkpoint(f))(p)):
        for one, two in zip(td.pytree.leaves(other), td.pytree.leaves(g), strict=True):
            np.testing.assert_allclose(one.numpy(), two.numpy(), 1e-9, 1e-12)
    value = f(p).item()
    step = td.pytree.map_tree(lambda x, d: x - 1e-3 * d, p, g)
    assert f(step).item() < value


# -- Newton's method with a Hessian-vector product and conjugate gradients ---------------------------------------------
def test_newton_by_conjugate_gradients():
    def f(w):
        return logistic({"w": w, "b": f64(0.1)})

    def conjugate_gradients(matvec, b):
        x, r = td.zeros_like(b), b
        d = r
        for _ in range(8):
            if (r @ r).item() < 1e-28:
                break
            a = matvec(d)
            step = (r @ r) / (d @ a)
            x, new = x + step * d, r - step * a
            d = new + (new @ new) / (r @ r) * d
            r = new
        return x

    w = td.zeros(4, dtype=td.float64)
    for _ in range(8):
        w = w - conjugate_gradients(lambda v, w=w: td.jvp(td.grad(f), (w,), (v,))[1], td.grad(f)(w))
    assert np.abs(td.grad(f)(w).numpy()).max() < 1e-10

    # the optimum as a function of the penalty, by the implicit function theorem
    def optimum(penalty):
        def slope(w):
            return td.grad(f)(w) + penalty * w

        def newton(slope, w):
            for _ in range(12):
                w = w - conjugate_gradients(lambda v, w=w: td.jvp(slope, (w,), (v,))[1], slope(w))
            return w

        solve = lambda g, b: td.custom_linear_solve(g, b, conjugate_gradients, symmetric=True)  # noqa: E731
        return (td.custom_root(slope, w, newton, solve) ** 2).sum()

    td.check_grads(optimum, (f64(0.05),), order=1)


# -- the adjoint of an ODE ---------------------------------------------------------------------------------------------
def field(y, t, p):
    return td.tanh(p @ y) - 0.1 * t * y


def integrate(f, y, t0, t1, steps=20):
    h = (t1 - t0) / steps
    for n in range(steps):
        t = t0 + n * h
        k1 = f(y, t)
        k2 = f(y + h / 2 * k1, t + h / 2)
        k3 = f(y + h / 2 * k2, t + h / 2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + h * k3, t + h))
    return y


@td.custom_vjp
def flow(y, p):
    return integrate(lambda y, t: field(y, t, p), y, 0.0, 1.0)


def flow_forward(y, p):
    end = flow(y, p)
    return end, (end, p)


def flow_backward(kept, g):
    """Backwards in time, with the state, its adjoint and the parameters' gradient in one vector."""
    end, p = kept
    n = end.shape[0]

    def back(state, s):
        y, a = state[:n], state[n : 2 * n]
        value, pull = td.vjp(lambda y, p: field(y, 1.0 - s, p), y, p)
        dy, dp = pull(a)
        return td.concat([-value, dy, dp.reshape(-1)])

    start = td.concat([end, g, td.zeros(n * n, dtype=td.float64)])
    state = integrate(back, start, 0.0, 1.0)
    return state[n : 2 * n], state[2 * n :].reshape(n, n)


flow.defvjp(flow_forward, flow_backward)


def test_adjoint_of_an_ode():
    y, p = draw(3), draw(3, 3) / 2

    def direct(y, p):
        return integrate(lambda y, t: field(y, t, p), y, 0.0, 1.0)

    for transform in (
        lambda f: td.grad(lambda y, p: (f(y, p) ** 2).sum(), (0, 1))(y, p),
        lambda f: td.jit(td.grad(lambda y, p: (f(y, p) ** 2).sum(), (0, 1)))(y, p),
        lambda f: td.vmap(td.jacrev(f), (0, None))(td.stack([y, 2 * y]), p),
        lambda f: td.jvp(f, (y, p), (p[0], p)),
    ):
        ours, theirs = td.pytree.leaves(transform(flow)), td.pytree.leaves(transform(direct))
        for one, two in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one.numpy(), two.numpy(), 1e-6, 1e-6)
