"""Pictures of lowered graphs: one box for each node, coloured by the kernel that computes it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import lazy
from ..errors import UnsupportedError
from ..named_tuple import NamedTuple
from ..tracer.graph import Value

if TYPE_CHECKING:
    from .lower import Lowered
    from .report import Row

figures = lazy.Module("matplotlib.figure")
patches = lazy.Module("matplotlib.patches")
networkx = lazy.Module("networkx")

DiGraph = Any  # a networkx.DiGraph
Figure = Any  # a matplotlib.figure.Figure

LARGEST = 400  # nodes; a picture of more cannot be read
KERNEL_COLORS = (
    "#9ecae1 #a1d99b #fdae6b #bcbddc #fa9fb5 #9edae5 #c7e9c0 #fdd0a2 #e7cb94 #dadaeb".split()  # then again
)
OTHER_COLORS = {"callback": "#fb6a4a", "interpreted": "#fb6a4a", "blas": "#bdbdbd", "native": "#bdbdbd"}
NEUTRAL = "#ffffff"  # arguments, results, views and constants
BOX = (1.9, 0.5)  # inches
GAP = (0.3, 0.55)
EDGE_COLOR = "#555555"


class Box(NamedTuple):
    """A box of the picture: two lines of text, its colour, and the name of that colour in the legend."""

    text: str
    color: str = NEUTRAL
    legend: str = ""


def draw(lowered: Lowered, path: str | os.PathLike[str], names: Sequence[str] = ()) -> None:
    """Write a picture of a lowered graph.

    Args:
        lowered: the graph.
        path: a file name; its ending chooses the format: svg, png, pdf.
        names: of the first parameters.

    Raises:
        UnsupportedError: matplotlib is not installed, or the graph is too large to be read.
    """
    if not lazy.is_installed("matplotlib"):
        raise UnsupportedError('draw needs matplotlib: pip install "tandem-dispatch[viz]"')
    graph = _make_graph(lowered, names)
    if len(graph) > LARGEST:
        raise UnsupportedError(
            f"draw: the picture would have {len(graph)} boxes, more than {LARGEST}; kernels() prints a table instead"
        )
    _draw_graph(graph).savefig(path)


def _make_graph(lowered: Lowered, names: Sequence[str]) -> DiGraph:
    """A graph whose nodes have a :class:`Box`."""
    graph = networkx.DiGraph()
    sources: dict[Value, str] = {}
    for number, value in enumerate(lowered.graph.parameters):
        sources[value] = f"argument {number}"
        name = names[number] if number < len(names) else "captured"
        graph.add_node(sources[value], box=Box(f"{name}\n{value.spec}"))
    for number, (node, row) in enumerate(zip(lowered.optimized.nodes, lowered.kernels())):
        name = f"node {number}"
        graph.add_node(name, box=_make_box(node.op.schema.name, row))
        graph.add_edges_from((sources[value], name) for value in node.inputs if value in sources)
        sources.update(dict.fromkeys(node.outputs, name))
    for number, output in enumerate(lowered.optimized.outputs):
        if isinstance(output, Value) and output in sources:
            graph.add_node(f"result {number}", box=Box(f"result {number}\n{output.spec}"))
            graph.add_edge(sources[output], f"result {number}")
    return graph


def _make_box(operator: str, row: Row) -> Box:
    text = f"{operator}: {row.choice}\n{row.value}"
    if row.choice in OTHER_COLORS:
        return Box(text, OTHER_COLORS[row.choice], row.choice)
    if row.group is None:
        return Box(text)
    return Box(text, KERNEL_COLORS[row.group % len(KERNEL_COLORS)], f"k{row.group}")


def _arrange(graph: DiGraph) -> tuple[dict[str, tuple[float, float]], tuple[float, float]]:
    """The centre of each box and the size of the picture, in inches.

    The row of a node is the length of the longest path to it; within a row nodes are in the order of the mean position
    of what they read (the barycenter method of Sugiyama, Tagawa and Toda, 1981).
    """
    rows = list(networkx.topological_generations(graph))
    width = max(map(len, rows)) * (BOX[0] + GAP[0]) + GAP[0]
    centers: dict[str, tuple[float, float]] = {}
    for depth, row in enumerate(rows):
        means = {
            node: sum(centers[p][0] for p in graph.pred[node]) / len(graph.pred[node])
            if graph.pred[node]
            else 0.0
            for node in row
        }
        row = sorted(row, key=means.__getitem__)
        left = (width - len(row) * (BOX[0] + GAP[0]) + GAP[0]) / 2 + BOX[0] / 2
        for column, node in enumerate(row):
            x = left + column * (BOX[0] + GAP[0])
            centers[node] = (x, (depth + 0.5) * (BOX[1] + GAP[1]))
    return centers, (width + BOX[0], len(rows) * (BOX[1] + GAP[1]))  # the last column is for the legend


def _draw_graph(graph: DiGraph) -> Figure:
    centers, size = _arrange(graph)
    figure = figures.Figure(figsize=size)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, size[0]), ylim=(size[1], 0))
    axes.set_axis_off()
    for start, end in graph.edges:
        (x, y), (to_x, to_y) = centers[start], centers[end]
        axes.annotate(
            "",
            xy=(to_x, to_y - BOX[1] / 2),
            xytext=(x, y + BOX[1] / 2),
            zorder=0,  # behind the boxes
            arrowprops={"arrowstyle": "-|>", "color": EDGE_COLOR, "lw": 0.8, "shrinkA": 0, "shrinkB": 0},
        )
    legend = {}
    for node, box in graph.nodes(data="box"):
        x, y = centers[node]
        corner = (x - BOX[0] / 2, y - BOX[1] / 2)
        axes.add_patch(patches.Rectangle(corner, *BOX, facecolor=box.color, edgecolor=EDGE_COLOR, lw=0.8))
        axes.text(x, y, box.text, ha="center", va="center", fontsize=7.5)
        if box.legend:
            legend[box.legend] = patches.Patch(facecolor=box.color, edgecolor=EDGE_COLOR, label=box.legend)
    if legend:
        axes.legend(handles=list(legend.values()), loc="upper right", fontsize=8, frameon=False)
    return figure
