#!/usr/bin/env python3
"""Looks for cliffs in what `jitsoftmax bench --json FILE` measured: lengths N + 1 whose elements take longer than those
of N. Prints every such pair and ends with 1 if one is above the limit, with 2 if there is nothing to look at.

    jitsoftmax bench --shapes tools/shapes_cliffs.txt --json cliffs.json && tools/bench_cliffs.py cliffs.json
"""

import argparse
import json
import pathlib
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    kernel: str
    problem: str  # at N
    slowdown: float  # time an element at N + 1 over that at N, less 1


def steps_in(document):
    """Of every kernel that was timed at both lengths."""
    times = {}
    for case in document["cases"]:
        for kernel in case["kernels"]:
            if "cold_seconds" in kernel:
                of_type = case["problem"].split(" ", 1)[1]
                per_element = kernel["cold_seconds"]["median"] / (case["rows"] * case["cols"])
                times[kernel["name"], of_type, case["cols"]] = per_element
    return [Step(name, f"{cols} {of_type}", times[name, of_type, cols + 1] / time - 1)
            for (name, of_type, cols), time in times.items() if (name, of_type, cols + 1) in times]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--most", type=float, default=0.15, help="slowdown that is no cliff (default 0.15)")
    options = parser.parse_args(arguments)
    steps = steps_in(json.loads(options.file.read_text()))
    if not steps:
        print(f"{options.file}: no kernel was timed at both N and N + 1", file=sys.stderr)
        return 2
    for step in steps:
        cliff = "  cliff" if step.slowdown > options.most else ""
        print(f"{step.kernel:10} {step.problem:16} {step.slowdown:+7.1%}{cliff}")
    cliffs = sum(step.slowdown > options.most for step in steps)
    print(f"{len(steps)} pairs of lengths, {cliffs} above {options.most:.0%}")
    return 1 if cliffs else 0


if __name__ == "__main__":
    sys.exit(main())
