"""What bench_peers.py says: statistics over rounds, the table, and the JSON document.

A case has the keys that `jitsoftmax bench --json` writes, so that one reader serves both.
"""

from dataclasses import dataclass, field
from typing import Optional


def quantile(values, q):
    """0 <= q <= 1, interpolated between neighbours."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


@dataclass
class Result:
    """A contestant at a shape."""

    name: str
    kernel: str = ""  # which of its variants competed
    error: str = ""  # why it was not timed
    wrong: bool = False  # that is, because its output was
    worst_error: Optional[float] = None  # over the tolerance
    seconds: list = field(default_factory=list)  # a launch, one value a round
    swept: dict = field(default_factory=dict)  # variant: seconds, or why it was out

    @property
    def median(self):
        return quantile(self.seconds, 0.5)

    def as_json(self):
        json = {"name": self.name, "kernel": self.kernel}
        if self.error:
            json["error"] = self.error
        if self.worst_error is not None:
            json["worst_error_over_tolerance"] = self.worst_error
        if self.seconds:
            json["cold_seconds"] = {"median": self.median, "p10": quantile(self.seconds, 0.1),
                                    "p90": quantile(self.seconds, 0.9)}
        if len(self.swept) > 1:
            json["swept"] = self.swept
        return json


def share_of_copy(result, copy):
    """None where either was not timed."""
    return copy.median / result.median if result.seconds and copy.seconds else None


def case_json(shape, copy, results):
    kernels = []
    for result in results:
        kernels.append(result.as_json())
        share = share_of_copy(result, copy)
        if share is not None:
            kernels[-1]["share_of_copy"] = share
    return {"rows": shape.rows, "problem": shape.problem, "cols": shape.cols, "bytes": shape.bytes,
            "copy": copy.as_json(), "kernels": kernels}


SHAPE_WIDTH, COLUMN_WIDTH = 24, 11


def header_text(names):
    cells = "".join(f"{text:>{COLUMN_WIDTH}}" for text in ("copy TB/s", *names))
    return f"{'shape':<{SHAPE_WIDTH}}{cells}  copy by"


def case_text(shape, copy, results):
    """A row of the table: TB/s of the copy, then everybody's share of it."""
    def cell(result):
        if result.error:
            return "wrong" if result.wrong else "failed"
        share = share_of_copy(result, copy)
        return "-" if share is None else f"{share:.3f}"

    speed = f"{shape.bytes / copy.median * 1e-12:.3f}" if copy.seconds else cell(copy)
    cells = "".join(f"{text:>{COLUMN_WIDTH}}" for text in (speed, *map(cell, results)))
    return f"{str(shape):<{SHAPE_WIDTH}}{cells}  {copy.kernel}"


def error_notes(shape, results):
    return [f"{shape}: {result.name}: {result.error}" for result in results if result.error]
