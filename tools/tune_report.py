#!/usr/bin/env python3
"""How good the built-in choice is, and how well a tune repeats, from what `jitsoftmax autotune --json` printed.

  choice FILE...    for each shape the time of the built-in choice over that of the fastest kernel that was tuned, then
                    the median and the worst. Ends with 6 where they are above --median and --worst
  repeat A B        two tunes of the same shapes, each into a cache directory of its own: whether they picked the same
                    kernel, or else by how much the times of the two picks differ within one run. Ends with 6
                    where less than --least of the shapes agree

A file may hold several results, one after the other.
"""

import argparse
import json
import pathlib
import statistics
import sys
from dataclasses import dataclass

WRONG, USAGE, DONE = 6, 2, 0  # exit codes, as those of the program


class ReportError(Exception):
    """What makes no sense, for people."""


@dataclass(frozen=True)
class Tuned:
    name: str  # "4096x4096 f32"; no other shape of a tune has it
    winner: str
    built_in: str
    seconds: dict  # median of every kernel that was timed, by its spelling
    rejected: dict  # why a kernel is out, by its spelling

    @property
    def choice_over_tuned(self):
        """None where the built-in choice was not timed."""
        if self.built_in not in self.seconds or self.winner not in self.seconds:
            return None
        return self.seconds[self.built_in] / self.seconds[self.winner]


def documents_in(text):
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = decoder.raw_decode(text, at)
        yield document


def tuned_in(path):
    """The shapes of a file, those that have a winner, in its order."""
    try:
        shapes = []
        for document in documents_in(path.read_text()):
            of_document = []
            for shape in document["shapes"]:
                timed = {c["specialization"]: c["median_seconds"] for c in shape["candidates"]
                         if c.get("median_seconds", 0) > 0}
                rejected = {c["specialization"]: c.get("ruled_out") or c.get("failed") for c in shape["candidates"]
                            if "median_seconds" not in c}
                tuned = Tuned(f"{shape['rows']}x{shape['problem']}", shape["winner"], shape["built_in"], timed, rejected)
                # Lines of one problem and one kind of rows have one record, of the rows of the first.
                if tuned not in of_document:
                    of_document.append(tuned)
            shapes += of_document
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReportError(f"'{path}' is no result of jitsoftmax autotune --json: {error!r}") from error
    shapes = [shape for shape in shapes if shape.winner]
    if not shapes:
        raise ReportError(f"'{path}' has no shape that was tuned")
    return shapes


def report_choice(options):
    shapes = [shape for path in options.files for shape in tuned_in(path)]
    width = max(len(shape.name) for shape in shapes)
    ratios, lost = [], 0
    for shape in shapes:
        ratio = shape.choice_over_tuned
        if ratio is None:
            lost += 1
            print(f"{shape.name:{width}}  -      {shape.built_in}: {shape.rejected.get(shape.built_in, 'not timed')}")
            continue
        ratios.append(ratio)
        # What another kernel would be, where that is worth a line.
        better = f"{shape.built_in} -> {shape.winner}" if ratio > 1.01 else ""
        print(f"{shape.name:{width}}  {ratio:.3f}  {better}".rstrip())
    if not ratios:
        raise ReportError("the built-in choice was timed at none of the shapes")
    median, worst = statistics.median(ratios), max(ratios)
    print(f"{len(ratios)} shapes: the built-in choice takes {median:.3f} of the tuned time at the median, {worst:.3f} at "
          f"worst (at most {options.median:g} and {options.worst:g})" +
          (f"; {lost} where it cannot be used" if lost else ""))
    return WRONG if lost or median > options.median or worst > options.worst else DONE


def difference(first, second, runs):
    """By how much the times of two kernels differ, relative to the faster one, in the run that timed both and where they
    are closest; None if no run did."""
    found = []
    for run in runs:
        if first in run.seconds and second in run.seconds:
            times = sorted((run.seconds[first], run.seconds[second]))
            found.append(times[1] / times[0] - 1)
    return min(found, default=None)


def report_repeat(options):
    def by_name(path):
        return {shape.name: shape for shape in tuned_in(path)}
    first, second = by_name(options.first), by_name(options.second)
    both = [name for name in first if name in second]
    alone = [name for name in [*first, *second] if (name in first) != (name in second)]
    for name in alone:
        print(f"{name}: in one of the files only", file=sys.stderr)
    if not both:
        raise ReportError("the files have no shape in common")
    same, close, apart = 0, 0, []
    for name in both:
        a, b = first[name], second[name]
        if a.winner == b.winner:
            same += 1
            continue
        differ = difference(a.winner, b.winner, (a, b))
        if differ is not None and differ <= options.within:
            close += 1
        else:
            apart.append((name, differ, a.winner, b.winner))
    for name, differ, a, b in apart:
        print(f"{name}: {'no run timed both' if differ is None else f'{differ:.1%} apart'}\n  {a}\n  {b}")
    fraction = (same + close) / len(both)
    print(f"{len(both)} shapes: {same} with the same pick, {close} with picks within {options.within:.0%} of each other, "
          f"{len(apart)} apart; {fraction:.1%} agree (at least {options.least:.0%})")
    return WRONG if fraction < options.least else DONE


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("choice", help="the built-in choice beside what was tuned")
    command.add_argument("files", type=pathlib.Path, nargs="+", metavar="FILE")
    command.add_argument("--median", type=float, default=1.03, help="most that the median may be (default 1.03)")
    command.add_argument("--worst", type=float, default=1.15, help="most that the worst may be (default 1.15)")
    command.set_defaults(report=report_choice)
    command = commands.add_parser("repeat", help="two tunes of the same shapes")
    command.add_argument("first", type=pathlib.Path, metavar="A")
    command.add_argument("second", type=pathlib.Path, metavar="B")
    command.add_argument("--within", type=float, default=0.02, help="difference that is none (default 0.02)")
    command.add_argument("--least", type=float, default=0.95, help="fraction that has to agree (default 0.95)")
    command.set_defaults(report=report_repeat)
    options = parser.parse_args(arguments)
    try:
        return options.report(options)
    except ReportError as error:
        print(f"tune_report: {error}", file=sys.stderr)
        return USAGE


if __name__ == "__main__":
    sys.exit(main())
