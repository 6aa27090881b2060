#!/usr/bin/env python3
"""The mutation check: breaks the kernels, one barrier or bound at a time, and expects that running
them on the CPU shows it.

    mutations.py --templates DIR --work DIR --jobs N [--only TEXT] -- COMPILER ARGUMENT...

COMPILER ARGUMENT... builds the probe; {templates} in an argument is replaced by a folder that holds
kernel_templates/, {output} by the program to write.

Compiling takes long and running does not, so one program has all mutations in it, each behind a test
of the number that the program is given. What the compiler does not take in this form, a bound in a
constant expression, gets a program of its own.
"""

import argparse
import concurrent.futures
import dataclasses
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
    "first + step < cover.own": "first + step + step < cover.own",  # the last chunk is lost
}
# Of one file: a packet or a piece too many is one that no thread has; rows always fit in what is staged; a helper's partials are
# counted again where they are loaded, and are too many only where blocks are no multiple of the helpers.
LOOPS_OF = {"softmax_counted.cuh": {"k < packets_": "k + 1 < packets_"},
            "softmax_registers.cuh": {"k < count": "k + 1 < count"},
            "softmax_staged.cuh": {"k < count": "k + 1 < count"},
            "softmax_strided_registers.cuh": {"i < Group": "i + 1 < Group"},
            "softmax_strided_staged.cuh": {"piece < config.pieces": "piece + 1 < config.pieces"},
            "tile_group.cuh": {"i < each": "i + 1 < each", "from + i * sharing < count": "from + i * sharing + 1 < count"}}
# At equality both sides are the same number; a lane that does not send may work out any place to send to; which lines leave
# the cache first, or which tile waits for its turn, changes no result.
NO_BOUNDS = ["config.threads < warp_size ?", "left < most ?", "left < block_packets ?", "to_boundary < cols ?",
             "each * rank_ < packets ?", "left < each ?", "scale < 0", "lane < config.cluster ?", "whole_columns - before < 0 ?",
             "sure < config.pieces ?", "config.cluster <= 4 ?",
             "config.elements <= 16)", "tile < arguments.staggered"]
# What orders threads, blocks and copies, or is part of it. Not publish_barriers(): it tells another unit of the
# hardware about the barriers, and the CPU has one memory only.
ORDERING = re.compile(r"(?:sync_block|sync_warp|cluster_arrive|cluster_wait|close_copies|wait_for_copies<\w+>)\(\);|start_copy\(.*\);|wait_for_predecessor(?:<always>)?\(arguments\);|publish\(\w+\(\), .*\);"
                      r"|\w*barrier\(\w*\)\.(?:init|expect|wait|wait_for_blocks)\(.*\);|(?:\w+|RemotePlace\(.*\))\.send\(.*\);|\bpost\(.*\);")
SKIPPED = re.compile(r"^\s*(//|#|static_assert)")
BOUND = re.compile(r"[\w.]+(?: [*/+-] [\w.]+)* (<=|<|>=|>) [\w.]+(?: / [\w.]+)?")
WEAKER = {"<": "<=", ">=": ">"}


@dataclasses.dataclass(frozen=True)
class Mutation:
    file: str
    line: int
    what: str
    start: int  # in the file's text
    end: int
    broken: str  # what the text in between becomes
    is_bound: bool

    def __str__(self):
        return f"{self.file}:{self.line}: {self.what}"


def mutations_of(name, line):
    """(what is broken, where, by what, whether it is a bound) for every barrier and bound of a line."""
    if SKIPPED.match(line):
        return
    code = line.split("//")[0]
    for match in ORDERING.finditer(code):
        yield f"removed: {match.group(0)}", match, ";", False
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
        yield f"{text}  ->  {broken}", match, broken, True


def all_mutations(templates):
    names = ["online.cuh", "one_read.cuh", "row_group.cuh", "gang.cuh", "tile_group.cuh", *sorted(p.name for p in templates.glob("softmax_*.cuh"))]
    for name in names:
        at = 0
        for number, line in enumerate((templates / name).read_text().splitlines(keepends=True)):
            for what, match, broken, is_bound in mutations_of(name, line):
                yield Mutation(name, number + 1, what, at + match.start(), at + match.end(), broken, is_bound)
            at += len(line)


COMMENT = re.compile(r"//.*")
TOKEN = re.compile(r"::|&&|\|\||[<>=!]=|[-+*/]?=|\breturn\b|[][(){};,?:]")
# Where an expression begins or ends that is compared: these bind less tightly.
ENDS = {"&&", "||", "=", "+=", "-=", "*=", "/=", "return", "{", "}", ";", ",", "?", ":"}


