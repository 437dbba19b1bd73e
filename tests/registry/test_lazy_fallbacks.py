"""Kernels of whole dispatch keys, whose modules are imported before the first dispatch table is computed."""

import subprocess
import sys

import pytest


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_leaves_out_the_layers():
    program = "import sys, tandem; print('tandem.eager.layers.levels' in sys.modules)"
    assert run(program) == "False\n"


FIRST_USES = {
    "recorded call": "assert (x * 2).requires_grad",
    "operator without its function": "assert td.ops.td.mul.Tensor(x, 2).requires_grad",
    "kernel of a key": "td.ops.td.mul.Tensor.call_for_key('AutogradCPU', x, 2)",
    "registrations": """
keys = {registration.key.name for registration in td.registrations(op="*")}
assert keys >= {"Level", "Python", "Meta", "AutogradCPU"}""",
    "dispatch table": "assert 'Level' in str(td.dispatch_table('mul.Tensor'))",
    "subclass": """
class T(td.Tensor):
    __tandem_dispatch__ = lambda *given: td.ones(2)
assert (td.Tensor._make_wrapper(T, (2,), td.float32) + 1).tolist() == [1.0, 1.0]""",
    "backward": "x.sum().backward(); assert x.grad.tolist() == [1.0, 1.0]",
    "hook": "x.register_hook(lambda g: g * 3); x.sum().backward(); assert x.grad.tolist() == [3.0, 3.0]",
    "meta": "assert (td.ones(3, device='meta') + 1).shape == (3,)",
    "autocast": "with td.autocast('cpu'): assert (td.ones((2, 2)) @ td.ones((2, 2))).dtype is td.bfloat16",
    "quantize": "assert td.quantize_per_tensor(td.ones(2), 0.5, 0).int_repr().tolist() == [2, 2]",
    "quantize channels": "assert td.quantize_per_channel(td.ones((1, 1)), [0.5], [0], 0).int_repr().tolist() == [[2]]",
    "fallback of other code": """
with td.Library("mine", "IMPL") as library:
    library.fallback(lambda op, keyset, args, kwargs: args[0], "Level", allow_override=True)
    with td.include_keys("Level"):
        assert td.exp(x) is x""",
}


@pytest.mark.parametrize("use", FIRST_USES)
def test_first_use_finds_the_layers(use):
    run(f"import tandem as td\nx = td.tensor([1.0, 2.0], requires_grad=True)\n{FIRST_USES[use]}")


def test_first_calls_of_threads_are_recorded():
    program = """
import threading, tandem as td
start, recorded = threading.Barrier(6), []
x = td.tensor([1.0, 2.0], requires_grad=True)
def work(i):
    start.wait()
    recorded.append((x * i if i % 2 else td.ops.td.mul.Tensor(x, x)).requires_grad)
threads = [threading.Thread(target=work, args=[i]) for i in range(6)]
for t in threads: t.start()
for t in threads: t.join()
print(recorded)
"""
    for _ in range(3):
        assert run(program) == f"{[True] * 6}\n"
