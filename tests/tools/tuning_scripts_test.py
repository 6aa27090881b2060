#!/usr/bin/env python3
"""The scripts around tuning and the study: what they say follows from what was recorded, and they fail where they have to."""

import contextlib
import copy
import io
import json
import pathlib
import stat
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import plot_bench  # noqa: E402
import prediction_error  # noqa: E402
import study  # noqa: E402
import tune_report  # noqa: E402
from peers.shapes import parse_shapes  # noqa: E402

RECORDED = json.loads((pathlib.Path(__file__).parent / "recorded_tune.json").read_text())


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def script(self, name, lines):
        path = self.folder / name
        path.write_text("#!/usr/bin/env python3\n" + lines)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    @staticmethod
    def run_main(module, *arguments):
        """(exit code, standard output, standard error)"""
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            code = module.main(list(arguments))
        return code, out.getvalue(), err.getvalue()


class Choice(InFolder):
    def report(self, *documents, options=()):
        files = [self.file(f"{i}.json", document) for i, document in enumerate(documents)]
        return self.run_main(tune_report, "choice", *files, *options)

    def test_the_choice_is_compared_with_the_winner_of_its_shape(self):
        code, out, _ = self.report(RECORDED)
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"4096x4096 f32 +1\.030  registers<.*threads=512.* -> registers<.*threads=256")
        self.assertRegex(out, r"8x128256 bf16 +1\.000\n")
        self.assertIn("2 shapes: the built-in choice takes 1.015 of the tuned time at the median, 1.030 at worst", out)

    def test_a_bar_that_is_missed_ends_with_6(self):
        self.assertEqual(self.report(RECORDED, options=("--worst", "1.02"))[0], 6)
        self.assertEqual(self.report(RECORDED, options=("--median", "1.01"))[0], 6)
        slow = copy.deepcopy(RECORDED)
        slow["shapes"][0]["candidates"][1]["median_seconds"] = 3.9e-05
        self.assertEqual(self.report(slow)[0], 6)
        self.assertEqual(self.report(slow, options=("--median", "1.2", "--worst", "1.2"))[0], 0)

    def test_a_choice_that_cannot_be_used_is_no_success(self):
        lost = copy.deepcopy(RECORDED)
        built_in = lost["shapes"][0]["candidates"][1]
        for name in ("median_seconds", "p10_seconds", "p90_seconds", "rounds", "timed"):
            del built_in[name]
        built_in["ruled_out"] = "gives a wrong result"
        code, out, _ = self.report(lost)
        self.assertEqual(code, 6)
        self.assertRegex(out, r"4096x4096 f32 +-  +registers<.*: gives a wrong result")
        self.assertIn("1 where it cannot be used", out)

    def test_files_are_taken_together_and_may_hold_several_results(self):
        self.assertIn("4 shapes", self.report(RECORDED, RECORDED)[1])
        self.assertIn("4 shapes", self.report(json.dumps(RECORDED) + "\n" + json.dumps(RECORDED) + "\n")[1])

    def test_lines_that_share_a_record_count_once(self):
        twice = copy.deepcopy(RECORDED)
        twice["shapes"] += copy.deepcopy(RECORDED["shapes"])
        self.assertIn("2 shapes", self.report(twice)[1])

    def test_what_is_no_tune_is_a_usage_error(self):
        for text in ("", "[1]", "{}", '{"shapes": []}', '{"shapes": [{"rows": 1}]}', json.dumps(RECORDED)[:-2]):
            with self.subTest(text[:20]):
                code, _, err = self.report(text)
                self.assertEqual(code, 2)
                self.assertIn("0.json", err)
        self.assertEqual(self.run_main(tune_report, "choice", str(self.folder / "missing.json"))[0], 2)


