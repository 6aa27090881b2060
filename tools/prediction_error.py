#!/usr/bin/env python3
"""How far off the prediction of `jitsoftmax explain` is: every kernel that results of `jitsoftmax bench` measured, beside what
is predicted of it. Needs no GPU, and NVRTC or a warm cache: the kernels are compiled for what they take.

    tools/prediction_error.py --program build/release/tools/jitsoftmax

Reads --json results and the table that bench prints; by default those in tools/results. Prints a line a file, then what
src/plan/prediction.hpp says of all of them.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
FILES = ("h200_best.json", "h200_cliffs.json", "h200_few_rows.json", "h200_lesson.json", "h200_every.txt")
LINE = re.compile(r"(?P<rows>\d+)x(?P<problem>\d+ .*?)\s+(?P<name>\w+)\s+(?P<median>[\d.]+)\s+[\d.]+\s+[\d.]+\s+[\d.]+"
                  r"\s+(?P<share>[\d.]+)\s+\S+\s+(?P<kernel>\w+<Config\{.*>)$")


class PredictionFailed(Exception):
    """What the program said, for people."""


@dataclass(frozen=True)
class Measured:
    rows: int
    problem: str
    kernel: str
    share: float
    built_in: bool  # the built-in choice


def measured_in(path):
    text = path.read_text()
    if path.suffix == ".json":
        return [Measured(case["rows"], case["problem"], kernel["kernel"], kernel["share_of_copy"],
                         kernel["name"] == "best")
                for case in json.loads(text)["cases"] for kernel in case["kernels"] if "share_of_copy" in kernel]
    found = (LINE.match(line.rstrip()) for line in text.splitlines())
    return [Measured(int(m["rows"]), m["problem"], m["kernel"], float(m["share"]), False)
            for m in found if m and m["name"] != "copy"]


def words(problem, rows):
    """Of a problem as the program writes it, with the rows where a shapes file has them."""
    cols, dtype, *rest = problem.split()
    return [cols, dtype, str(rows), *rest]


def predict(program, measured):
    """The share that is predicted; None where there is no model."""
    command = [program, "explain", *words(measured.problem, measured.rows), "--kernel", measured.kernel, "--arch",
               "sm_90", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PredictionFailed(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")
    for kernel in json.loads(done.stdout)["kernels"]:
        if kernel["specialization"] == measured.kernel:
            return kernel.get("predicted_share_of_copy")
    raise PredictionFailed(f"{measured.kernel} does not run for {measured.rows} rows of {measured.problem}")


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def summary(name, errors):
    if not errors:
        return f"{name:20} nothing that is modelled"
    return (f"{name:20} {len(errors):5} {quantile(errors, 0.5):8.1%} {quantile(errors, 0.9):8.1%} {max(errors):8.1%}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=pathlib.Path, nargs="*", default=[RESULTS / name for name in FILES])
    parser.add_argument("--program", default="jitsoftmax", help="the program (default: jitsoftmax on PATH)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once (default: all cores)")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="also list the N worst")
    options = parser.parse_args(arguments)
    try:
        by_file = {path.name: measured_in(path) for path in options.files}
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"no results of jitsoftmax bench: {error!r}")
    # A file may have one measurement several times.
    all_measured = list(dict.fromkeys(m for several in by_file.values() for m in several))
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            shares = list(pool.map(lambda measured: predict(options.program, measured), all_measured))
    except (PredictionFailed, OSError) as error:
        print(f"prediction_error: {error}", file=sys.stderr)
        return 1
    predicted = {m: share for m, share in zip(all_measured, shares) if share is not None}
    errors = {m: abs(share / m.share - 1) for m, share in predicted.items()}
    print(f"{'':20} {'kernels':>5} {'median':>6} {'p90':>8} {'worst':>8}")
    for name, several in by_file.items():
        print(summary(name, [errors[m] for m in dict.fromkeys(several) if m in errors]))
    print(summary("all", list(errors.values())))
    for m in sorted(errors, key=errors.get, reverse=True)[:options.worst]:
        print(f"  {predicted[m]:.2f} for {m.share:.2f}: {m.rows}x{m.problem} {m.kernel}")
    for name, those in (("error_of_choices", [m for m in errors if m.built_in]), ("error_of_candidates", list(errors))):
        if values := [errors[m] for m in those]:
            print(f"{name}{{.kernels = {len(values)}, .median = {quantile(values, 0.5):.3f}, "
                  f".p90 = {quantile(values, 0.9):.2f}, .worst = {max(values):.2f}}}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
