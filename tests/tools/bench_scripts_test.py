#!/usr/bin/env python3
"""The benchmark scripts: they read shapes as the program does, print what they measured, and know the C API."""

import array
import contextlib
import ctypes
import io
import json
import math
import os
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import bench_cliffs  # noqa: E402
import bench_peers  # noqa: E402
import plot_bench  # noqa: E402
from peers import library  # noqa: E402
from peers.report import Result, case_json, case_text, error_notes, header_text, quantile  # noqa: E402
from peers.shapes import Shape, ShapeError, parse_shapes, reason_to_skip  # noqa: E402


class Shapes(unittest.TestCase):
    def test_every_part_of_a_line_is_understood(self):
        shapes = parse_shapes("# what we serve\n4096 f32\n\n  128256\tbf16  32   # logits\r\n"
                              "1000 f16->f32 log_softmax\n77 f32->bf16 12 strided log_softmax\n1 f64 strided", "s.txt")
        self.assertEqual(shapes, [
            Shape(4096, "f32", "f32", (1 << 26) // 4096),
            Shape(128256, "bf16", "bf16", 32),
            Shape(1000, "f16", "f32", (1 << 26) // 1000, log_softmax=True),
            Shape(77, "f32", "bf16", 12, log_softmax=True, strided=True),
            Shape(1, "f64", "f64", 1 << 26, strided=True)])
        self.assertEqual([str(shape) for shape in shapes[1:4]],
                         ["32x128256 bf16", "67108x1000 f16->f32 log_softmax", "12x77 f32->bf16 log_softmax strided"])
        self.assertEqual(shapes[2].bytes, 67108 * 1000 * 6)

    def test_an_error_names_the_line(self):
        for line in ("0 f32", "-1 f32", "4k f32", "9223372036854775808 f32", "64", "64 f8", "64 f16->bf16",
                     "64 f64->f32", "64 f32 0", "64 f32 strided 5", "64 f32 5 6", "64 f32->"):
            with self.subTest(line), self.assertRaisesRegex(ShapeError, r"^s\.txt:2: "):
                parse_shapes(f"64 f32\n{line}\n", "s.txt")
        with self.assertRaisesRegex(ShapeError, "has no shape"):
            parse_shapes("# nothing\n", "s.txt")

    def test_lists_and_ranges_are_every_pair(self):
        shapes = parse_shapes("64,1000..1010+5,256..1024*2 f32,f16->f32 7\n", "s.txt")
        self.assertEqual([s.cols for s in shapes[::2]], [64, 1000, 1005, 1010, 256, 512, 1024])
        self.assertEqual({(s.in_dtype, s.out_dtype, s.rows) for s in shapes}, {("f32", "f32", 7), ("f16", "f32", 7)})
        self.assertEqual([s.cols for s in parse_shapes("3..5 f32", "s.txt")], [3, 4, 5])
        for line in ("64, f32", "5..4 f32", "1..8*1 f32", "1..8+0 f32", "1..+2 f32", "64 f32,", "64 f32,f8"):
            with self.subTest(line), self.assertRaises(ShapeError):
                parse_shapes(line, "s.txt")

    def test_what_peers_cannot_do_is_left_out_with_a_reason(self):
        lines = "64 f32\n64 f32 strided\n64 f32 log_softmax\n64 f16->f32"
        reasons = [reason_to_skip(shape) for shape in parse_shapes(lines, "s.txt")]
        self.assertIsNone(reasons[0])
        self.assertTrue(all(reasons[1:]))

    def test_the_project_s_own_files_are_read(self):
        for path in (ROOT / "tools").glob("shapes_*.txt"):
            self.assertGreater(len(parse_shapes(path.read_text(), path.name)), 0)


class Cliffs(unittest.TestCase):
    @staticmethod
    def case(problem, rows, cols, seconds):
        return {"problem": problem, "rows": rows, "cols": cols,
                "kernels": [{"name": "best", "cold_seconds": {"median": seconds}}, {"name": "other", "error": "x"}]}

    def run_on(self, document, *options):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(io.StringIO()):
            path = pathlib.Path(folder) / "bench.json"
            path.write_text(json.dumps(document))
            return bench_cliffs.main([str(path), *options]), out.getvalue()

    def test_a_cliff_is_said_and_fails(self):
        document = {"cases": [self.case("1000 f32", 10, 1000, 1e-6), self.case("1001 f32", 20, 1001, 2.5e-6),
                              self.case("1001 f16", 10, 1001, 9e-6)]}
        code, text = self.run_on(document)
        self.assertEqual(code, 1)
        self.assertRegex(text, r"best +1000 f32 +\+24.9%  cliff\n1 pairs of lengths, 1 above 15%")
        self.assertEqual(self.run_on(document, "--most", "0.25")[0], 0)

    def test_nothing_to_look_at_is_no_success(self):
        self.assertEqual(self.run_on({"cases": [self.case("1000 f32", 10, 1000, 1e-6)]})[0], 2)

    def test_what_was_recorded_has_none(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = bench_cliffs.main([str(ROOT / "tools" / "results" / "h200_cliffs.json")])
        self.assertEqual(code, 0, out.getvalue())


class Report(unittest.TestCase):
    def setUp(self):
        self.shape = Shape(4096, "f32", "f32", 1000)
        self.copy = Result("copy", "driver", seconds=[2e-6, 1e-6, 3e-6])
        self.fast = Result("torch", "torch.softmax", seconds=[4e-6] * 3, swept={"torch.softmax": 4e-6})
        self.wrong = Result("triton", error="once: wrong result", wrong=True)
        self.failed = Result("cudnn", error="not supported")

    def test_quantiles_are_interpolated(self):
        self.assertEqual(quantile([3, 1, 2], 0.5), 2)
        self.assertEqual(quantile([4, 1, 2, 3], 0.5), 2.5)
        self.assertAlmostEqual(quantile([1, 2, 3, 4, 5], 0.1), 1.4)
        self.assertEqual(quantile([7], 0.9), 7)

    def test_the_table_has_shares_and_says_what_was_not_timed(self):
        results = [self.fast, self.wrong, self.failed]
        row = case_text(self.shape, self.copy, results)
        self.assertEqual(row.split(), ["1000x4096", "f32", "16.384", "0.500", "wrong", "failed", "driver"])
        self.assertEqual(row.index("0.500"), header_text(["torch"]).index("torch"))
        self.assertEqual(error_notes(self.shape, results), ["1000x4096 f32: triton: once: wrong result",
                                                            "1000x4096 f32: cudnn: not supported"])
        self.assertEqual(case_text(self.shape, Result("copy", error="x"), [self.fast]).split()[2:], ["failed", "-"])

    def test_a_case_reads_as_one_of_the_program_s(self):
        case = json.loads(json.dumps(case_json(self.shape, self.copy, [self.fast, self.wrong])))
        self.assertEqual(case["copy"]["cold_seconds"]["median"], 2e-6)
        self.assertEqual(case["kernels"][0]["share_of_copy"], 0.5)
        self.assertEqual(case["kernels"][1], {"name": "triton", "kernel": "", "error": "once: wrong result"})
        program = json.loads((ROOT / "tools/results/h200_best.json").read_text())["cases"][0]
        self.assertEqual(set(case), set(program) - {"clocks_mhz"})
        self.assertLessEqual(set(program["kernels"][0]) - set(case["kernels"][0]), {"worst_error_over_tolerance"})


class Arguments(unittest.TestCase):
    def test_contestants_are_picked_by_name(self):
        self.assertEqual(bench_peers.parse_arguments(["--contestants", "torch,cudnn"]).contestants, ["torch", "cudnn"])
        self.assertEqual(bench_peers.parse_arguments([]).contestants, list(bench_peers.NAMES))


class Plot(unittest.TestCase):
    def test_points_are_what_was_timed(self):
        kernels = [{"name": "best", "share_of_copy": 0.9}, {"name": "v0", "error": "wrong result"}]
        cases = [{"problem": problem, "cols": cols, "rows": rows, "bytes": rows * cols * 4, "kernels": kernels}
                 for problem, cols, rows in (("4096 bf16", 4096, 1 << 16), ("1004 bf16", 1004, 1 << 20),
                                             ("64 bf16", 64, 1), ("64 f32 strided", 64, 64))]
        points = plot_bench.points_in({"cases": cases})
        self.assertEqual([(p.series, p.dtype, p.cols, p.share, p.mark) for p in points],
                         [("best", "bf16", 4096, 0.9, "whole"), ("best", "bf16", 1004, 0.9, "odd"),
                          ("best", "bf16", 64, 0.9, "few")])

    def test_lengths_are_short(self):
        self.assertEqual([plot_bench.short(n) for n in (64, 1024, 50257, 1 << 20)], ["64", "1K", "50257", "1M"])


class CApi(unittest.TestCase):
    header = (ROOT / "include/jitsoftmax/jitsoftmax.h").read_text()
    c_types = {"int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "float": ctypes.c_float,
               "void*": ctypes.c_void_p, "const void*": ctypes.c_void_p}

    def test_structures_are_the_header_s(self):
        for name, structure in (("problem", library.Problem), ("rows", library.Rows)):
            body = re.search(rf"typedef struct jitsoftmax_{name} {{(.*?)}}", self.header, re.S).group(1)
            fields = [(field, self.c_types[kind]) for kind, field in re.findall(r"^ *(.*?) (\w+);", body, re.M)]
            self.assertEqual([(field.rstrip("_"), kind) for field, kind in structure._fields_], fields)

    def test_element_types_are_the_header_s(self):
        found = {name.lower(): int(value) for name, value in re.findall(r"JITSOFTMAX_(B?F\d+) = (\d+)", self.header)}
        self.assertEqual(library.DTYPES, found)

    @unittest.skipUnless(os.environ.get("JITSOFTMAX_LIBRARY"), "no library to load")
    def test_the_library_computes_through_it(self):
        engine = library.Library(os.environ["JITSOFTMAX_LIBRARY"], "host")
        kernel = engine.prepare(3, "f32")
        x, out = array.array("f", [0, 1, 2, 5, 5, 5]), array.array("f", [0] * 6)
        kernel.launch(out.buffer_info()[0], x.buffer_info()[0], 2, None)
        total = 1 + math.e + math.e**2
        for got, expected in zip(out, [1 / total, math.e / total, math.e**2 / total] + [1 / 3] * 3):
            self.assertAlmostEqual(got, expected, places=6)
        with self.assertRaisesRegex(library.LibraryError, "."):
            kernel.launch(None, x.buffer_info()[0], 2, None)
        kernel.close()
        engine.close()


if __name__ == "__main__":
    unittest.main()
