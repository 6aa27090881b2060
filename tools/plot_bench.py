#!/usr/bin/env python3
"""Draws what `jitsoftmax bench --json`, bench_peers.py --json or `jitsoftmax autotune --json` measured.

  lines     the share of the copy's speed over the row length, a line a kernel or peer, a panel an element type. Lines join what moves much in
            rows of a multiple of 16 bytes; other lengths and few rows are single marks
  heatmap   the same of rows x row length, a panel an element type, for one kernel or peer
  tuner     every candidate of one shape, the fastest first: its time, registers and occupancy. Of what
            `jitsoftmax autotune --json` or `bench --variant every --json` wrote; --shape says which

Needs matplotlib: pip install matplotlib, or apt-get install python3-matplotlib.
"""

import argparse
import json
import math
import pathlib
import re
import sys
from dataclasses import dataclass

BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
MUCH = 64 << 20  # bytes: less does not fill a large GPU for long
# Okabe and Ito's, which colour-blind people tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Point:
    series: str
    dtype: str  # of a problem as the program writes it: what is left but for the columns
    cols: int
    rows: int
    bytes: int
    share: float

    @property
    def mark(self):
        if self.bytes < MUCH:
            return "few"
        return "whole" if self.cols * BYTES[self.dtype.split("->")[0].split()[0]] % 16 == 0 else "odd"


@dataclass(frozen=True)
class Candidate:
    kernel: str  # its spelling
    median: float  # seconds, as p10 and p90
    p10: float
    p90: float
    registers: int | None  # a thread
    warps: int | None  # that a multiprocessor holds at once, at most
    mark: str = ""  # "picked", "built-in choice"

    @property
    def family(self):
        return self.kernel.partition("<")[0]

    @property
    def label(self):
        """registers<Config{.threads=128,.cluster=4,...}> as "registers 4·128×4": blocks · threads × packets."""
        fields = dict(re.findall(r"\.(\w+)=(\w+)", self.kernel))
        number = lambda name, least: int(fields.get(name, least))  # noqa: E731
        text = f"{number('threads', 1)}×{number('elements', 1) // number('vector', 1)}"
        if number("cluster", 1) > 1:
            text = f"{fields['cluster']}·{text}"
        if number("vector", 1) == 1:
            text += " single"
        elif self.family.startswith("strided"):
            text += f" of {fields['vector']}"
        text += " packed" * ("packed" in fields)
        for name in ("pieces", "resident"):
            text += f" {name} {fields[name]}" if name in fields else ""
        return f"{self.family} {text}"


def candidate_in(kernel, spelling, times, mark=""):
    return Candidate(spelling, *times, kernel.get("registers"), kernel.get("occupancy", {}).get("warps"), mark)


def candidates_in(document):
    """{"4096x4096 f32": its candidates, the fastest first}, of what autotune or bench wrote."""
    shapes = {}
    for shape in document.get("shapes", []):
        marks = {shape["built_in"]: "built-in choice", shape["winner"]: "picked"}
        shapes[f"{shape['rows']}x{shape['problem']}"] = [
            candidate_in(c, c["specialization"], (c["median_seconds"], c["p10_seconds"], c["p90_seconds"]),
                         marks.get(c["specialization"], ""))
            for c in shape["candidates"] if c.get("median_seconds", 0) > 0]
    for case in document.get("cases", []):
        shapes[f"{case['rows']}x{case['problem']}"] = [
            candidate_in(k, k["kernel"], (k["cold_seconds"][q] for q in ("median", "p10", "p90")))
            for k in case["kernels"] if "cold_seconds" in k]
    return {name: sorted(found, key=lambda c: c.median) for name, found in shapes.items() if found}


def points_in(document):
    """Of all kernels and shapes that were timed; strided ones have no place in these pictures."""
    points = []
    for case in document["cases"]:
        dtype = case["problem"].split(" ", 1)[1]
        if dtype.endswith("strided"):
            continue
        for kernel in case["kernels"]:
            if "share_of_copy" in kernel:
                points.append(Point(kernel["name"], dtype, case["cols"], case["rows"], case["bytes"],
                                    kernel["share_of_copy"]))
    return points


def distinct(values):
    """In order of appearance."""
    return list(dict.fromkeys(values))


def matplotlib_or_exit():
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot_bench: matplotlib is needed: pip install matplotlib, or apt-get install python3-matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot
    matplotlib.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
                                "axes.titlelocation": "left", "axes.titleweight": "bold", "svg.fonttype": "none"})
    return matplotlib


