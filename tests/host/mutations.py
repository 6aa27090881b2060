#!/usr/bin/env python3
"""The mutation check: breaks the kernels, one barrier or bound at a time, and expects that running
them on the CPU shows it.

    mutations.py --templates DIR --work DIR --jobs N [--only TEXT] -- COMPILER ARGUMENT...

COMPILER ARGUMENT... builds the probe; {templates} in an argument is replaced by a folder that holds
kernel_templates/, {output} by the program to write.
"""

import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

# Bounds that only save work: one step too many changes no result, since every access has a bound of
# its own and a row that does not exist has no columns. Each is broken in the direction that loses
# elements instead, where there is one.
LOOPS = {
    "first < group.cols": "first + step < group.cols",  # the last chunk is lost
    "first < cover.packets": "first + step < cover.packets",
    "i < edges": "i + 1 < edges",
    "tile < tiles": "tile + 1 < tiles",  # the last rows are lost
    "config.rows < arguments.rows": "config.rows + config.rows < arguments.rows",
}
# Of one file: rows always fit in what is staged.
LOOPS_OF = {"softmax_staged.cuh": {"k < count": "k + 1 < count"}}
# At equality both sides are the same number.
NO_BOUNDS = ["config.threads < warp_size ?", "left < config.threads ?", "to_boundary < cols ?"]
# What orders threads, blocks and copies, or is part of it. Not publish_barriers(): it tells another unit of the
# hardware about the barriers, and the CPU has one memory only.
ORDERING = re.compile(r"(?:sync_block|cluster_arrive|cluster_wait)\(\);|publish\(\w+\(\), .*\);"
                      r"|\w*barrier\(\w*\)\.(?:init|expect|wait)\(.*\);|send_to_block\(.*\);")
SKIPPED = re.compile(r"^\s*(//|#|static_assert)")
BOUND = re.compile(r"[\w.]+(?: [*/+-] [\w.]+)* (<=|<|>=|>) [\w.]+(?: / [\w.]+)?")
WEAKER = {"<": "<=", ">=": ">"}


def mutations_of(name, line):
    """(what is broken, the broken line) for every barrier and bound of a line."""
    if SKIPPED.match(line):
        return
    code = line.split("//")[0]
    for match in ORDERING.finditer(code):
        yield f"removed: {match.group(0)}", line[:match.start()] + ";" + line[match.end():]
    for match in BOUND.finditer(code):
        text, operator = match.group(0), match.group(1)
        if any(code[match.start():].startswith(known) for known in NO_BOUNDS):
            continue
        loops = LOOPS | LOOPS_OF.get(name, {})
        if text in loops:
            broken = loops[text]
        elif operator in WEAKER:
            broken = text.replace(f" {operator} ", f" {WEAKER[operator]} ")
        elif operator == "<=":
            broken = text + " + 1"
        else:
            continue  # `> 0`: ends loops over powers of two and chooses code, no bound of memory
        yield f"{text}  ->  {broken}", line[:match.start()] + broken + line[match.end():]


def all_mutations(templates):
    names = ["online.cuh", "one_read.cuh", "row_group.cuh", *sorted(p.name for p in templates.glob("softmax_*.cuh"))]
    for name in names:
        lines = (templates / name).read_text().splitlines(keepends=True)
        for number, line in enumerate(lines):
            for what, broken in mutations_of(name, line):
                yield f"{name}:{number + 1}: {what}", name, "".join([*lines[:number], broken, *lines[number + 1:]])


class Probe:
    def __init__(self, arguments):
        self.templates = pathlib.Path(arguments.templates)
        self.work = pathlib.Path(arguments.work)
        self.command = arguments.command

    def run(self, index, name=None, text=None):
        """What caught the mutant, "building" or "running" or nothing, and what it said."""
        folder = self.work / str(index)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.templates, folder / "kernel_templates")
        if name:
            (folder / "kernel_templates" / name).write_text(text)
        program = folder / "probe"
        build = subprocess.run(
            [a.replace("{templates}", str(folder)).replace("{output}", str(program)) for a in self.command],
            capture_output=True, text=True)
        if build.returncode != 0:
            return "building", build.stderr
        try:
            run = subprocess.run([program], capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return "running", "does not end"
        shutil.rmtree(folder)
        return ("running" if run.returncode != 0 else None), run.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--templates", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="only what this is a part of, as --list says it")
    parser.add_argument("--list", action="store_true", help="only say what would be broken")
    parser.add_argument("command", nargs="*")
    arguments = parser.parse_args()

    mutations = [m for m in all_mutations(pathlib.Path(arguments.templates)) if arguments.only in m[0]]
    if arguments.list:
        print("\n".join(what for what, _, _ in mutations))
        return 0
    probe = Probe(arguments)
    caught, message = probe.run("unchanged")
    if caught:
        print(f"the unchanged kernels fail at {caught}:\n{message}")
        return 1
    survivors = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = pool.map(lambda m: probe.run(m[0], *m[1][1:]), enumerate(mutations))
        for (what, _, _), (caught, message) in zip(mutations, results):
            reason = next((l for l in message.splitlines() if re.search("error|ERROR|is .* instead|block ", l)), "")
            print(f"{'caught' if caught else 'MISSED'}  {what}  {reason[:160]}", flush=True)
            survivors += caught != "running"  # one that does not compile shows nothing
    print(f"{len(mutations)} mutations, {survivors} not caught by running them")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
