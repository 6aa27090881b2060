"""Buffers, verification and timing on the device: launches captured in a graph over rotated buffers.

Everything runs on torch's current stream, which must not be the default one: that cannot be captured.
"""

import collections
import math

import torch

from peers.shapes import BYTES

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
# Relative and absolute, against f64: what nobody's exponential needs, but every mistake exceeds. Results
# below the smallest normal number may be flushed.
TOLERANCES = {"f16": (2**-9, 2**-23), "bf16": (2**-6, 2**-126), "f32": (1e-4, 2**-126), "f64": (1e-11, 2**-1022)}
DEVIATION = 3  # of the inputs, as in `jitsoftmax bench`
ROTATED_BYTES = 400e6
MOST_SETS = 512
LEAST_LAUNCHES = 20  # in a graph, so that short kernels are not measured together with the launch of the graph


class BufferSet:
    """Input and output of one launch, flat and as rows. The flat ones end at a multiple of 64 bytes, for copies."""

    def __init__(self, shape):
        size = shape.rows * shape.cols
        padded = -(-size * BYTES[shape.in_dtype] // 64) * 64 // BYTES[shape.in_dtype]
        self.flat_x = torch.empty(padded, dtype=DTYPES[shape.in_dtype], device="cuda").normal_(0, DEVIATION)
        self.flat_out = torch.empty_like(self.flat_x)
        self.x = self.flat_x[:size].view(shape.rows, shape.cols)
        self.out = self.flat_out[:size].view(shape.rows, shape.cols)


class Case:
    """A shape with its buffers, and what is to come out."""

    def __init__(self, shape):
        self.shape = shape
        count = min(max(math.ceil(ROTATED_BYTES / shape.bytes), 2), MOST_SETS)
        self.sets = [BufferSet(shape) for _ in range(count)]
        self.checked = (0, count - 1)  # of the sets
        self.sample = self.sample_of_rows()
        self.expected = {i: torch.softmax(self.sets[i].x[self.sample].double(), -1) for i in self.checked}

    def sample_of_rows(self):
        """The first, the last and random ones between, few enough to be compared in a moment."""
        rows = self.shape.rows
        count = min(rows, max(2, min(256, (1 << 20) // self.shape.cols)))
        random = torch.Generator().manual_seed(1)
        chosen = torch.randint(rows, (count,), generator=random)
        chosen[0], chosen[-1] = 0, rows - 1
        return chosen.to("cuda")

    def softmax_error(self, i, out):
        """Of set i's output, the largest error over the tolerance; infinite where anything is no number."""
        relative, absolute = TOLERANCES[self.shape.out_dtype]
        expected = self.expected[i]
        error = (out[self.sample].double() - expected).abs() / (relative * expected + absolute)
        return error.nan_to_num(nan=math.inf, posinf=math.inf).max().item()

    def copy_error(self, i, out):
        return 0.0 if torch.equal(out.view(torch.int8), self.sets[i].flat_x.view(torch.int8)) else math.inf


class Graph:
    """The launches of one contestant over all buffer sets. `call(buffers)` launches and returns its output."""

    def __init__(self, call, sets):
        self.launches = -(-LEAST_LAUNCHES // len(sets)) * len(sets)
        # Compiles and loads, which a capture does not allow.
        call(sets[0])
        torch.cuda.synchronize()
        # What a contestant allocates lives in the graph's own pool. Kept for a rotation, so that no output
        # is in the cache already; the launches are whole rotations, so outputs[i] is set i's.
        self.outputs = collections.deque(maxlen=len(sets))
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=torch.cuda.current_stream()):
            for i in range(self.launches):
                self.outputs.append(call(sets[i % len(sets)]))
        self.start, self.stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.replays = 1

    def worst_error(self, case, error_of):
        """Replays the graph over poisoned outputs."""
        for i in case.checked:
            self.outputs[i].fill_(math.nan)
        self.graph.replay()
        return max(error_of(i, self.outputs[i]) for i in case.checked)

    def choose_replays(self, seconds):
        """As many as make a measurement last `seconds`."""
        self.replays = 1
        self.measure()  # warms up
        self.replays = max(1, math.ceil(seconds / max(self.measure() * self.launches, 1e-6)))

    def measure(self):
        """Seconds a launch."""
        self.start.record()
        for _ in range(self.replays):
            self.graph.replay()
        self.stop.record()
        self.stop.synchronize()
        return self.start.elapsed_time(self.stop) * 1e-3 / (self.replays * self.launches)
