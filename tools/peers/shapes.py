"""Shapes files, by the grammar of tools/shapes.cpp: `N dtype [rows] [log_softmax] [strided]`, where N may be a list of
lengths and ranges and dtype a list: a shape for each pair."""

import re
from dataclasses import dataclass

BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
DEFAULT_ELEMENTS = 1 << 26  # of a shape without a number of rows, as in `jitsoftmax bench`
USAGE = "a line is 'N dtype [rows] [log_softmax] [strided]'"


class ShapeError(ValueError):
    """A line that makes no sense; the text says which."""


@dataclass(frozen=True)
class Shape:
    cols: int
    in_dtype: str
    out_dtype: str
    rows: int
    log_softmax: bool = False
    strided: bool = False

    @property
    def problem(self):
        """As the library spells it: everything but the rows."""
        dtype = self.in_dtype if self.in_dtype == self.out_dtype else f"{self.in_dtype}->{self.out_dtype}"
        return f"{self.cols} {dtype}" + " log_softmax" * self.log_softmax + " strided" * self.strided

    @property
    def bytes(self):
        """Moved at least: everything read once and written once."""
        return self.rows * self.cols * (BYTES[self.in_dtype] + BYTES[self.out_dtype])

    def __str__(self):
        return f"{self.rows}x{self.problem}"


def count_in(word):
    """A whole number from 1 to 2^63 - 1, or None."""
    value = int(word) if re.fullmatch(r"[0-9]+", word) else 0
    return value if 1 <= value < 1 << 63 else None


def lengths_in(word):
    """The row lengths of a list of '4096', '1000..1010', '1000..2000+8' or '1024..8192*2', or None."""
    lengths = []
    for item in word.split(","):
        match = re.fullmatch(r"([0-9]+)(?:\.\.([0-9]+)(?:([+*])([0-9]+))?)?", item)
        first, last = (count_in(end) for end in (match[1], match[2] or match[1])) if match else (None, None)
        step = count_in(match[4]) if match and match[4] else 1
        if None in (first, last, step) or first > last or (match[3] == "*" and step < 2):
            return None
        while first <= last:
            lengths.append(first)
            first = first * step if match[3] == "*" else first + step
    return lengths


def dtypes_in(word):
    """The types of input and output that 'f16' or 'f16->f32' names, or None."""
    first, arrow, second = word.partition("->")
    second = second if arrow else first
    halves = ("f16", "bf16")
    mixed = (first in halves and second == "f32") or (first == "f32" and second in halves)
    return (first, second) if first in BYTES and (first == second or mixed) else None


def parse_line(words):
    """Every shape of a line."""
    lengths = lengths_in(words[0])
    if lengths is None:
        raise ShapeError(f"'{words[0]}' is not a row length from 1 to 2^63 - 1: {USAGE}")
    if len(words) < 2:
        raise ShapeError(f"the element type is missing: {USAGE}")
    dtypes = [dtypes_in(item) for item in words[1].split(",")]
    if None in dtypes:
        raise ShapeError(f"'{words[1]}' is not f16, bf16, f32, f64, or f16 or bf16 to or from f32 (as 'f16->f32')")
    rows = count_in(words[2]) if len(words) > 2 else None
    options = words[2:] if rows is None else words[3:]
    for word in options:
        if word not in ("log_softmax", "strided"):
            raise ShapeError(f"'{word}' is not understood here: {USAGE}")
    return [Shape(cols, *types, rows or max(1, DEFAULT_ELEMENTS // cols),
                  log_softmax="log_softmax" in options, strided="strided" in options)
            for cols in lengths for types in dtypes]


def parse_shapes(text, name):
    shapes = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            shapes += parse_line(words)
        except ShapeError as error:
            raise ShapeError(f"{name}:{number}: {error}") from None
    if not shapes:
        raise ShapeError(f"'{name}' has no shape: add lines such as '4096 f32'")
    return shapes


def reason_to_skip(shape):
    """Why the peers cannot be compared at a shape, or None."""
    if shape.strided:
        return "strided rows"
    if shape.log_softmax:
        return "log_softmax"
    if shape.in_dtype != shape.out_dtype:
        return "input and output differ in type"
    return None
