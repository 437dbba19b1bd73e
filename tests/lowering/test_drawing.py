"""``f.lower(x).draw(path)``: a box for each operator, coloured by the kernel that computes it."""

import re

import matplotlib
import numpy as np
import pytest
import tandem as td
from tandem import config, errors, lazy


def loss(params, x):
    return (td.tanh(x @ params["w"]) ** 2).sum()


PARAMS = {"w": td.ones((4, 3))}


@pytest.fixture(autouse=True)
def text_in_pictures():
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        yield


def test_boxes_name_operators_and_arguments(tmp_path):
    path = tmp_path / "graph.svg"
    td.jit(loss).lower(PARAMS, td.ones((2, 4))).draw(path)
    text = path.read_text()
    for word in ("params['w']", "float32[2,4]", "tanh: ", "pow: ", "result 0"):
        assert word in text.replace("&#x27;", "'").replace("&#39;", "'"), word


@pytest.mark.skipif(not config.flags.native, reason="without kernels there are no colours of kernels")
def test_kernels_have_colours(tmp_path):
    def program(x, k):
        return td.linalg.pinv(x).sum() + td.exp(x).sum(), td.sin(x.T @ x)

    path = tmp_path / "graph.svg"
    td.jit(program).lower(td.ones((3, 3), dtype=td.float64), 1).draw(str(path))
    faces = set(re.findall(r"fill: (#[0-9a-f]{6})", path.read_text()))
    drawing = lazy.module(".lowering.drawing")
    assert faces & set(drawing.KERNEL_COLORS) and drawing.NEUTRAL in faces


def test_bitmaps(tmp_path):
    path = tmp_path / "graph.png"
    td.jit(lambda x: x + 1).lower(np.ones(3)).draw(path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_errors(tmp_path, monkeypatch):
    with pytest.raises(errors.LoweringError, match="nothing to compute"):
        td.jit(lambda x: x).lower(td.ones(3)).draw(tmp_path / "graph.svg")

    def long(x):
        for k in range(500):
            x = td.sin(x) * k
        return x

    with pytest.raises(errors.UnsupportedError, match="more than 400"):
        td.jit(long).lower(td.ones(3)).draw(tmp_path / "graph.svg")
    monkeypatch.setattr(lazy, "is_installed", lambda name: False)
    with pytest.raises(errors.UnsupportedError, match="viz"):
        td.jit(td.sin).lower(td.ones(3)).draw(tmp_path / "graph.svg")
