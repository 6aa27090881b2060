#!/usr/bin/env python3
"""The online-softmax lesson, measured: what `jitsoftmax bench --study --json` found, with the bytes that the memory moved,
and as a table.

  profile IN.json OUT.json   runs each kernel of IN under Nsight Compute (ncu), by `jitsoftmax run`, and adds what its
                             counters say. Where there is no ncu it says so, and OUT is IN without them
  table FILE.json            prints the tables of tools/results/lesson.md; --into PAGE.md puts them there, between the
                             lines that mark their place

    jitsoftmax bench --study --json study.json
    tools/study.py profile study.json study.json --program build/release/tools/jitsoftmax
    tools/study.py table study.json --into tools/results/lesson.md
"""

import argparse
import array
import csv
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SECTOR = 32  # bytes
# What is kept of a kernel, the counter that it comes from, and the bytes that one of it stands for.
COUNTERS = {
    "dram_read_bytes": ("dram__bytes_read.sum", 1),
    "dram_write_bytes": ("dram__bytes_write.sum", 1),
    "l2_read_bytes": ("lts__t_sectors_op_read.sum", SECTOR),
    "l2_write_bytes": ("lts__t_sectors_op_write.sum", SECTOR),
    "l1_load_bytes": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", SECTOR),
    "l1_store_bytes": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", SECTOR),
    "local_load_bytes": ("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", SECTOR),
    "local_store_bytes": ("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", SECTOR),
}
UNITS = {"": 1, "byte": 1, "sector": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
NPY = {"f16": ("<f2", "e"), "f32": ("<f4", "f"), "f64": ("<f8", "d")}
BEGIN, END = "<!-- tables of h200_study.json: tools/study.py table -->", "<!-- end of the tables -->"
STEPS = {
    "safe3": "three passes: maximum, sum, result",
    "v0": "a thread a row, online recurrence",
    "v1": "a block a row, partial results merged by shuffles",
    "v2": "v1 with accesses of 16 bytes",
    "v3": "the row stays in registers",
    "v4": "v2 under a grid-stride loop",
}


class StudyError(Exception):
    """What cannot be done, for people."""


def write_input(path, rows, cols, dtype):
    """One row of random numbers, again and again: what is counted does not depend on them."""
    descr, code = NPY[dtype]
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {cols}), }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    draw = random.Random(1).gauss
    row = [draw(0, 3) for _ in range(cols)]
    line = struct.pack(f"<{cols}e", *row) if code == "e" else array.array(code, row).tobytes()
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("ascii"))
        for _ in range(rows):
            file.write(line)


