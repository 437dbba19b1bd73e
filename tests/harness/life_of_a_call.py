"""A program that prints, as JSON, the functions of the package that each call of docs/architecture.md runs.

``called`` has `file.py:Class.method` of each Python function in the order of first calls, also of those that run on
threads of :mod:`tandem.background`; ``compiled`` has the functions of the native language that were compiled so far.
"""

import json
import re
import sys
from pathlib import Path

import tandem as td
from tandem import background
from tandem.backends.cpu.fastpath.compiler import lang

ROOT = Path(td.__file__).parent
called = {}
compiled = set()


def note(frame, event, arg):
    if event == "call":
        called.setdefault((frame.f_code.co_filename, frame.f_code.co_qualname))


class Job(background._Job):
    def run(self):
        sys.setprofile(note)
        super().run()


def emit(functions, *args, plain=lang.emit, **kwargs):
    text = plain(functions, *args, **kwargs)
    compiled.update(function.__name__ for function in functions.values())  # exported under other names
    compiled.update(re.findall(r"^define .*?@(\w+)\(", text, re.MULTILINE))
    return text


def add():
    x, y = td.ones(3).requires_grad_(), td.ones(3)
    for _ in range(6):
        x + y
    with td.Library("td", "IMPL") as library:
        library.impl("add.Tensor", lambda x, y: x.clone(), "CPU")  # uninstalls the entry
        x + y


def softmax():
    f, x = td.jit(td.softmax), td.ones((3, 5))
    for _ in range(4):
        f(x)


def backward():
    def loss(x):
        return (td.tanh(x) * td.exp(x)).sum()

    for f in (loss, loss, td.jit(loss), td.jit(loss)):
        f(td.ones(3).requires_grad_()).backward()


def profile(run):
    called.clear()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    files = [(Path(file), name) for file, name in called if file.startswith(f"{ROOT}/")]
    return {
        "called": [f"{file.relative_to(ROOT)}:{name}" for file, name in files],
        "compiled": sorted(compiled),
    }


def main():
    background._Job, lang.emit = Job, emit
    with td.config.override(hot_calls=2, verify=True):
        print(json.dumps({run.__name__: profile(run) for run in (add, softmax, backward)}))


if __name__ == "__main__":
    main()
