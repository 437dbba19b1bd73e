"""A new operator and a new backend, both registered by another package: ``python examples/outside/demo.py``."""

import numpy as np
import tandem as td
import tandem_toy
from numpy.typing import ArrayLike
from tandem_toy import ToyTensor, softclip


def check(what: str, result: ArrayLike, wanted: ArrayLike) -> None:
    """Print a result, and stop if it is not the expected one."""
    array = np.asarray(result)
    np.testing.assert_allclose(array, np.asarray(wanted), rtol=1e-6)
    print(f"ok  {what}: {np.round(array, 4).tolist()}")


def show_operator() -> None:
    """The operator in every mode, from one definition."""
    x = td.asarray([-2.0, 0.0, 0.5, 3.0])
    wanted = np.tanh(x.numpy())
    check("softclip eager", softclip(x), wanted)
    check("softclip in jit", td.jit(lambda v: softclip(v) * 2)(x), wanted * 2)
    check("gradient of softclip", td.grad(lambda v: softclip(v).sum())(x), 1 - wanted**2)
    check("softclip in vmap", td.vmap(softclip)(td.stack([x, -x])), [wanted, -wanted])
    print("ok  softclip on meta:", softclip(td.empty(3, device="meta")).shape)
    print("   ", td.opcheck(softclip, (x, 0.7)))


def show_backend() -> None:
    """Tensors on the device: create, compute, differentiate, and copy back to the CPU."""
    x = td.asarray([1.0, 2.0, 3.0], device="toy")
    assert type(x) is ToyTensor
    tandem_toy.log.clear()
    check("x + x on toy", (x + x).to("cpu"), [2, 4, 6])
    check("exp(-x) on toy", td.exp(-x).to("cpu"), np.exp([-1.0, -2.0, -3.0]))
    check("made there", td.ones(2, device="toy").to("cpu"), [1, 1])
    check("matrix product", (td.eye(3).to("toy") @ x).to("cpu"), [1, 2, 3])
    print("ok  what ran:", ", ".join(f"{name} ({how})" for name, how in tandem_toy.log))
    w = td.asarray([1.0, 2.0, 3.0]).to("toy").requires_grad_()
    (w * w + td.exp(w)).sum().backward()
    assert w.grad is not None
    check("gradient on toy", w.grad.to("cpu"), 2 * np.array([1, 2, 3]) + np.exp([1.0, 2.0, 3.0]))
    check("a jitted function runs as it is written", td.jit(lambda v: v + v)(x).to("cpu"), [2, 4, 6])
    v = td.asarray([1.0, 2.0], requires_grad=True)
    (v.to("toy") * 3).to("cpu").sum().backward()
    assert v.grad is not None
    check("gradient through both transfers", v.grad, [3, 3])
    check(
        "softclip on toy, by the fallback", softclip(x, 2.0).to("cpu"), 2 * np.tanh(np.array([1, 2, 3]) / 2)
    )
    print("   ", td.dispatch_table("add")["PrivateUse1"].registration)


def main() -> None:
    tandem_toy.install()
    try:
        show_operator()
        show_backend()
    finally:
        tandem_toy.uninstall()
    try:
        td.zeros(2, device="toy")
    except td.errors.DeviceError as fault:
        print("ok  after uninstall():", fault)


if __name__ == "__main__":
    main()
