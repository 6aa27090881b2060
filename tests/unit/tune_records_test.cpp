// Promise: a tuning record is what was measured or it is nothing: damaged, stale, foreign and untrusted
// ones are ignored with one warning, and processes that tune at once lose nothing of each other.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "cache_fixtures.hpp"
#include "temporary_directory.hpp"
#include "tune/record_text.hpp"
#include "tune/records.hpp"

namespace {

using namespace fixtures;  // NOLINT(google-build-using-namespace)
using namespace jitsoftmax::tune;
using jitsoftmax::testing::read_file;
using jitsoftmax::testing::write_file;

const RecordKey key{.problem = {.cols = 4096}, .device = "NVIDIA H200", .driver_major = 13};
const std::string templates(32, 'a');

RecordEntry timed(const std::string& name, double median, bool finalist = true) {
  return {.specialization = name,
          .seconds = {.median = median, .p10 = 0.9 * median, .p90 = 1.25 * median, .rounds = 15},
          .finalist = finalist};
}
RecordEntry ruled_out(const std::string& name) { return {.specialization = name, .rejected = "spills registers"}; }

Record sample() {
  return {.rows = 4096,
          .effort = TuneEffort::full,
          .entries = {timed("a<1>", 0.1 / 3), timed("b<2>", 3.4e-5, false), ruled_out("c<3>")}};
}

bool same(const Record& a, const Record& b) { return to_text(key, templates, a) == to_text(key, templates, b); }

struct Place {
  Scratch scratch;
  Recorder recorder;
  std::string directory = scratch / "cache";
  std::string path = record_path(directory, key);

  Records records(std::vector<std::string> layers = {}, const std::string& digest = templates) {
    return Records({.layers = std::move(layers), .directory = directory, .templates = digest, .log = recorder.log()});
  }
};

}  // namespace

TEST_CASE("what is written is read back, in a new directory of this user only") {
  Place place;
  Records records = place.records();
  CHECK_FALSE(records.find(key));
  REQUIRE(records.add(key, sample()));
  const auto found = place.records().find(key);
  REQUIRE(found);
  CHECK(same(*found, sample()));
  CHECK(found->find("a<1>")->seconds.median == 0.1 / 3);  // to the last bit
  CHECK(found->find("c<3>")->rejected == "spills registers");
  struct stat info = {};
  REQUIRE(::stat((place.directory + "/records").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0700);
  CHECK(place.recorder.messages().empty());
  for (const std::string& path : files_below(place.directory)) CHECK(path.find(".tmp") == std::string::npos);

  // Every field of the key counts.
  RecordKey other = key;
  other.problem.op = Op::log_softmax;
  CHECK_FALSE(records.find(other));
  other = key;
  other.bucket = plan::RowsBucket::few;
  CHECK_FALSE(records.find(other));
  other = key;
  other.device = "NVIDIA H100";
  CHECK_FALSE(records.find(other));
  other = key;
  other.driver_major = 12;
  CHECK_FALSE(records.find(other));
}

TEST_CASE("a record that is damaged anywhere is ignored with one warning, and replaced") {
  Place place;
  REQUIRE(place.records().add(key, sample()));
  const std::string whole = read_file(place.path);
  const auto is_ignored = [&](const std::string& text, const char* what, std::size_t at) {
    write_file(place.path, text);
    Recorder recorder;
    Records records({.directory = place.directory, .templates = templates, .log = recorder.log()});
    const auto found = records.find(key);
    CHECK_FALSE(records.find(key).has_value() != found.has_value());
    if (found) {
      // Only where nothing that is said has changed.
      CAPTURE(what);
      CAPTURE(at);
      CHECK(same(*found, sample()));
      CHECK(recorder.messages().empty());
      return false;
    }
    CHECK(recorder.messages().size() == 1);
    return true;
  };
  int ignored = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) ignored += is_ignored(whole.substr(0, at), "truncated", at) ? 1 : 0;
  CHECK(ignored >= static_cast<int>(whole.size()) - 1);  // but for the last line feed
  int unharmed = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      unharmed += is_ignored(damaged, "flipped", at) ? 0 : 1;
    }
  }
  CHECK(unharmed < 40);  // a blank that became another
  for (const char* text : {"", "{}", "[]", "null", "{\"format\": 3}", "\xff\xfe", "[[[[[[[["}) {
    CHECK(is_ignored(text, text, 0));
  }
  CHECK(is_ignored(std::string(100000, '['), "nested", 0));
  const std::string depth(500000, '[');  // under the names that are read before the checksum is
  CHECK(is_ignored(R"({"format": "jitsoftmax tuning record", "schema": 1, "checksum": "", "x": )" + depth +
                       std::string(depth.size(), ']') + "}",
                   "nested under a right start", 0));

  Records records = place.records();
  REQUIRE(records.add(key, sample()));
  CHECK(read_file(place.path) == whole);
}