def panels(plt, dtypes, width, height):
    """[(dtype, axes)], two a row, and the figure."""
    columns = min(2, len(dtypes))
    lines = math.ceil(len(dtypes) / columns)
    figure, grid = plt.subplots(lines, columns, figsize=(width * columns, height * lines + 0.8), squeeze=False,
                                layout="constrained")
    for axes in grid.flat[len(dtypes):]:
        axes.remove()
    return figure, list(zip(dtypes, grid.flat))


def short(number):
    """1048576 as 1M, 16384 as 16K, 50257 as it is."""
    for shift, suffix in ((20, "M"), (10, "K")):
        if number >= 1 << shift and number % (1 << shift) == 0:
            return f"{number >> shift}{suffix}"
    return str(number)


def draw_lines(matplotlib, points, title):
    plt, series = matplotlib.pyplot, distinct(point.series for point in points)
    figure, cells = panels(plt, distinct(point.dtype for point in points), 6.4, 3.8)
    marks = {"odd": "D", "few": "v"}
    for dtype, axes in cells:
        for i, name in enumerate(series):
            own = sorted((p for p in points if (p.dtype, p.series) == (dtype, name)), key=lambda p: (p.cols, p.rows))
            colour = COLOURS[i % len(COLOURS)]
            # Of several numbers of rows the largest, which comes last: one value a length.
            line = {p.cols: p.share for p in own if p.mark == "whole"}
            axes.plot(line.keys(), line.values(), STYLES[i // len(COLOURS) % len(STYLES)], color=colour, marker="o",
                      markersize=4, linewidth=1.6)
            for mark, marker in marks.items():
                loose = [p for p in own if p.mark == mark]
                axes.plot([p.cols for p in loose], [p.share for p in loose], marker, markersize=5, color=colour,
                          markerfacecolor="none")
        axes.axhline(1, color="#444444", linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate("copy", (1, 1), xycoords=("axes fraction", "data"), xytext=(0, 3), textcoords="offset points",
                      ha="right", fontsize=8, color="#444444")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: short(round(value)))
        axes.set_ylim(0, max(1.1, 1.05 * max(p.share for p in points)))
        axes.grid(axis="y", color="#e0e0e0", linewidth=0.6)
        axes.set(title=dtype, xlabel="row length N", ylabel="share of the copy's speed")

    lines = matplotlib.lines
    handles = [lines.Line2D([], [], color=COLOURS[i % len(COLOURS)], marker="o", markersize=4,
                            linestyle=STYLES[i // len(COLOURS) % len(STYLES)], label=name)
               for i, name in enumerate(series)]
    texts = {"odd": "N no multiple of 16 bytes", "few": f"few rows: less than {MUCH >> 20} MB moved"}
    handles += [lines.Line2D([], [], color="#444444", linestyle="", marker=marker, markerfacecolor="none",
                             label=texts[mark])
                for mark, marker in marks.items() if any(p.mark == mark for p in points)]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 5), frameon=False)
    figure.suptitle(title, x=0.01, ha="left")
    return figure


def draw_heatmap(matplotlib, points, title):
    # All panels have the same axes, so that a shape is at the same place in each.
    cols, rows = sorted({p.cols for p in points}), sorted({p.rows for p in points})
    figure, cells = panels(matplotlib.pyplot, distinct(point.dtype for point in points),
                           1.6 + 0.42 * len(cols), 1.6 + 0.3 * len(rows))
    limit = max(1.05, *(p.share for p in points))
    for dtype, axes in cells:
        values = [[math.nan] * len(cols) for _ in rows]
        for p in points:
            if p.dtype == dtype:
                values[rows.index(p.rows)][cols.index(p.cols)] = p.share
        image = axes.imshow(values, cmap="cividis", vmin=0, vmax=limit, aspect="auto", origin="lower")
        for y, line in enumerate(values):
            for x, share in enumerate(line):
                if not math.isnan(share):
                    axes.text(x, y, f"{share:.2f}", ha="center", va="center", fontsize=9,
                              color="black" if share > 0.5 * limit else "white")
        axes.set_xticks(range(len(cols)), map(short, cols), rotation=90)
        axes.set_yticks(range(len(rows)), map(short, rows))
        axes.set(title=dtype, xlabel="row length N", ylabel="rows M")
    bar = figure.colorbar(image, ax=[axes for _, axes in cells], shrink=0.6, label="share of the copy's speed")
    bar.ax.axhline(1, color="#D55E00", linewidth=2)
    figure.suptitle(title, x=0.01, ha="left")
    return figure


def draw_tuner(matplotlib, candidates, title):
    plt, families = matplotlib.pyplot, distinct(c.family for c in candidates)
    colours = dict(zip(families, COLOURS))
    figure, (times, registers, warps) = plt.subplots(
        1, 3, figsize=(11, 1.6 + 0.2 * len(candidates)), sharey=True, layout="constrained", width_ratios=(3, 1, 1))
    places = range(len(candidates))
    for y, c in zip(places, candidates):
        colour = colours[c.family]
        times.plot([c.p10 * 1e6, c.p90 * 1e6], [y, y], color=colour, linewidth=1)
        times.plot(c.median * 1e6, y, "o", markersize=4, color=colour)
        if c.mark:
            times.annotate(c.mark, (c.median * 1e6, y), xytext=(8, 0), textcoords="offset points", va="center",
                           fontsize=8)
        for axes, value in ((registers, c.registers), (warps, c.warps)):
            if value is not None:
                axes.barh(y, value, color=colour, height=0.6)
    times.set_yticks(places, [c.label for c in candidates], fontsize=8)
    times.set_ylim(len(candidates) - 0.5, -0.5)
    times.set_xscale("log")
    times.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    times.xaxis.set_minor_formatter(lambda value, _: f"{value:g}")
    times.tick_params(axis="x", which="both", labelsize=8, rotation=45)
    for axes, label in ((times, "µs, p10 to p90"), (registers, "registers a thread"),
                        (warps, "warps a multiprocessor")):
        axes.set_xlabel(label)
        axes.grid(axis="x", color="#e0e0e0", linewidth=0.6)
        axes.set_axisbelow(True)
    if all(c.registers is None for c in candidates):
        registers.set_title("not in the file", fontsize=8)
    figure.suptitle(title, x=0.01, ha="left")
    return figure


def tuner_figure(parser, options, document):
    shapes = candidates_in(document)
    if not shapes:
        parser.error(f"'{options.input}' has no candidate that was timed")
    shape = options.shape or next(iter(shapes))
    if shape not in shapes:
        parser.error(f"'{shape}' is not in '{options.input}', which has {', '.join(shapes)}")
    device = document.get("device") or document["shapes"][0]["device"]
    return draw_tuner(matplotlib_or_exit(), shapes[shape], f"{shape}, {device}")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("lines", "heatmap", "tuner"))
    parser.add_argument("input", type=pathlib.Path, metavar="IN.json")
    parser.add_argument("output", type=pathlib.Path, metavar="OUT.png|OUT.svg")
    parser.add_argument("--series", type=lambda text: text.split(","), metavar="NAME,...",
                        help="kernels or peers; default: all, for a heat map the first")
    parser.add_argument("--shape", help="of the tuner's view, as '4096x4096 f32'; default: the first")
    options = parser.parse_args(arguments)
    if options.output.suffix not in (".png", ".svg"):
        parser.error(f"'{options.output}' is neither .png nor .svg")
    try:
        document = json.loads(options.input.read_text(encoding="utf-8"))
        if options.kind == "tuner":
            tuner_figure(parser, options, document).savefig(options.output, dpi=150)
            return
        points = points_in(document)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        parser.error(f"'{options.input}' is no result of jitsoftmax bench, autotune or bench_peers.py: {error!r}")
    there = distinct(point.series for point in points)
    if not there:
        parser.error(f"'{options.input}' has no shape that can be drawn")
    wanted = options.series or (there if options.kind == "lines" else there[:1])
    if unknown := [name for name in wanted if name not in there]:
        parser.error(f"{', '.join(unknown)}: not in '{options.input}', which has {', '.join(there)}")
    if options.kind == "heatmap" and len(wanted) > 1:
        parser.error("a heat map is of one kernel or peer")
    points = [point for name in wanted for point in points if point.series == name]

    matplotlib = matplotlib_or_exit()
    draw, title = ((draw_lines, document["device"]) if options.kind == "lines" else
                   (draw_heatmap, f"{document['device']}: {wanted[0]}"))
    draw(matplotlib, points, title).savefig(options.output, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1:])
