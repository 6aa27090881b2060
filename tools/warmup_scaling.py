#!/usr/bin/env python3
"""How a warmup scales: the same kernels with one job and with more, in turns.

    tools/warmup_scaling.py build/release/tools/jitsoftmax --kernels 200 --jobs 1,2 --rounds 3

Beside the wall time a kernel it prints the CPU time, which depends less on who else uses the cores.
"""

import argparse
import glob
import os
import resource
import statistics
import subprocess
import tempfile
import time


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(program: str, kernels: int, jobs: int) -> float:
    """Wall seconds a kernel of row lengths from 1001 on."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "warmup", "--shapes", "-", "--arch", "sm_90", "--jobs", str(jobs), "--cache-dir", folder]
        cpu, start = cpu_seconds(), time.monotonic()
        # A length that is a multiple of 4 has two kernels.
        subprocess.run(command, input=f"1001..{1000 + kernels * 4 // 5} f32\n".encode(), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        wall, cpu = time.monotonic() - start, cpu_seconds() - cpu
        made = len(glob.glob(f"{folder}/*/*.jsc"))
    print(f"{jobs:3} jobs  {made} kernels: {1e3 * wall / made:6.1f} ms wall, {1e3 * cpu / made:6.1f} ms CPU each, "
          f"load {os.getloadavg()[0]:.1f}", flush=True)
    return wall / made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the jitsoftmax program")
    parser.add_argument("--kernels", type=int, default=200, help="about so many (default: 200)")
    parser.add_argument("--jobs", default="1,2", help="numbers of jobs, the first of which the others are compared with")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    jobs = [int(number) for number in arguments.jobs.split(",")]
    walls = {number: [] for number in jobs}
    for _ in range(arguments.rounds):
        for number in jobs:
            walls[number].append(measure(arguments.program, arguments.kernels, number))
    medians = {number: statistics.median(walls[number]) for number in jobs}
    for number in jobs[1:]:
        print(f"{number} jobs are {medians[jobs[0]] / medians[number]:.2f} times as fast as {jobs[0]}")


if __name__ == "__main__":
    main()
