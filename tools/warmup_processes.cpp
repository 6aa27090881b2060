#include "warmup_processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "api/code.hpp"
#include "api/warmup.hpp"

namespace jitsoftmax::tools {
namespace {

using Json = nlohmann::json;

Error system_error(const char* what) {
  return Error(ErrorCode::internal,
               std::string(what) + ": " + std::generic_category().message(errno) + "; --jobs 1 needs no other process");
}

// What all processes have in common: memory that they share.
class Queue {
 public:
  Queue() : place_(mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (place_ == MAP_FAILED) throw system_error("mmap");
    state_ = new (place_) State;  // NOLINT(cppcoreguidelines-owning-memory): of memory that is owned
  }
  ~Queue() { munmap(place_, sizeof(State)); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // The next of `count`, unless there are no more or it was stopped.
  std::optional<std::size_t> take(std::size_t count) {
    if (state_->stop.load()) return std::nullopt;
    const std::size_t next = state_->next.fetch_add(1);
    return next < count ? std::optional(next) : std::nullopt;
  }
  void stop() { state_->stop.store(true); }
  [[nodiscard]] bool was_taken(std::size_t item) const { return item < state_->next.load(); }

 private:
  struct State {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false};
  };
  static_assert(std::atomic<std::size_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
                "or it would be an atomic of one process");

  void* place_;
  State* state_ = nullptr;
};

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

// A line for each message.
void send(int to, const Json& message) {
  const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t wrote = write(to, line.data() + sent, line.size() - sent);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) _exit(1);  // nobody is listening any more
    sent += static_cast<std::size_t>(wrote);
  }
}

// The life of a process that compiles. It tells what it did, and what it has for the log.
void compile(Options options, std::vector<WarmupWork>& work, bool refresh, Queue& queue, int to) {
  options.log = [to](LogLevel level, const std::string& text) {
    send(to, {{"level", static_cast<int>(level)}, {"text", text}});
  };
  try {
    Code code(options);
    while (const std::optional<std::size_t> next = queue.take(work.size())) {
      warm_up(code, work[*next], refresh);
      const WarmupItem& item = work[*next].item;
      send(to, {{"item", *next},
                {"outcome", static_cast<int>(item.outcome)},
                {"seconds", item.seconds},
                {"error", item.error}});
    }
  } catch (const Error& error) {
    send(to, {{"fatal", static_cast<int>(error.code())}, {"text", error.what()}});
  } catch (const std::exception& error) {
    send(to, {{"fatal", static_cast<int>(ErrorCode::internal)}, {"text", error.what()}});
  }
}

// A process that compiles, as its parent sees it.
class Child {
 public:
  template <class Life>
  explicit Child(const Life& life) {  // with the number of the descriptor to send to
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("pipe2");
    from_ = Descriptor(ends[0]);
    Descriptor to(ends[1]);
    const pid_t parent = getpid();
    process_ = fork();
    if (process_ < 0) throw system_error("fork");
    if (process_ > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it went before it could take this one along
    from_.close();
    life(to.number());
    _exit(0);  // what it has of its parent's is the parent's to end
  }
  // It has been told to stop, or has nothing more to do.
  ~Child() {
    from_.close();
    (void)ended();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] int descriptor() const { return from_.number(); }

  // What has come, whole lines only; nothing when it has ended.
  std::optional<std::vector<Json>> receive() {
    std::array<char, 4096> bytes{};
    const ssize_t got = read(from_.number(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) return std::vector<Json>{};
    if (got <= 0) return std::nullopt;
    text_.append(bytes.data(), static_cast<std::size_t>(got));
    std::vector<Json> messages;
    for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      messages.push_back(Json::parse(text_.substr(0, end)));
      text_.erase(0, end + 1);
    }
    return messages;
  }

  // How, as a clause; empty: in order.
  std::string ended() {
    if (process_ <= 0) return "";
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = 0;
    if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? "" : "ended with " + std::to_string(WEXITSTATUS(status));
  }

 private:
  Descriptor from_;
  pid_t process_ = 0;
  std::string text_;
};

// Listens to all of them and puts together what they say.
class Conversation {
 public:
  Conversation(const Options& options, std::vector<WarmupWork>& work, const WarmupOptions& how, Queue& queue)
      : options_(options), work_(work), how_(how), queue_(queue) {}

