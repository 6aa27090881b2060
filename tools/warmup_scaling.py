#!/usr/bin/env python3
"""How a warmup scales over two cores: the same kernels with one thread, with two, and with two processes, in turns.

    tools/warmup_scaling.py build/release/tools/jitsoftmax --kernels 200 --rounds 5

Beside the wall time it prints what does not depend on who else uses the cores: CPU time a kernel, and how long threads
were blocked (on each other, or on storage) while they wanted to run. Linux only.
"""

import argparse
import glob
import os
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass


@dataclass
class Thread:
    run: float = 0  # seconds on a core
    queued: float = 0  # seconds in which it could have run
    seen: float = 0  # seconds since the start when it was last looked at

    @property
    def blocked(self) -> float:
        return self.seen - self.run - self.queued


def look_at(pid: int, threads: dict[str, Thread], start: float) -> None:
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            with open(path, encoding="ascii") as file:
                run, queued, _ = (int(word) for word in file.read().split())
        except (OSError, ValueError):  # it has ended
            continue
        threads[path] = Thread(run * 1e-9, queued * 1e-9, time.monotonic() - start)


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(program: str, lengths: list[range], jobs: int, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cpu, start = cpu_seconds(), time.monotonic()
        processes = []
        for part in lengths:
            command = [program, "warmup", "--shapes", "-", "--arch", "sm_90", "--jobs", str(jobs)]
            command += ["--cache-dir", f"{folder}/{part.start}"]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            process.stdin.write(f"{part.start}..{part.stop - 1} f32\n".encode())
            process.stdin.close()
            processes.append(process)
        threads: dict[str, Thread] = {}
        while any(process.poll() is None for process in processes):
            for process in processes:
                look_at(process.pid, threads, start)
            time.sleep(0.02)
        wall = time.monotonic() - start
        kernels = len(glob.glob(f"{folder}/*/*/*.jsc"))
    run = sum(thread.run for thread in threads.values())
    blocked = sum(thread.blocked for thread in threads.values())
    print(
        f"{name:<12} {kernels} kernels: {1e3 * wall / kernels:6.1f} ms wall, "
        f"{1e3 * (cpu_seconds() - cpu) / kernels:6.1f} ms CPU each, "
        f"blocked {100 * blocked / (run + blocked):4.1f} %, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the jitsoftmax program")
    parser.add_argument("--kernels", type=int, default=200, help="row lengths from 1001 on (default: 200)")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    first, half = 1001, arguments.kernels // 2
    whole = range(first, first + 2 * half)
    halves = [range(first, first + half), range(first + half, first + 2 * half)]
    for _ in range(arguments.rounds):
        measure(arguments.program, [whole], 1, "1 thread")
        measure(arguments.program, [whole], 2, "2 threads")
        measure(arguments.program, halves, 1, "2 processes")


if __name__ == "__main__":
    main()