def counters_in(text):
    """{counter: value} of the first kernel in what `ncu --csv` printed: a column a counter (--page raw) or a line
    a counter."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise StudyError("ncu counted nothing: " + " ".join(text.split())[-300:])
    header, *rows = csv.reader(lines[start:])
    if "Metric Name" in header:
        name, unit, value = (header.index(f"Metric {what}") for what in ("Name", "Unit", "Value"))
        found = [(row[name], row[unit], row[value]) for row in reversed(rows) if len(row) == len(header)]
    elif len(rows) >= 2:
        found = list(zip(header, rows[0], rows[1]))  # units, then the first kernel
    else:
        raise StudyError("ncu counted nothing: there is no kernel in what it printed")
    # A counter that this GPU does not have is "n/a".
    return {name: float(value.replace(",", "")) * UNITS.get(unit, 1) for name, unit, value in found
            if "__" in name and re.fullmatch(r"[\d,.]+", value)}


def bytes_in(counters):
    return {what: round(counters[name] * bytes_each) for what, (name, bytes_each) in COUNTERS.items() if name in counters}


def profile_kernel(ncu, program, kernel, folder):
    log = folder / "counters.csv"
    log.unlink(missing_ok=True)
    command = [ncu, "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log), "--launch-count", "1",
               "--metrics", ",".join(name for name, _ in COUNTERS.values()),
               str(program), "run", str(folder / "in.npy"), "-o", str(folder / "out.npy"), "--device", "cuda:0",
               "--cache-dir", str(folder / "cache"), *kernel["options"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = log.read_text() if log.exists() else ""
    if done.returncode != 0 and '"ID"' not in text:
        raise StudyError(f"{kernel['name']}: " + " ".join((text + done.stdout + done.stderr).split())[-400:])
    return bytes_in(counters_in(text))


def profile(document, program, ncu):
    """Adds "counted" to the kernels of the first case. Returns what could not be done, as lines."""
    case = document["cases"][0]
    dtype = case["problem"].split()[1]
    if dtype not in NPY:
        return [f"a .npy file has no {dtype}: nothing is counted"]
    if shutil.which(ncu) is None:
        return [f"'{ncu}' is not there: the bytes that the memory moved stay empty. It is Nsight Compute, of the CUDA "
                "toolkit (apt: cuda-nsight-compute-*); --ncu says where"]
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_input(folder / "in.npy", case["rows"], case["cols"], dtype)
        for kernel in case["kernels"]:
            if "error" in kernel:
                continue
            try:
                kernel["counted"] = profile_kernel(ncu, program, kernel, folder)
            except StudyError as error:
                problems.append(str(error))
    return problems


def megabytes(kernel, *names):
    counted = kernel.get("counted", {})
    return f"{sum(counted[name] for name in names) / 1e6:.0f}" if all(name in counted for name in names) else ""


def percent(share):
    return "" if share is None else f"{share:.0%}".replace("%", " %")


def table(rows):
    header, *rest = rows
    rule = ["---"] * len(header)
    return "".join("| " + " | ".join(str(cell) for cell in row) + " |\n" for row in [header, rule, *rest])


def step_table(document):
    case = document["cases"][0]
    copy = case["copy"]["cold_seconds"]["median"]
    rows = [("kernel", "what it is", "median µs", "of the copy", "of the theoretical bandwidth", "the lesson, on an A100",
             "MB asked for", "MB read from memory", "MB written to it", "registers", "local bytes")]
    rows.append(("copy", case["copy"]["kernel"], f"{copy * 1e6:.2f}", "1",
                 percent(case["bytes"] / copy / document["peak_bytes_a_second"]), "", f"{case['bytes'] / 1e6:.0f}", "", "",
                 "", ""))
    for kernel in case["kernels"]:
        if "elements_a_thread" in kernel:
            continue
        if "error" in kernel:
            rows.append((kernel["name"], kernel["error"], *[""] * 9))
            continue
        rows.append((kernel["name"], STEPS.get(kernel["name"], ""), f"{kernel['cold_seconds']['median'] * 1e6:.2f}",
                     f"{kernel['share_of_copy']:.3f}", percent(kernel["share_of_peak"]),
                     percent(kernel.get("share_of_peak_on_a100")), f"{kernel['bytes_asked_for'] / 1e6:.0f}",
                     megabytes(kernel, "dram_read_bytes"), megabytes(kernel, "dram_write_bytes"),
                     kernel.get("registers", ""), kernel.get("stack_bytes", "")))
    return table(rows)


def register_table(document):
    kernels = document["cases"][0]["kernels"]
    by_elements = {}
    for kernel in kernels:
        if "elements_a_thread" in kernel:
            family = kernel["options"][kernel["options"].index("--family") + 1]
            by_elements.setdefault(kernel["elements_a_thread"], {})[family] = kernel
    if not by_elements:
        return ""
    half = ("µs", "registers", "local bytes", "MB of local memory")
    rows = [("elements a thread", "threads", *(f"compiled in: {what}" for what in half[:3]),
             *(f"at the launch: {what}" for what in half))]
    for elements, pair in sorted(by_elements.items()):
        options = next(iter(pair.values()))["options"]
        row = [elements, options[options.index("--threads") + 1]]
        for family in ("registers", "counted"):
            kernel = pair.get(family, {"error": ""})
            cells = [kernel["error"], "", "", ""] if "error" in kernel else [
                f"{kernel['cold_seconds']['median'] * 1e6:.2f}", kernel.get("registers", ""),
                kernel.get("stack_bytes", ""), megabytes(kernel, "local_load_bytes", "local_store_bytes")]
            row += cells[:3] if family == "registers" else cells
        rows.append(row)
    return table(rows)


def tables(document):
    case = document["cases"][0]
    return (f"{case['rows']} × {case['problem']}, {document['device']}, NVRTC {document['nvrtc']}, theoretical bandwidth "
            f"{document['peak_bytes_a_second'] / 1e12:.2f} TB/s\n\n" + step_table(document) + "\n" +
            register_table(document))


def put_into(page, text):
    before, begin, rest = page.partition(BEGIN + "\n")
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise StudyError(f"the page has no place for the tables: the lines '{BEGIN}' and '{END}'")
    return before + begin + "\n" + text + "\n" + end + after


def read(path):
    try:
        document = json.loads(path.read_text())
        document["peak_bytes_a_second"], document["cases"][0]["kernels"][0]["options"]
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise StudyError(f"'{path}' is no result of jitsoftmax bench --study --json: {error!r}") from error
    return document


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("profile", help="add what Nsight Compute counts")
    command.add_argument("input", type=pathlib.Path)
    command.add_argument("output", type=pathlib.Path)
    command.add_argument("--program", default="jitsoftmax", help="the program (default: jitsoftmax on PATH)")
    command.add_argument("--ncu", default="ncu", help="Nsight Compute (default: ncu on PATH)")
    command = commands.add_parser("table", help="print the tables")
    command.add_argument("file", type=pathlib.Path)
    command.add_argument("--into", type=pathlib.Path, metavar="PAGE.md", help="put them into this page instead")
    options = parser.parse_args(arguments)
    try:
        if options.command == "profile":
            document = read(options.input)
            for problem in profile(document, options.program, options.ncu):
                print(f"study: {problem}", file=sys.stderr)
            options.output.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        elif options.into:
            options.into.write_text(put_into(options.into.read_text(), tables(read(options.file))))
        else:
            print(tables(read(options.file)), end="")
    except (StudyError, OSError) as error:
        print(f"study: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
