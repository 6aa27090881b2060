#!/usr/bin/env python3
"""Times libjitsoftmax beside PyTorch, torch.compile, Triton, cuDNN and a copy, on one GPU in one process.

Every contestant's launches are captured in a CUDA graph over rotated buffers, the same for all, that together
exceed the L2 cache; a sample of its results is verified before it is timed; contestants with several
variants compete with their fastest; rounds are interleaved. The table has TB/s of the copy, bytes read once
and written once over time, and everybody's share of that speed.

Needs PyTorch. Exit codes: 0 done, 1 libjitsoftmax failed at a shape, 2 usage, 5 no PyTorch or no GPU,
6 libjitsoftmax gave a wrong result.
"""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys

from peers.report import Result, case_json, case_text, error_notes, header_text
from peers.shapes import ShapeError, parse_shapes, reason_to_skip

NAMES = ("jitsoftmax", "torch", "compile", "triton", "cudnn")
SWEEP_SECONDS = 5e-4  # of one measurement that chooses a variant


def fail(code, text):
    print(f"bench_peers: {text}", file=sys.stderr)
    sys.exit(code)


def note(text):
    print(f"-- {text}", file=sys.stderr, flush=True)


def rounds_in(text):
    value = int(text)
    if value < 5:
        raise argparse.ArgumentTypeError("at least 5")
    return value


def names_in(text):
    names = text.split(",")
    for name in names:
        if name not in NAMES:
            raise argparse.ArgumentTypeError(f"'{name}' is none of {', '.join(NAMES)}")
    return names


def parse_arguments(arguments):
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=pathlib.Path, default=root / "tools" / "shapes_h200.txt", metavar="FILE",
                        help="`N dtype [rows]` a line; default: tools/shapes_h200.txt")
    parser.add_argument("--contestants", type=names_in, default=list(NAMES), metavar="NAME,...",
                        help=f"of {', '.join(NAMES)}; default: all that are there")
    parser.add_argument("--library", type=pathlib.Path, metavar="FILE",
                        help="libjitsoftmax.so; default: the newest below build*/")
    parser.add_argument("--rounds", type=rounds_in, default=7, metavar="N", help="at least 5; default: 7")
    parser.add_argument("--seconds", type=float, default=2e-3, metavar="S",
                        help="that one measurement lasts at least; default: 0.002")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="everything, as JSON")
    options = parser.parse_args(arguments)
    options.root = root
    return options


def read_shapes(path):
    """Those at which everybody can compete."""
    try:
        shapes = parse_shapes(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        fail(2, f"'{path}' cannot be read: {error.strerror}")
    except ShapeError as error:
        fail(2, str(error))
    for shape in shapes:
        if reason_to_skip(shape):
            note(f"{shape}: skipped: {reason_to_skip(shape)}")
    return [shape for shape in shapes if not reason_to_skip(shape)]


def gather(options):
    """The contestants that are there, by name; and why the others are not."""
    from peers.contestants import CONTESTANTS
    there, absent = {}, {}
    for name in options.contestants:
        try:
            there[name] = CONTESTANTS[name](options)
        except (OSError, RuntimeError) as reason:
            if name == "jitsoftmax":
                fail(2, f"{reason} (or leave it out: --contestants torch,...)")
            absent[name] = str(reason)
            note(f"{name}: absent: {reason}")
    return there, absent


def describe_machine(there):
    import torch
    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    try:
        driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                                capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        driver = None
    return {"device": device.name, "multiprocessors": device.multi_processor_count, "driver": driver,
            "cuda": torch.version.cuda, "torch": torch.__version__,
            "versions": {name: contestant.version for name, contestant in there.items()}}


def select(name, contestant, case):
    """The fastest variant that is right: its result, not timed yet, and its graph, None where there is none."""
    from peers.timing import Graph
    result, fastest = Result(name), None
    try:
        variants = contestant.variants(case)
    except Exception as error:  # whatever a peer raises is a gap in the table, not the end of it
        result.error = explain(error)
        return result, None
    for kernel, call in variants:
        try:
            graph = Graph(call, case.sets)
            worst = graph.worst_error(case, contestant.error_of(case))
        except Exception as error:
            result.swept[kernel] = explain(error)
            continue
        if worst > 1:
            result.wrong = True
            result.swept[kernel] = f"wrong result: {worst:.3g} of the tolerance"
            continue
        graph.choose_replays(SWEEP_SECONDS)
        seconds = result.swept[kernel] = min(graph.measure() for _ in range(2))
        if fastest is None or seconds < result.swept[result.kernel]:
            fastest, result.kernel, result.worst_error = graph, kernel, worst
    if fastest is None:
        result.error = "; ".join(f"{kernel}: {reason}" for kernel, reason in result.swept.items()) or "no variant fits"
    else:
        result.wrong = False  # a variant that was is in `swept`
    return result, fastest


def explain(error):
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def measure(there, copy, case, options):
    """The copy's result, and those of the contestants."""
    entries = [select(name, contestant, case) for name, contestant in {"copy": copy, **there}.items()]
    racing = [(result, graph) for result, graph in entries if graph is not None]
    for _, graph in racing:
        graph.choose_replays(options.seconds)
    for number in range(options.rounds):
        for i in range(len(racing)):
            result, graph = racing[(i + number) % len(racing)]
            result.seconds.append(graph.measure())
    results = [result for result, _ in entries]
    return results[0], results[1:]


def main(arguments):
    options = parse_arguments(arguments)
    shapes = read_shapes(options.shapes)
    try:
        import torch
    except ImportError as error:
        fail(5, f"PyTorch is needed: {error}")
    if not torch.cuda.is_available():
        fail(5, "PyTorch finds no GPU here")
    from peers.contestants import Copy
    from peers.timing import Case

    torch.manual_seed(1)
    document = {"command": shlex.join([pathlib.Path(sys.argv[0]).name, *arguments])}
    own = []
    with torch.cuda.stream(torch.cuda.Stream()):  # the default stream cannot be captured
        torch.empty(1, device="cuda")  # makes the context current, which libjitsoftmax takes
        there, absent = gather(options)
        copy = Copy(options)
        machine = describe_machine(there)
        document |= {**machine, "absent": absent, "rounds": options.rounds, "cases": []}
        print(f"{machine['device']}, driver {machine['driver']}, CUDA {machine['cuda']}; " +
              ", ".join(f"{name} {version}" for name, version in machine["versions"].items()))
        print(header_text(there), flush=True)
        try:
            for shape in shapes:
                limit, results = measure(there, copy, Case(shape), options)
                document["cases"].append(case_json(shape, limit, results))
                print(case_text(shape, limit, results), flush=True)
                for text in error_notes(shape, [limit, *results]):
                    note(text)
                own += [result for result in results if result.name == "jitsoftmax"]
        finally:
            if options.json:
                options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    sys.exit(6 if any(result.wrong for result in own) else 1 if any(result.error for result in own) else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
