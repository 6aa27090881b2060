// A cache key changes with everything that the code depends on, and with nothing else.
#include <doctest/doctest.h>

#include <clocale>
#include <set>

#include "cache/key.hpp"
#include "cache_fixtures.hpp"

namespace {

using jitsoftmax::cache::digest_of;
using jitsoftmax::cache::Key;
using jitsoftmax::cache::key_of;
using jitsoftmax::jit::Program;
using jitsoftmax::jit::TemplateFile;

const std::vector<TemplateFile> templates = {{"config.cuh", "struct Config;\n"}, {"device.cuh", "// device\n"}};

}  // namespace

TEST_CASE("the key is what it was when entries were first shipped") {
  // The hash of the fields as an independent program spells them. A change here makes every shipped
  // cache useless: raise the schema, and know why.
  const Program program{.text = "text", .name = "name", .arch = {9, 0, 'a'}, .options = {"one", "two"}};
  CHECK(key_of(program, templates).hex() == "8545ef26076071237919fedb4a197272");
  CHECK(Key{.high = 0x0123456789abcdef, .low = 0xf}.hex() == "0123456789abcdef000000000000000f");
  CHECK(digest_of(std::span<const char>()).hex() == "99aa06d3014798d86001c324468d497f");  // XXH128's own vector
}

TEST_CASE("every field and every character changes the key") {
  const Program base = fixtures::sample_program();
  std::set<std::string> keys = {key_of(base, templates).hex()};
  std::size_t variants = 1;
  const auto differs = [&](const Program& program, const std::vector<TemplateFile>& files) {
    keys.insert(key_of(program, files).hex());
    CHECK(keys.size() == ++variants);
  };
  const auto program_with = [&](auto change) {
    Program changed = base;
    change(changed);
    differs(changed, templates);
  };

  program_with([](Program& p) { p.arch = {9, 0}; });
  program_with([](Program& p) { p.arch = {10, 0, 'a'}; });
  program_with([](Program& p) { p.arch = {10, 0, 'f'}; });
  program_with([](Program& p) { p.arch = {0, 9, 'a'}; });
  program_with([](Program& p) { p.options.pop_back(); });
  program_with([](Program& p) { p.options.emplace_back(); });
  program_with([](Program& p) { std::swap(p.options[0], p.options[1]); });
  program_with([](Program& p) { p.options = {p.options[0] + p.options[1]}; });
  program_with([](Program& p) { std::swap(p.text, p.name); });
  for (std::size_t i = 0; i < base.text.size(); ++i) program_with([i](Program& p) { p.text[i] ^= 1; });
  for (std::size_t i = 0; i < base.name.size(); ++i) program_with([i](Program& p) { p.name[i] ^= 1; });
  for (std::size_t option = 0; option < base.options.size(); ++option)
    for (std::size_t i = 0; i < base.options[option].size(); ++i)
      program_with([=](Program& p) { p.options[option][i] ^= 1; });

  for (std::size_t file = 0; file < templates.size(); ++file) {
    for (std::size_t i = 0; i < templates[file].text.size(); ++i) {
      std::string text(templates[file].text);
      text[i] ^= 1;
      auto changed = templates;
      changed[file].text = text;
      differs(base, changed);
    }
    auto renamed = templates;
    renamed[file].name = "other.cuh";
    differs(base, renamed);
  }
  differs(base, {templates[0]});
}

TEST_CASE("the border between fields counts") {
  const auto with_options = [](std::vector<std::string> options) {
    return key_of({.text = "t", .name = "n", .arch = {9, 0}, .options = std::move(options)}, templates);
  };
  CHECK(with_options({"ab", "c"}) != with_options({"a", "bc"}));
  CHECK(with_options({"ab", ""}) != with_options({"", "ab"}));
  CHECK(with_options({"ab", ""}) != with_options({"ab"}));
  const Program left{.text = "ab", .name = "c", .arch = {}, .options = {}};
  const Program right{.text = "a", .name = "bc", .arch = {}, .options = {}};
  CHECK(key_of(left, templates) != key_of(right, templates));
  const std::vector<TemplateFile> one = {{"ab", "c"}};
  const std::vector<TemplateFile> other = {{"a", "bc"}};
  CHECK(key_of(left, one) != key_of(left, other));
  CHECK(digest_of(std::span(one)) != digest_of(std::span(other)));
}

TEST_CASE("equal programs have equal keys, in every locale") {
  const Key before = key_of(fixtures::sample_program(1'000'000), templates);
  for (const char* locale : {"C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8"}) {
    std::setlocale(LC_ALL, locale);
    CHECK(key_of(fixtures::sample_program(1'000'000), templates) == before);
  }
  std::setlocale(LC_ALL, "C");
}