  void listen(std::vector<std::unique_ptr<Child>>& children) {
    std::vector<Child*> speaking;
    speaking.reserve(children.size());
    for (const auto& child : children) speaking.push_back(child.get());
    while (!speaking.empty()) {
      std::vector<pollfd> ready;
      ready.reserve(speaking.size());
      for (const Child* child : speaking) ready.push_back({.fd = child->descriptor(), .events = POLLIN, .revents = 0});
      if (poll(ready.data(), ready.size(), -1) < 0) {
        if (errno != EINTR) throw system_error("poll");
        continue;  // a signal, which they have too or will be told of
      }
      std::vector<Child*> still;
      for (std::size_t i = 0; i < speaking.size(); ++i) {
        if (ready[i].revents == 0 || hear(*speaking[i])) still.push_back(speaking[i]);
      }
      speaking = std::move(still);
    }
    if (fatal_) throw Error(*fatal_);
    if (endings_.empty()) return;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (heard_.count(i) == 0 && queue_.was_taken(i)) work_[i].item.error = "the process that compiled it " + endings_;
    }
  }

 private:
  // Whether there may be more.
  bool hear(Child& child) {
    const std::optional<std::vector<Json>> messages = child.receive();
    if (!messages) {
      if (std::string how = child.ended(); !how.empty()) endings_ = std::move(how);
      return false;
    }
    for (const Json& message : *messages) {
      if (message.contains("item")) {
        finish(message);
      } else if (message.contains("fatal")) {
        if (!fatal_)
          fatal_.emplace(static_cast<ErrorCode>(message["fatal"].get<int>()), message["text"].get<std::string>());
        queue_.stop();
      } else if (said_.insert(message.dump()).second && options_.log) {
        options_.log(static_cast<LogLevel>(message["level"].get<int>()), message["text"].get<std::string>());
      }
    }
    return true;
  }

  void finish(const Json& message) {
    const auto index = message["item"].get<std::size_t>();
    WarmupItem& item = work_[index].item;
    item.outcome = static_cast<WarmupOutcome>(message["outcome"].get<int>());
    item.seconds = message["seconds"].get<double>();
    item.error = message["error"].get<std::string>();
    heard_.insert(index);
    if (how_.progress && !how_.progress(item, heard_.size(), work_.size())) queue_.stop();
  }

  const Options& options_;
  std::vector<WarmupWork>& work_;
  const WarmupOptions& how_;
  Queue& queue_;
  std::set<std::size_t> heard_;
  std::set<std::string> said_;
  std::string endings_;  // how one of them ended that did not end in order
  std::optional<Error> fatal_;
};

}  // namespace

WarmupReport warm_up_in_processes(const Options& options, const std::vector<Problem>& problems,
                                  const std::vector<Arch>& archs, const WarmupOptions& how) {
  std::vector<WarmupWork> work = list_work(options, problems, archs);
  Queue queue;
  {
    std::vector<std::unique_ptr<Child>> children;
    const std::size_t processes = std::min(static_cast<std::size_t>(std::max(how.jobs, 1)), work.size());
    try {
      for (std::size_t i = 0; i < processes; ++i) {
        children.push_back(std::make_unique<Child>([&](int to) { compile(options, work, how.refresh, queue, to); }));
      }
      Conversation(options, work, how, queue).listen(children);
    } catch (...) {
      queue.stop();  // before they are waited for
      throw;
    }
  }
  WarmupReport report;
  for (WarmupWork& each : work) report.items.push_back(std::move(each.item));
  return report;
}

}  // namespace jitsoftmax::tools