class Repeat(InFolder):
    def report(self, first, second, *options):
        return self.run_main(tune_report, "repeat", self.file("a.json", first), self.file("b.json", second), *options)

    @staticmethod
    def with_other_pick(second_best):
        """The recorded tune as one that picked the built-in choice at the first shape."""
        other = copy.deepcopy(RECORDED)
        shape = other["shapes"][0]
        shape["winner"] = shape["built_in"]
        shape["candidates"][0]["median_seconds"] = second_best
        return other

    def test_the_same_picks_agree(self):
        code, out, _ = self.report(RECORDED, RECORDED)
        self.assertEqual(code, 0)
        self.assertIn("2 shapes: 2 with the same pick, 0 with picks within 2% of each other, 0 apart; 100.0% agree", out)

    def test_other_picks_agree_if_one_run_has_their_times_close(self):
        # 3 % apart in the first run, 1.5 % in the second.
        code, out, _ = self.report(RECORDED, self.with_other_pick(3.45e-05))
        self.assertEqual(code, 0, out)
        self.assertIn("1 with the same pick, 1 with picks within 2%", out)

    def test_other_picks_that_are_apart_are_listed_and_fail(self):
        other = self.with_other_pick(3.6e-05)
        code, out, _ = self.report(RECORDED, other)
        self.assertEqual(code, 6)
        self.assertIn("4096x4096 f32: 3.0% apart\n", out)
        self.assertIn("50.0% agree (at least 95%)", out)
        self.assertEqual(self.report(RECORDED, other, "--least", "0.5")[0], 0)
        self.assertEqual(self.report(RECORDED, other, "--within", "0.04")[0], 0)

    def test_times_of_two_runs_are_never_mixed(self):
        first, second = copy.deepcopy(RECORDED), self.with_other_pick(3.6e-05)
        del first["shapes"][0]["candidates"][1]  # neither run has both
        del second["shapes"][0]["candidates"][0]
        code, out, _ = self.report(first, second)
        self.assertEqual(code, 6)
        self.assertIn("4096x4096 f32: no run timed both", out)

    def test_shapes_of_one_file_only_are_said(self):
        fewer = copy.deepcopy(RECORDED)
        del fewer["shapes"][1]
        code, out, err = self.report(RECORDED, fewer)
        self.assertEqual(code, 0)
        self.assertIn("1 shapes: 1 with the same pick", out)
        self.assertIn("8x128256 bf16: in one of the files only", err)
        del fewer["shapes"][0]["candidates"][:]
        other = copy.deepcopy(RECORDED)
        del other["shapes"][0]
        self.assertEqual(self.report(fewer, other)[0], 2)


class TuneShapes(unittest.TestCase):
    def shapes(self, name):
        return parse_shapes((ROOT / "tools" / name).read_text(), name)

    def test_what_is_held_out_is_in_no_grid(self):
        grid = {(s.cols, s.in_dtype, s.out_dtype) for s in self.shapes("shapes_tune_grid.txt")}
        held_out = self.shapes("shapes_tune_held_out.txt")
        self.assertGreaterEqual(len(held_out), 40)
        self.assertEqual([s for s in held_out if (s.cols, s.in_dtype, s.out_dtype) in grid], [])
        # One record a problem and kind of rows: a second line of the same would time nothing.
        kinds = [(s.problem, s.rows <= 64) for s in held_out]
        self.assertEqual(len(kinds), len(set(kinds)))

    def test_many_rows_are_enough_to_fill_the_memory(self):
        for name in ("shapes_tune_grid.txt", "shapes_tune_held_out.txt"):
            for shape in self.shapes(name):
                if shape.rows > 64:
                    self.assertGreaterEqual(shape.bytes, 1 << 28, f"{name}: {shape}")