TEST_CASE("a record of another device, another problem or other kernels is ignored with one warning") {
  Place place;
  RecordKey foreign = key;
  foreign.device = "NVIDIA H100";
  REQUIRE(place.records().add(foreign, sample()));
  std::filesystem::rename(record_path(place.directory, foreign), place.path);
  Records records = place.records();
  CHECK_FALSE(records.find(key));
  CHECK_FALSE(records.find(key));
  REQUIRE(place.recorder.messages().size() == 1);
  CHECK(place.recorder.messages()[0].find("another problem, device or driver") != std::string::npos);

  Place stale;
  RecordKey second = key;
  second.problem.cols = 1024;
  REQUIRE(stale.records().add(key, sample()));
  REQUIRE(stale.records().add(second, sample()));
  Records newer = stale.records({}, std::string(32, 'b'));
  CHECK_FALSE(newer.find(key));
  CHECK_FALSE(newer.find(second));
  REQUIRE(stale.recorder.messages().size() == 1);  // once for all of them
  CHECK(stale.recorder.messages()[0].find("tune again") != std::string::npos);
  // Tuning again replaces it instead of mixing times of different kernels.
  REQUIRE(newer.add(key, {.rows = 1, .entries = {timed("z<9>", 1)}}));
  CHECK(newer.find(key)->entries.size() == 1);
}

TEST_CASE("a record that somebody else could have written is refused; a read-only layer is used") {
  Place place;
  const std::string layer = place.scratch / "layer";
  REQUIRE(Records({.directory = layer, .templates = templates}).add(key, sample()));
  CHECK(place.records({layer}).find(key));
  // The own record comes first.
  Record own = sample();
  own.rows = 7;
  REQUIRE(place.records({layer}).add(key, own));
  CHECK(place.records({layer}).find(key)->rows == 7);

  for (const std::string& path : {place.path, place.directory + "/records", place.directory}) {
    struct stat before = {};
    REQUIRE(::stat(path.c_str(), &before) == 0);
    REQUIRE(::chmod(path.c_str(), before.st_mode | S_IWOTH) == 0);
    CHECK_FALSE(place.records().find(key));
    REQUIRE(::chmod(path.c_str(), before.st_mode) == 0);
    CHECK(place.records().find(key));
  }
  CHECK(place.recorder.messages().size() == 3);
  std::filesystem::rename(place.path, place.scratch / "elsewhere");
  std::filesystem::create_symlink(place.scratch / "elsewhere", place.path);
  CHECK_FALSE(place.records().find(key));
  CHECK(place.recorder.messages().size() == 4);
}

TEST_CASE("storage that cannot be written is one warning, and nothing is lost that was there") {
  Place place;
  REQUIRE(place.records().add(key, sample()));
  const std::string whole = read_file(place.path);
  const int result = as_plain_user(place.scratch.path(), [&] {
    // Their user may read, but the directories belong to root or are closed.
    Recorder recorder;
    Records records({.directory = place.scratch / "file/cache", .templates = templates, .log = recorder.log()});
    std::ofstream(place.scratch / "file") << "in the way";
    if (records.add(key, sample()) || records.add(key, sample())) return 1;
    return recorder.messages().size() == 1 ? 0 : 2;
  });
  CHECK(result == 0);
  CHECK(read_file(place.path) == whole);
  Records nowhere({.templates = templates, .log = place.recorder.log()});
  CHECK_FALSE(nowhere.add(key, sample()));
  CHECK_FALSE(nowhere.find(key));
  CHECK(place.recorder.messages().empty());
}

TEST_CASE("processes that add to one record at once lose nothing") {
  constexpr int processes = 8;
  constexpr int each = 10;
  Place place;
  int gate[2];
  REQUIRE(::pipe(gate) == 0);
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    children.push_back(start_child([&] {
      ::close(gate[1]);
      char byte = 0;
      if (::read(gate[0], &byte, 1) != 0) return 1;  // until the parent closes its end
      Recorder recorder;
      Records records({.directory = place.directory, .templates = templates, .log = recorder.log()});
      for (int i = 0; i < each; ++i) {
        const std::string name = "k<" + std::to_string(p) + "," + std::to_string(i) + ">";
        if (!records.add(key, {.rows = 8, .entries = {timed("anchor", 1), timed(name, 2)}})) return 2;
        const auto found = records.find(key);
        if (!found || found->find(name) == nullptr) return 3;
      }
      return recorder.messages().empty() ? 0 : 4;
    }));
  }
  ::close(gate[0]);
  ::close(gate[1]);
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
  const auto found = place.records().find(key);
  REQUIRE(found);
  CHECK(found->entries.size() == processes * each + 1);
  CHECK(place.recorder.messages().empty());
}

