// A program with a spdlog, an fmt and a JSON of its own, of versions that nobody else has. Were theirs in the library,
// either this would not link or one of them would get the other's.
#include <cstdio>
#include <jitsoftmax/jitsoftmax.hpp>
#include <string>

#if defined(CUDA_VERSION) || defined(SPDLOG_H) || defined(FMT_VERSION) || defined(NLOHMANN_JSON_VERSION_MAJOR)
#error "the public headers bring another library's headers with them"
#endif

namespace {
int logged = 0;
}

namespace spdlog {
class logger {
 public:
  void log(const std::string& text);
};
logger* default_logger_raw();
void logger::log(const std::string&) { ++logged; }
logger* default_logger_raw() {
  static logger only;
  return &only;
}
}  // namespace spdlog

namespace fmt {
inline namespace v9 {
std::string vformat(const char* text, int value);
std::string vformat(const char* text, int value) { return text + std::to_string(value); }
}  // namespace v9
}  // namespace fmt

namespace nlohmann {
inline namespace json_abi_v3_11_2 {
namespace detail {
class exception {
 public:
  virtual ~exception();
  virtual const char* what() const noexcept;
};
exception::~exception() = default;
const char* exception::what() const noexcept { return "the program's own"; }
}  // namespace detail
}  // namespace json_abi_v3_11_2
}  // namespace nlohmann

int main() {
  const float x[2] = {0.0F, 0.0F};
  float y[2] = {};
  jitsoftmax::Options options;
  options.device = jitsoftmax::Device::host();
  options.log = [](jitsoftmax::LogLevel, const std::string& message) { spdlog::default_logger_raw()->log(message); };
  jitsoftmax::Engine engine(options);
  jitsoftmax::Problem problem;
  problem.cols = 2;
  jitsoftmax::Rows rows;
  rows.in = x;
  rows.out = y;
  rows.count = 1;
  engine.softmax(problem, rows);
  std::printf("%s %d %s\n", fmt::vformat("half of 1 is ", y[0] == 0.5F ? 1 : 0).c_str(), logged,
              nlohmann::detail::exception().what());
}