class TunerView(InFolder):
    def test_candidates_are_sorted_and_have_what_they_take(self):
        found = plot_bench.candidates_in(RECORDED)
        self.assertEqual(list(found), ["4096x4096 f32", "8x128256 bf16"])
        self.assertEqual([(c.label, c.registers, c.warps, c.mark) for c in found["4096x4096 f32"]],
                         [("registers 256×4", 40, 48, "picked"), ("registers 512×2", 32, 64, "built-in choice"),
                          ("looped 256×4 resident 2", None, None, "")])
        self.assertEqual(found["8x128256 bf16"][0].label, "registers 16·256×4")

    def test_a_benchmark_of_every_candidate_is_taken_as_well(self):
        times = {"median": 2e-6, "p10": 1e-6, "p90": 3e-6}
        kernels = [{"name": "registers", "kernel": "registers<Config{.threads=8,.rows=16,.vector=8,.elements=16,.packed="
                    "true}>", "cold_seconds": times, "registers": 24, "occupancy": {"warps": 64}},
                   {"name": "looped", "kernel": "looped<...>", "error": "wrong result"}]
        found = plot_bench.candidates_in({"cases": [{"rows": 5, "problem": "128 bf16", "kernels": kernels}]})
        self.assertEqual([(c.label, c.registers, c.warps, c.p90) for c in found["5x128 bf16"]],
                         [("registers 8×2 packed", 24, 64, 3e-6)])

    def test_a_shape_that_is_not_there_is_a_usage_error(self):
        path = self.file("tune.json", RECORDED)
        for arguments in (["--shape", "1x1 f32"], []):
            if not arguments:
                path = self.file("empty.json", {"cases": []})
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as end:
                plot_bench.main(["tuner", path, str(self.folder / "out.png"), *arguments])
            self.assertEqual(end.exception.code, 2)

    def test_it_is_drawn(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("no matplotlib")
        plot_bench.main(["tuner", self.file("tune.json", RECORDED), str(self.folder / "out.svg")])
        text = (self.folder / "out.svg").read_text()
        for part in ("registers 256×4", "built-in choice", "warps a multiprocessor", "4096x4096 f32, NVIDIA H200"):
            self.assertIn(part, text)


def study_document():
    def kernel(name, options, seconds, asked, **more):
        return {"name": name, "kernel": f"{name}<...>", "cold_seconds": {"median": seconds}, "registers": 32,
                "stack_bytes": 0, "share_of_copy": 32e-6 / seconds, "options": options, "bytes_asked_for": asked,
                "share_of_peak": 134217728 / seconds / 4.9e12, **more}
    pair = [kernel(f"{family} 4", ["--family", family, "--threads", "1024", "--elements", "4"], 40e-6, 134217728,
                   elements_a_thread=4) for family in ("registers", "counted")]
    pair[1]["stack_bytes"] = 24
    return {"device": "NVIDIA H200", "nvrtc": "13.0", "peak_bytes_a_second": 4.9e12, "cases": [
        {"rows": 4096, "problem": "4096 f32", "cols": 4096, "bytes": 134217728,
         "copy": {"kernel": "cuMemcpyDtoDAsync", "cold_seconds": {"median": 32e-6}},
         "kernels": [kernel("v1", ["--variant", "v1"], 60e-6, 201326592, share_of_peak_on_a100=0.58),
                     {"name": "v3", "kernel": "", "error": "no room", "options": ["--variant", "v3"],
                      "bytes_asked_for": 134217728}, *pair]}]}


# As Nsight Compute prints them: a column a counter, with their units below, and a line a counter.
RAW = '''==PROF== Connected to process 7 (/x/jitsoftmax)
"ID","Process ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","lts__t_sectors_op_read.sum"
"","","","byte","byte","sector"
"0","7","looped","67,108,864","60,000,000","4194304"
'''
DETAILS = '''"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","looped","Command line profiler metrics","dram__bytes_read.sum","Mbyte","67.1"
"0","looped","Command line profiler metrics","lts__t_sectors_op_read.sum","sector","4,194,304"
'''
FAKE_NCU = r'''import json, pathlib, sys
log = sys.argv[sys.argv.index("--log-file") + 1]
assert "--metrics" in sys.argv and pathlib.Path(sys.argv[sys.argv.index("run") + 1]).stat().st_size > 64
pathlib.Path(__file__).with_name("calls.txt").open("a").write(json.dumps(sys.argv[1:]) + "\n")
if "counted" in sys.argv:
    print("==ERROR== ERR_NVGPUCTRPERM"); sys.exit(1)
pathlib.Path(log).write_text(%r)
''' % RAW


class Study(InFolder):
    def test_counters_are_read_in_both_forms(self):
        self.assertEqual(study.bytes_in(study.counters_in(RAW)),
                         {"dram_read_bytes": 67108864, "dram_write_bytes": 6e7, "l2_read_bytes": 4194304 * 32})
        self.assertEqual(study.bytes_in(study.counters_in(DETAILS)),
                         {"dram_read_bytes": 67.1e6, "l2_read_bytes": 4194304 * 32})
        self.assertEqual(study.bytes_in(study.counters_in(RAW.replace("4194304", "n/a"))),
                         {"dram_read_bytes": 67108864, "dram_write_bytes": 6e7})
        with self.assertRaisesRegex(study.StudyError, "counted nothing: ==ERROR== permission"):
            study.counters_in("==ERROR== permission")

    def test_every_kernel_is_counted_by_the_options_that_it_was_measured_with(self):
        document = study_document()
        document["cases"][0].update(rows=3, cols=5, problem="5 f32")
        ncu = self.script("ncu", FAKE_NCU)
        out = self.folder / "out.json"
        code, _, err = self.run_main(study, "profile", self.file("in.json", document), str(out), "--ncu", ncu,
                                     "--program", "/x/jitsoftmax")
        self.assertEqual(code, 0)
        self.assertIn("counted 4: ==ERROR== ERR_NVGPUCTRPERM", err)
        kernels = json.loads(out.read_text())["cases"][0]["kernels"]
        self.assertEqual(["counted" in kernel for kernel in kernels], [True, False, True, False])
        self.assertEqual(kernels[0]["counted"]["dram_read_bytes"], 67108864)
        calls = [json.loads(line) for line in (self.folder / "calls.txt").read_text().splitlines()]
        self.assertEqual(len(calls), 3)
        self.assertEqual(calls[0][-2:], ["--variant", "v1"])
        self.assertIn("/x/jitsoftmax", calls[0])

    def test_without_ncu_it_says_so_and_leaves_the_column_empty(self):
        out = self.folder / "out.json"
        code, _, err = self.run_main(study, "profile", self.file("in.json", study_document()), str(out), "--ncu",
                                     "/nowhere/ncu")
        self.assertEqual(code, 0)
        self.assertIn("'/nowhere/ncu' is not there", err)
        self.assertEqual(json.loads(out.read_text()), study_document())
        self.assertIn("| v1 | a block a row, partial results merged by shuffles | 60.00 | 0.533 | 46 % | 58 % | 201 |  |  | "
                      "32 | 0 |\n", study.tables(study_document()))

    def test_the_tables_have_every_step_and_pair(self):
        document = study_document()
        document["cases"][0]["kernels"][0]["counted"] = {"dram_read_bytes": 67.4e6, "dram_write_bytes": 61e6}
        text = study.tables(document)
        self.assertIn("| copy | cuMemcpyDtoDAsync | 32.00 | 1 | 86 % |", text)
        self.assertIn("| 201 | 67 | 61 | 32 | 0 |\n", text)
        self.assertIn("| v3 | no room |", text)
        self.assertNotIn("counted 4", text)  # a column, no step
        self.assertIn("| 4 | 1024 | 40.00 | 32 | 0 | 40.00 | 32 | 24 |  |\n", text)
        rows = [line for line in text.splitlines() if line.startswith("|")]
        self.assertEqual(len({line.count("|") for line in rows[:4]}), 1)

    def test_a_page_keeps_all_but_its_tables(self):
        page = self.file("page.md", f"before\n{study.BEGIN}\nold\n{study.END}\nafter\n")
        json_file = self.file("study.json", study_document())
        for _ in range(2):
            self.assertEqual(self.run_main(study, "table", json_file, "--into", page)[0], 0)
        text = pathlib.Path(page).read_text()
        self.assertTrue(text.startswith(f"before\n{study.BEGIN}\n\n4096 × 4096 f32, NVIDIA H200"))
        self.assertTrue(text.endswith(f"\n\n{study.END}\nafter\n"))
        self.assertNotIn("old", text)
        self.assertEqual(self.run_main(study, "table", json_file, "--into", self.file("none.md", "no place"))[0], 2)

    def test_the_project_s_page_has_a_place(self):
        page = (ROOT / "tools/results/lesson.md").read_text()
        self.assertIn("\nx\n", study.put_into(page, "x\n"))

    def test_what_is_no_study_is_a_usage_error(self):
        for text in ("", "{}", '{"cases": []}', json.dumps({"cases": study_document()["cases"]})):
            self.assertEqual(self.run_main(study, "table", self.file("x.json", text))[0], 2)


class PredictionError(InFolder):
    LINE = ("4096x16384 bf16              registers     66.15     66.08     66.16  4.058  0.975        -  "
            "registers<Config{.threads=128,.rows=1},Static<16384>,bf16,bf16,Softmax>\n")

    def program(self, share):
        return self.script("program", "import json, sys\n"
                           "a = sys.argv\n"
                           f"print(json.dumps({{'kernels': [{{'specialization': a[a.index('--kernel') + 1], {share}}}]}}))")

    def test_tables_and_json_are_read(self):
        found = prediction_error.measured_in(pathlib.Path(self.file("every.txt", "shape kernel\n" + self.LINE * 2 + self.LINE.
                                                                    replace("registers     66", "copy          66").
                                                                    replace("registers<Config{.threads=128,.rows=1}", "cu"))))
        self.assertEqual([(m.rows, m.problem, m.share) for m in found], [(4096, "16384 bf16", 0.975)] * 2)
        best = prediction_error.measured_in(ROOT / "tools/results/h200_best.json")
        self.assertGreater(len(best), 40)
        self.assertEqual(prediction_error.words("4096 f32 strided", 7), ["4096", "f32", "7", "strided"])

    def test_errors_are_relative_to_what_was_measured(self):
        path = self.file("every.txt", self.LINE * 2)
        code, out, _ = self.run_main(prediction_error, path, "--program", self.program("'predicted_share_of_copy': 0.78"))
        self.assertEqual(code, 0)
        self.assertIn("error_of_candidates{.kernels = 1, .median = 0.200, .p90 = 0.20, .worst = 0.20}", out)
        self.assertNotIn("error_of_choices", out)

    def test_what_has_no_model_is_left_out(self):
        code, out, _ = self.run_main(prediction_error, self.file("every.txt", self.LINE), "--program",
                                     self.program("'family': 'staged'"))
        self.assertEqual(code, 0)
        self.assertIn("nothing that is modelled", out)
        self.assertNotIn("error_of", out)

    def test_a_program_that_fails_is_an_error(self):
        program = self.script("program", "import sys; sys.exit('no NVRTC')")
        code, _, err = self.run_main(prediction_error, self.file("every.txt", self.LINE), "--program", program)
        self.assertEqual(code, 1)
        self.assertIn("no NVRTC", err)


if __name__ == "__main__":
    unittest.main()
