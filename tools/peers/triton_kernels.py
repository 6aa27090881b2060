"""Row softmax and a copy in Triton, each as a set of variants to be swept."""

import functools

import torch
import triton
import triton.language as tl

WARPS = (4, 8, 16, 32)
# Elements of a tile that a thread may hold: registers end soon after. A row that even the most warps
# hold only with more is left to the looped kernel.
MOST_ELEMENTS, MOST_ELEMENTS_AT_ALL = 64, 128
LEAST_LOOPED = 8192  # columns: shorter rows always fit


@triton.jit
def softmax_tile(out, x, rows, tile, COLS: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
                 COMPUTE: tl.constexpr):
    row = tile * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    at = row.to(tl.int64) * COLS + col
    mask = (row < rows) & (col < COLS)
    value = tl.load(x + at, mask=mask, other=-float("inf")).to(COMPUTE)
    # Rows past the end hold -inf only and become NaN, which is not stored.
    exponential = tl.exp(value - tl.max(value, 1, keep_dims=True))
    result = exponential / tl.sum(exponential, 1, keep_dims=True)
    tl.store(out + at, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def softmax_once(out, x, rows, COLS: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, COMPUTE: tl.constexpr):
    softmax_tile(out, x, rows, tl.program_id(0), COLS, BLOCK, ROWS, COMPUTE)


@triton.jit
def softmax_persistent(out, x, rows, COLS: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
                       COMPUTE: tl.constexpr, STAGES: tl.constexpr):
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0), num_stages=STAGES):
        softmax_tile(out, x, rows, tile, COLS, BLOCK, ROWS, COMPUTE)


# Online, a row a program, read twice. BLOCK <= COLS, so that the first chunk gives every lane a maximum.
@triton.jit
def softmax_looped(out, x, COLS: tl.constexpr, BLOCK: tl.constexpr, COMPUTE: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * COLS
    lane = tl.arange(0, BLOCK)
    maximum = tl.full([BLOCK], -float("inf"), COMPUTE)
    total = tl.zeros([BLOCK], COMPUTE)
    for first in range(0, COLS, BLOCK):
        col = first + lane
        value = tl.load(x + start + col, mask=col < COLS, other=-float("inf")).to(COMPUTE)
        larger = tl.maximum(maximum, value)
        total = total * tl.exp(maximum - larger) + tl.exp(value - larger)
        maximum = larger
    row_maximum = tl.max(maximum, 0)
    row_total = tl.sum(total * tl.exp(maximum - row_maximum), 0)
    for first in range(0, COLS, BLOCK):
        col = first + lane
        value = tl.load(x + start + col, mask=col < COLS, other=-float("inf")).to(COMPUTE)
        result = tl.exp(value - row_maximum) / row_total
        tl.store(out + start + col, result.to(out.dtype.element_ty), mask=col < COLS)


@triton.jit
def copy_kernel(out, x, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    tl.store(out + at, tl.load(x + at, mask=mask), mask=mask)


def rows_in_tile(block, warps, itemsize):
    """As many rows as give every thread two accesses of 16 bytes; a power of two, since block and warps are."""
    return max(1, 32 * warps * (32 // itemsize) // block)


def warps_that_hold(block, itemsize):
    """The num_warps worth a try for a tile."""
    held = {warps: block * rows_in_tile(block, warps, itemsize) // (32 * warps) for warps in WARPS}
    return [warps for warps in WARPS if held[warps] <= MOST_ELEMENTS] or \
           [WARPS[-1]] * (held[WARPS[-1]] <= MOST_ELEMENTS_AT_ALL)


def resident_programs(kernel, warps, device):
    """How many programs of a compiled kernel a multiprocessor holds at once."""
    threads = 32 * warps
    by_registers = 65536 // (max(kernel.n_regs, 1) * threads)
    by_memory = device.shared_memory_per_multiprocessor // (kernel.metadata.shared + 1024)  # 1 KB is the system's
    return max(1, min(by_registers, by_memory, device.max_threads_per_multi_processor // threads))


def softmax_variants(x, device):
    """[(name, launch(out, x))] for inputs like x, each compiled at its first launch; `device` is its properties."""
    rows, cols = x.shape
    itemsize = x.element_size()
    block = triton.next_power_of_2(cols)
    compute = tl.float64 if x.dtype == torch.float64 else tl.float32
    variants = []
    for warps in warps_that_hold(block, itemsize):
        tile_rows = rows_in_tile(block, warps, itemsize)
        tiles = triton.cdiv(rows, tile_rows)
        options = dict(COLS=cols, BLOCK=block, ROWS=tile_rows, COMPUTE=compute, num_warps=warps)
        name = f"rows={tile_rows} num_warps={warps}"
        variants.append((f"once {name}", functools.partial(launch_once, tiles, options)))
        if tiles > device.multi_processor_count:
            variants.append((f"persistent {name}", Persistent(tiles, options, itemsize, device)))
    if cols >= LEAST_LOOPED:
        for warps in WARPS[1:]:
            chunk = min(32 * warps * 16, block // 2)
            options = dict(COLS=cols, BLOCK=chunk, COMPUTE=compute, num_warps=warps)
            variants.append((f"looped chunk={chunk} num_warps={warps}", functools.partial(launch_looped, options)))
    return variants


def launch_once(tiles, options, out, x):
    softmax_once[(tiles,)](out, x, x.shape[0], **options)


def launch_looped(options, out, x):
    softmax_looped[(x.shape[0],)](out, x, **options)


class Persistent:
    """Its grid is what the device holds at once, which the compiled kernel tells at the first launch."""

    def __init__(self, tiles, options, itemsize, device):
        tile_bytes = options["BLOCK"] * options["ROWS"] * itemsize
        stages = 2 if 2 * tile_bytes <= device.shared_memory_per_multiprocessor // 2 else 1
        self.tiles, self.options, self.device = tiles, dict(options, STAGES=stages), device
        self.programs = None

    def __call__(self, out, x):
        if self.programs is None:
            kernel = self.launch(out, x, self.device.multi_processor_count)
            resident = resident_programs(kernel, self.options["num_warps"], self.device)
            self.programs = min(self.tiles, self.device.multi_processor_count * resident)
        self.launch(out, x, self.programs)

    def launch(self, out, x, programs):
        return softmax_persistent[(programs,)](out, x, x.shape[0], **self.options)


def copy_variants():
    """[(name, launch(out, x))] for one-dimensional int32 tensors; every thread moves whole packets of 16 bytes."""
    def variant(warps, packets):
        block = 32 * warps * 4 * packets

        def launch(out, x):
            copy_kernel[(triton.cdiv(x.numel(), block),)](out, x, x.numel(), BLOCK=block, num_warps=warps)
        return f"Triton, {32 * warps} threads, {packets} x 16 bytes", launch

    return [variant(warps, packets) for warps, packets in ((4, 1), (8, 1), (16, 1), (4, 4), (8, 2))]
