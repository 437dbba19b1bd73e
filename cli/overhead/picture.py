"""The plot: time per call by array size and by chain length, and the time of each layer of a call."""

from typing import Any

from ... import lazy
from ...units import format_duration
from .report import format_count
from .results import Comparison, Report, Split

figures = lazy.Module("matplotlib.figure")
patches = lazy.Module("matplotlib.patches")

COLORS = {
    "tandem eager": "#d1495b",
    "tandem jit": "#00798c",
    "NumPy": "#4d4d4d",
    "PyTorch": "#edae49",
    "jax.jit": "#7768ae",
    "numba": "#66a182",
}
# One colour for each layer in every bar, with the colour of the text on it.
PART_COLORS = (
    ("#30638e", "white"),
    ("#9cc5a1", "black"),
    ("#7768ae", "white"),
    ("#edae49", "black"),
    ("#00798c", "white"),
    ("#f2d398", "black"),
    ("#d1495b", "white"),
    ("#8d99ae", "black"),
    ("#2b2d42", "white"),
    ("#e07a5f", "black"),
    ("#b5e2fa", "black"),
    ("#6a994e", "white"),
    ("#c9ada7", "black"),
    ("#a3b18a", "black"),
    ("#bc4749", "white"),
    ("#ffafcc", "black"),
)
WIDE_ENOUGH = 7.0  # per cent of a bar that its label needs


def _draw_lines(axes: Any, comparisons: list[Comparison], x: str) -> None:
    for name in dict.fromkeys(name for one in comparisons for name in one.times):
        ours = name.startswith("tandem")
        points = [(getattr(one, x), one.times[name]) for one in comparisons if name in one.times]
        where = [at for at, _ in points]
        axes.plot(
            where,
            [timing.median for _, timing in points],
            "o-" if ours else "o--",
            color=COLORS.get(name),
            linewidth=2.2 if ours else 1.2,
            markersize=5 if ours else 3.5,
            label=name,
        )
        bounds = [timing.q1 for _, timing in points], [timing.q3 for _, timing in points]
        axes.fill_between(where, *bounds, color=COLORS.get(name), alpha=0.2, linewidth=0)
    axes.set(xscale="log", yscale="log", ylabel="ns per call")
    axes.grid(visible=True, which="major", alpha=0.25)


def _draw_length_panel(axes: Any, report: Report) -> None:
    smallest = min(one.elements for one in report.chains)
    rows = [one for one in report.chains if one.elements == smallest]
    _draw_lines(axes, rows, "ops")
    axes.set(xlabel="operations in the chain", title=f"{smallest} elements: the calls are everything")
    lengths = [one.ops for one in rows]
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=9)


def _draw_size_panel(axes: Any, report: Report) -> None:
    lengths = sorted({one.ops for one in report.chains})
    length = 30 if 30 in lengths else lengths[-1]
    rows = [one for one in report.chains if one.ops == length]
    _draw_lines(axes, rows, "elements")
    axes.set(xlabel="elements of each array", title=f"a chain of {length}: from overhead to memory")
    axes.set_xticks([one.elements for one in rows], [format_count(one.elements) for one in rows])
    axes.minorticks_off()


def _draw_bar(axes: Any, row: int, split: Split, colors: dict[str, tuple[str, str]]) -> None:
    left = 0.0
    total = sum(split.parts.values())
    for name, ns in split.parts.items():
        share = 100 * ns / total
        fill, ink = colors[name]
        axes.barh(row, share, left=left, color=fill, edgecolor="white", linewidth=0.8)
        if share > WIDE_ENOUGH:
            label = f"{name}\n{format_duration(ns)}"
            axes.text(left + share / 2, row, label, ha="center", va="center", fontsize=7.5, color=ink)
        left += share
    if split.whole is not None:
        axes.text(101, row, format_duration(split.whole.median), va="center", fontsize=10, fontweight="bold")


def _draw_split_panel(axes: Any, report: Report) -> None:
    splits = [split for split in report.splits if split.whole is not None][::-1]
    names = list(dict.fromkeys(name for split in splits[::-1] for name in split.parts))
    colors = {name: PART_COLORS[i % len(PART_COLORS)] for i, name in enumerate(names)}
    for row, split in enumerate(splits):
        _draw_bar(axes, row, split, colors)
    axes.set_yticks(range(len(splits)), [f"{s.path}\n{s.call}" for s in splits], fontsize=9)
    axes.set(xlim=(0, 108), xticks=[], title="one call taken apart: what each layer adds")
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    swatch = patches.Patch
    handles = [swatch(color=colors[name][0], label=name) for name in names]
    axes.legend(
        handles=handles, ncols=7, loc="upper center", bbox_to_anchor=(0.47, 0.02), frameon=False, fontsize=8
    )


def draw(report: Report, path: str) -> None:
    """Write the picture.

    Args:
        report: what was measured.
        path: a file name; its ending chooses the format.

    Raises:
        ImportError: matplotlib is not installed; it comes with the extra ``viz``.
    """
    figure = figures.Figure(figsize=(14, 9), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(1.35, 1))
    _draw_length_panel(figure.add_subplot(grid[0, 0]), report)
    _draw_size_panel(figure.add_subplot(grid[0, 1]), report)
    _draw_split_panel(figure.add_subplot(grid[1, :]), report)
    machine = report.machine
    where = f"{machine['cpu']}, one thread, {machine['interpreter']}, NumPy {report.versions['numpy']}"
    figure.suptitle(f"tandem: the same operations, dispatched and compiled\n{where}", fontsize=13)
    figure.savefig(path, dpi=150)
