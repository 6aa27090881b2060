#!/usr/bin/env python3
"""Writes rows of logits, as a language model's last layer has them, to a NumPy file. Needs no NumPy.

usage: make_input.py ROWS COLUMNS f16|f32|f64 OUT.npy [SEED]
"""
import random
import struct
import sys

FORMATS = {"f16": ("<f2", "e"), "f32": ("<f4", "f"), "f64": ("<f8", "d")}


def header(descr, rows, columns):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    # Format 1.0: magic, version and the header's length are 10 bytes; the data starts at a multiple of 64.
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("ascii")


def main(arguments):
    if len(arguments) not in (4, 5) or arguments[2] not in FORMATS:
        sys.exit(__doc__)
    rows, columns, out = int(arguments[0]), int(arguments[1]), arguments[3]
    descr, code = FORMATS[arguments[2]]
    draw = random.Random(int(arguments[4]) if len(arguments) == 5 else 1).gauss
    with open(out, "wb") as file:
        file.write(header(descr, rows, columns))
        for _ in range(rows):
            file.write(struct.pack(f"<{columns}{code}", *(draw(0, 3) for _ in range(columns))))


main(sys.argv[1:])