TEST_CASE("times of two sessions are brought to one scale by what both timed") {
  const Record slow_clock{.rows = 8, .entries = {timed("anchor", 2.0), timed("fast", 1.0)}};
  const Record fast_clock{.rows = 8, .entries = {timed("anchor", 1.0), timed("faster", 0.4), ruled_out("x")}};
  const Record both = merge(slow_clock, fast_clock);
  CHECK(both.entries.size() == 4);
  CHECK(both.find("anchor")->seconds.median == 2.0);
  CHECK(both.find("fast")->seconds.median == 1.0);
  CHECK(both.find("faster")->seconds.median == doctest::Approx(0.8));
  CHECK(both.find("faster")->seconds.p90 == doctest::Approx(0.8 * 1.25));
  CHECK(winner(both, "anchor")->specialization == "faster");

  // The greater effort holds, whichever comes first; the other adds what only it knows.
  Record full{.rows = 9, .effort = TuneEffort::full, .entries = {timed("anchor", 3.0), timed("fast", 2.9)}};
  for (const Record& merged : {merge(slow_clock, full), merge(full, slow_clock)}) {
    CHECK(merged.effort == TuneEffort::full);
    CHECK(merged.rows == 9);
    CHECK(merged.find("fast")->seconds.median == 2.9);
  }
}

TEST_CASE("the winner is a finalist, and ties go to the built-in choice") {
  const Record record{.rows = 8,
                      .entries = {timed("b", 1.0), timed("c", 1.005), timed("lucky", 0.9, false), ruled_out("a")}};
  CHECK(winner(record, "none")->specialization == "b");
  CHECK(winner(record, "c")->specialization == "c");
  CHECK(winner(record, "lucky")->specialization == "b");
  CHECK(winner({.rows = 8, .entries = {ruled_out("a")}}, "a") == nullptr);
}

TEST_CASE("what is known is not timed again; what is new meets the winner and nobody else") {
  const std::vector<std::string> candidates{"a", "b", "c"};
  using Names = std::vector<std::string>;
  CHECK(to_time(candidates, "b", std::nullopt, TuneEffort::quick) == Names{"b", "a", "c"});
  CHECK(to_time(candidates, "built-in", std::nullopt, TuneEffort::quick) == Names{"built-in", "a", "b", "c"});
  Record record{.rows = 8, .effort = TuneEffort::quick, .entries = {timed("a", 1.0), timed("b", 2.0), ruled_out("c")}};
  CHECK(to_time(candidates, "b", record, TuneEffort::quick).empty());
  CHECK(to_time({"a", "b", "c", "new"}, "b", record, TuneEffort::quick) == Names{"a", "new"});
  // The incumbent stays in the race when it is no candidate any more.
  CHECK(to_time({"b", "new"}, "b", record, TuneEffort::quick) == Names{"a", "new"});
  // More care than the record was made with: everything again, and not for the other way round.
  CHECK(to_time(candidates, "b", record, TuneEffort::full) == Names{"b", "a", "c"});
  record.effort = TuneEffort::full;
  CHECK(to_time(candidates, "b", record, TuneEffort::quick).empty());
}

TEST_CASE("a record is read without knowing its key, and only a key that makes sense is one") {
  const auto reason = [](const std::string& text) {
    const auto read = parse_keyed(text, templates);
    const auto* refused = std::get_if<NoRecord>(&read);
    return refused == nullptr ? "" : refused->reason;
  };
  for (const Layout layout : {Layout::contiguous, Layout::strided}) {
    for (const Op op : {Op::softmax, Op::log_softmax}) {
      for (const plan::RowsBucket bucket : {plan::RowsBucket::few, plan::RowsBucket::many}) {
        const RecordKey written{
            .problem = {.cols = 77, .in = DType::bf16, .out = DType::f32, .op = op, .layout = layout},
            .bucket = bucket,
            .device = "GPU",
            .driver_major = 12};
        const auto read = parse_keyed(to_text(written, templates, sample()), templates);
        REQUIRE(std::holds_alternative<KeyedRecord>(read));
        CHECK(std::get<KeyedRecord>(read).key == written);
        CHECK(same(std::get<KeyedRecord>(read).record, sample()));
      }
    }
  }
  CHECK(reason(to_text(key, std::string(32, 'b'), sample())) == "was made with other kernels than this library has");
  CHECK(reason(to_text({.problem = {.cols = 0}, .device = "GPU"}, templates, sample())) ==
        "is damaged: it contradicts itself");
  CHECK(reason(to_text(key, templates, {.rows = 0})) == "is damaged: it contradicts itself");
  CHECK(reason(to_text(key, templates, {.rows = 1, .entries = {timed("a", -1)}})) ==
        "is damaged: it contradicts itself");
  CHECK(reason("[]") == "is damaged: it cannot be read as a tuning record");
}

TEST_CASE("a text that is larger, deeper or fuller than any record is refused at once") {
  const auto reason = [](const std::string& text) {
    const auto read = parse_keyed(text, templates);
    const auto* refused = std::get_if<NoRecord>(&read);
    return refused == nullptr ? "" : refused->reason;
  };
  CHECK(reason(std::string(max_record_bytes + 1, ' ')) == "is larger than a record can be");
  constexpr std::size_t depth = 1'000'000;
  CHECK(reason("{\"format\": " + std::string(depth, '[') + std::string(depth, ']') + "}") == "is no tuning record");
  std::string names = "{";
  for (int i = 0; i < 200'000; ++i) names += "\"" + std::to_string(i) + "\":0,";
  CHECK(reason(names + "\"\":0}") == "is no tuning record");
}