def expression_around(code, start, end):
    """The bounds of the whole expression that a comparison in code[start:end] is."""
    def edge(tokens, opening, closing, outermost):
        depth = 0
        for token in tokens:
            text = token.group(0)
            if depth == 0 and (text in ENDS or text in opening):
                return token
            depth += (text in closing) - (text in opening)
        return outermost
    before = edge(reversed(list(TOKEN.finditer(code, 0, start))), "([{", ")]}", None)
    after = edge(TOKEN.finditer(code, end), ")]}", "([{", None)
    return before.end(), after.start()


def switched(text, mutations):
    """The text with each of {number: mutation} behind a test of its number, and the numbers of those that
    cannot be: they are inside of another one."""
    code = COMMENT.sub(lambda comment: " " * len(comment.group(0)), text)
    edits = []
    left_out = set()
    for number, m in mutations.items():
        if m.is_bound:
            start, end = expression_around(code, m.start, m.end)
            right, wrong = code[start:end], code[start:m.start] + m.broken + code[m.end:end]
            edit = (start, end, f" (host_test::is_mutant({number}) ? ({wrong}) : ({right}))")
        else:
            edit = (m.start, m.end, f"{{ if (!host_test::is_mutant({number})) {code[m.start:m.end]} }}")
        if any(edit[0] < end and start < edit[1] for start, end, _ in edits):
            left_out.add(number)
        else:
            edits.append(edit)
    for start, end, replacement in sorted(edits, reverse=True):
        code = code[:start] + replacement + code[end:]
    return code, left_out


class Probe:
    def __init__(self, arguments):
        self.templates = pathlib.Path(arguments.templates)
        self.work = pathlib.Path(arguments.work)
        self.command = arguments.command

    def build(self, folder, texts):
        """The program, or None, of the kernels with some of their files replaced, and what the compiler said."""
        folder = self.work / folder
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.templates, folder / "kernel_templates")
        for name, text in texts.items():
            (folder / "kernel_templates" / name).write_text(text)
        program = folder / "probe"
        built = subprocess.run(
            [a.replace("{templates}", str(folder)).replace("{output}", str(program)) for a in self.command],
            capture_output=True, text=True)
        return (program if built.returncode == 0 else None), built.stderr

    def build_switched(self, mutations):
        """The program, or None, with as many of {number: mutation} as possible, and what the compiler said."""
        rest = dict(mutations)
        while True:
            texts = {}
            refused = set()
            for name in {m.file for m in rest.values()}:
                of_file = {number: m for number, m in rest.items() if m.file == name}
                texts[name], left_out = switched((self.templates / name).read_text(), of_file)
                refused |= left_out
            program, message = self.build("all", texts)
            if program is None:
                at = set(re.findall(r"([\w.]+):(\d+):\d+: error", message))
                refused |= {number for number, m in rest.items() if (m.file, str(m.line)) in at}
            if program or not refused:
                return program, message, set(rest) - refused
            rest = {number: m for number, m in rest.items() if number not in refused}

    def build_alone(self, number, mutation):
        text = (self.templates / mutation.file).read_text()
        broken = text[:mutation.start] + mutation.broken + text[mutation.end:]
        return self.build(str(number), {mutation.file: broken})


def run(program, number):
    """What is wrong with a mutant, None if nothing is."""
    try:
        done = subprocess.run([program, str(number)], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "does not end"
    return None if done.returncode == 0 else done.stderr or f"exit code {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--templates", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="only what this is a part of, as --list says it")
    parser.add_argument("--list", action="store_true", help="only say what would be broken")
    parser.add_argument("command", nargs="*")
    arguments = parser.parse_args()

    mutations = {number: m for number, m in enumerate(all_mutations(pathlib.Path(arguments.templates)))
                 if arguments.only in str(m)}
    if arguments.list:
        print("\n".join(str(m) for m in mutations.values()))
        return 0
    probe = Probe(arguments)
    together, message, inside = probe.build_switched(mutations)
    if together is None:
        print(f"the kernels do not build with their mutations in them:\n{message}")
        return 1
    if failure := run(together, -1):
        print(f"the unchanged kernels fail:\n{failure}")
        return 1

    def try_out(number):
        program, message = (together, "") if number in inside else probe.build_alone(number, mutations[number])
        return (program is not None), (run(program, number) if program else message)

    missed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for mutation, (ran, failure) in zip(mutations.values(), pool.map(try_out, mutations)):
            lines = (failure or "").splitlines()
            reason = next((l for l in lines if re.search("error|ERROR|is .* instead|block ", l)), "")
            caught = ran and failure  # one that does not compile shows nothing
            print(f"{'caught' if caught else 'MISSED'}  {mutation}  {reason[:160]}", flush=True)
            missed += not caught
    print(f"{len(mutations)} mutations, {len(mutations) - len(inside)} of them in programs of their own; "
          f"{missed} not caught by running them")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
