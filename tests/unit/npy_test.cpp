// .npy files: what NumPy writes is read, what cannot be computed on is refused with advice, and no
// content whatsoever does harm.
#include "tools/npy.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "temporary_directory.hpp"
#include "tools/exit_code.hpp"

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::tools;

// A file as NumPy would write it, from a dictionary.
std::string file_of(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += static_cast<char>(dictionary.size() >> (8 * i));
  return bytes + dictionary + data;
}

std::string dictionary_of(const std::string& descr, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

struct Files {
  jitsoftmax::testing::TemporaryDirectory directory;
  std::string path = directory / "x.npy";

  npy::Array read(const std::string& bytes) const {
    jitsoftmax::testing::write_file(path, bytes);
    return npy::read(path);
  }

  // The message with which the bytes are refused.
  std::string refusal(const std::string& bytes) const {
    try {
      (void)read(bytes);
    } catch (const Failure& failure) {
      CHECK(failure.exit_code() == exit_code::usage);
      const std::string message = failure.what();
      CHECK(message.find(path) != std::string::npos);
      return message;
    }
    return "accepted";
  }
};

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string data_of(const npy::Array& array) {
  return {reinterpret_cast<const char*>(array.bytes().data()), array.bytes().size()};
}

}  // namespace

TEST_CASE("what is written is read back, for every dtype and number of dimensions") {
  const Files files;
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (const DType dtype : {DType::f16, DType::f32, DType::f64}) {
    for (const npy::Shape& shape : std::vector<npy::Shape>{{1}, {7}, {3, 5}, {2, 3, 4}, {1, 1, 2, 1}, {0}, {3, 0, 2}}) {
      npy::Array array(npy::Header{dtype, shape});
      for (std::byte& byte : array.bytes()) byte = static_cast<std::byte>(random());
      npy::write(OutputFile(files.path), array);
      const npy::Array back = npy::read(files.path);
      CHECK(back.header.dtype == dtype);
      CHECK(back.header.shape == shape);
      CHECK(data_of(back) == data_of(array));
    }
  }
  CHECK(files.directory.file_count() == 1);
}

TEST_CASE("the bytes that are written are those of numpy.save") {
  // numpy.save("x.npy", numpy.array([[1, 2, 3]], "float32"))
  std::string expected = "\x93NUMPY";
  expected += std::string("\x01\x00\x76\x00", 4);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }";
  expected.resize(127, ' ');
  expected += '\n';
  CHECK(npy::header_bytes({DType::f32, {1, 3}}) == expected);
  CHECK(mentions(npy::header_bytes({DType::f64, {3}}), "'<f8', 'fortran_order': False, 'shape': (3,), }"));
}

TEST_CASE("a header that is too long for version 1.0 is written as version 2.0") {
  const Files files;
  npy::Array array(npy::Header{DType::f32, npy::Shape(30000, 1)});
  std::memset(array.bytes().data(), 0, array.bytes().size());
  npy::write(OutputFile(files.path), array);
  CHECK(jitsoftmax::testing::read_file(files.path)[6] == '\x02');
  CHECK(npy::read(files.path).header.shape == array.header.shape);
}

TEST_CASE("all versions and spellings of a header are read") {
  const Files files;
  const std::string data = "abcdefgh";
  for (const int version : {1, 2, 3}) {
    for (const std::string descr : {"<f4", "=f4", "f4", "|f4"}) {
      const npy::Array array = files.read(file_of(dictionary_of(descr, "(2,)"), data, version));
      CHECK(array.header.dtype == DType::f32);
      CHECK(array.header.shape == npy::Shape{2});
      CHECK(data_of(array) == data);
    }
  }
  // Another order of the keys, other quotes, no trailing comma; and the long integers of Python 2.
  CHECK(files.read(file_of("{\"shape\":(1,2),\"descr\":\"<f4\",\"fortran_order\":False}", data)).header.shape ==
        npy::Shape{1, 2});
  CHECK(files.read(file_of(dictionary_of("<f2", "(2L, 2L)"), data)).header.shape == npy::Shape{2, 2});
}

TEST_CASE("Fortran order is refused where it differs from C order, and only there") {
  const Files files;
  CHECK(mentions(files.refusal(file_of(dictionary_of("<f2", "(2, 2)", "True"), "abcdefgh")), "ascontiguousarray"));
  CHECK(mentions(files.refusal(file_of(dictionary_of("<f2", "(2, 1, 2)", "True"), "abcdefgh")), "Fortran order"));
  for (const std::string shape : {"(4,)", "(1, 4)", "(4, 1, 1)"}) {
    CHECK(data_of(files.read(file_of(dictionary_of("<f2", shape, "True"), "abcdefgh"))) == "abcdefgh");
  }
  CHECK(files.read(file_of(dictionary_of("<f2", "(2, 0, 2)", "True"), "")).bytes().empty());
}

