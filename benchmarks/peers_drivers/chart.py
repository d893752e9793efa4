"""Draws the figures of peers.py: `chart.py FIGURES.json CHART.png`. Runs in an environment that has matplotlib."""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

COLOURS = ["#9aa0a6", "#1a73e8", "#e8710a", "#12b5cb", "#7cb342", "#9334e6", "#d93025", "#f9ab00"]


def main() -> None:
    figures = json.loads(Path(sys.argv[1]).read_text())
    peers = list(figures)
    works = list(next(iter(figures.values())))
    figure, axes = pyplot.subplots(2, (len(works) + 1) // 2, figsize=(17, 8.5))
    for axis in axes.flat:
        axis.set_visible(False)
    for axis, work in zip(axes.flat, works, strict=False):
        axis.set_visible(True)
        values = [figures[peer].get(work) for peer in peers]
        known = [value for value in values if isinstance(value, float)]
        for row, (value, colour) in enumerate(zip(values, COLOURS, strict=False)):
            if not isinstance(value, float):
                axis.text(min(known) * 0.62, row, value, va="center", fontsize=8, color="#9aa0a6", style="italic")
            else:
                axis.barh(row, value, color=colour)
                label = f"{value:.2f}" if value < 10 else f"{value:,.0f}"
                axis.text(value * 1.12, row, label, va="center", fontsize=8)
        axis.set_xscale("log")
        axis.set_xlim(min(known) * 0.5, max(known) * 6)
        axis.set_yticks(range(len(peers)), peers, fontsize=8)
        axis.set_ylim(len(peers) - 0.4, -0.6)
        axis.set_title(work, fontsize=10)
        axis.tick_params(axis="x", labelsize=7)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle("The same work on belljar, the real bash and its peers: milliseconds, logarithmic, less is better")
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=110)


if __name__ == "__main__":
    main()