TEST_CASE("types that cannot be computed on are refused with what to do") {
  const Files files;
  const auto refusal = [&](const std::string& descr) {
    return files.refusal(file_of(dictionary_of(descr, "(1,)"), "abcdefgh"));
  };
  CHECK(mentions(refusal(">f4"), "big-endian"));
  CHECK(mentions(refusal(">f4"), "x.astype('<f4')"));
  CHECK(mentions(refusal("|O"), "Python objects"));
  CHECK(mentions(refusal("|V2"), "bfloat16"));
  for (const std::string descr : {"<i4", "|u1", "|b1", "<c8", "<f16", "<U3", "<M8[ns]", "", "<", "f"}) {
    CHECK(mentions(refusal(descr), "dtype '" + descr + "' is not float16, float32 or float64"));
    CHECK(mentions(refusal(descr), "x.astype(numpy.float32)"));
  }
  const std::string structured = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n";
  CHECK(mentions(files.refusal(file_of(structured, "abcd")), "structured"));
}

TEST_CASE("shapes that cannot be served are refused") {
  const Files files;
  const auto refusal = [&](const std::string& shape) {
    return files.refusal(file_of(dictionary_of("<f4", shape), "abcd"));
  };
  CHECK(mentions(refusal("()"), "no dimension"));
  CHECK(mentions(refusal("(-1,)"), "negative"));
  CHECK(mentions(refusal("(99999999999999999999,)"), "2^63"));
  CHECK(mentions(refusal("(4611686018427387904, 4)"), "more bytes than memory can hold"));
  CHECK(mentions(refusal("(2305843009213693952,)"), "more bytes than memory can hold"));
  // Larger than the file, and not allocated for that.
  CHECK(mentions(refusal("(1152921504606846976,)"), "truncated"));
  // A zero makes all else harmless.
  CHECK(files.read(file_of(dictionary_of("<f4", "(4611686018427387904, 4, 0)"), "")).bytes().empty());
}

TEST_CASE("headers that no NumPy wrote are refused") {
  const Files files;
  const std::vector<std::string> dictionaries = {
      "",
      "{",
      "{}",
      "[]",
      "{'descr': '<f4'}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} 1",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (a,)}",
      "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': Fals, 'shape': (1,)}",
      "{'descr': '<f4}",
      "{'descr': 4, 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
      "{descr: '<f4', 'fortran_order': False, 'shape': (1,)}",
  };
  for (const std::string& dictionary : dictionaries) {
    CAPTURE(dictionary);
    CHECK(mentions(files.refusal(file_of(dictionary, "abcd")), "header"));
  }
}

TEST_CASE("files of another kind are refused for what they are") {
  const Files files;
  CHECK(mentions(files.refusal("hello, world: no array"), "not a .npy file"));
  CHECK(mentions(files.refusal("PK\x03\x04 and the rest of it"), ".npz"));
  CHECK(mentions(files.refusal(file_of(dictionary_of("<f4", "(1,)"), "abcd", 4)), "version 4.0"));
  CHECK(mentions(files.refusal(""), "truncated"));
  CHECK(mentions(files.refusal(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)), "not plausible"));
  CHECK(mentions(files.refusal(file_of(dictionary_of("<f4", "(1,)"), "abcde")), "one array a file"));
  CHECK_THROWS_WITH_AS(npy::read(files.directory / "missing.npy"), doctest::Contains("cannot be opened"), Failure);
  CHECK_THROWS_WITH_AS(npy::read(files.directory.path()), doctest::Contains("cannot be read"), Failure);
}

TEST_CASE("a file that ends at any byte is refused as truncated") {
  const Files files;
  const std::string whole = npy::header_bytes({DType::f32, {2, 3}}) + std::string(24, 'x');
  REQUIRE(files.read(whole).bytes().size() == 24);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(mentions(files.refusal(whole.substr(0, size)), "truncated"));
  }
}

TEST_CASE("any byte of a header may change: the file is read or refused") {
  const Files files;
  const std::string whole = npy::header_bytes({DType::f16, {2, 3}}) + std::string(12, 'x');
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (std::size_t at = 0; at < whole.size() - 12; ++at) {
    const auto other = static_cast<unsigned>(random() % 255 + 1);
    for (const unsigned change : {1U, 0x80U, other}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ change);
      const std::string message = files.refusal(bytes);
      if (message == "accepted") CHECK(npy::read(files.path).bytes().size() == 12);
    }
  }
}
