#include "sweep/optuna/bridge.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stoker/text.h"

namespace stoker::sweep {

namespace {

using namespace std::chrono_literals;
using Json = nlohmann::ordered_json;

// Some samplers fit a model, and a database may be far away.
constexpr Duration kLongestAnswer = 10min;
constexpr Duration kLongestEnd = 5s;
constexpr std::size_t kLargestAnswer = 1u << 30;
// Modules in the current folder must not replace Python's.
constexpr std::string_view kPreamble = "import sys\nsys.path[:] = [path for path in sys.path if path]\n";

std::string choose_python() {
  const auto chosen = environment_value("STOKER_PYTHON");
  return chosen && !chosen->empty() ? *chosen : "python3";
}

}  // namespace

OptunaBridge::OptunaBridge(std::string python, Fd socket, Child child)
    : python_(std::move(python)),
      socket_(std::move(socket)),
      child_(std::move(child)),
      process_(static_cast<int>(::getpid())) {}

OptunaBridge::~OptunaBridge() {
  socket_.reset();
  if (!is_own() || child_.wait(Deadline::after(kLongestEnd)).ok()) return;
  (void)child_.signal(SIGKILL);
  (void)child_.wait(Deadline::after(kLongestEnd));
}

bool OptunaBridge::is_own() const { return process_ == static_cast<int>(::getpid()); }

Result<std::unique_ptr<OptunaBridge>> OptunaBridge::start() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return posix_error("socketpair", errno);
  Fd own(ends[0]);
  Fd other(ends[1]);
  std::string python = choose_python();
  Command command;
  command.argv = {python, "-c", std::string(kPreamble) + std::string(optuna_bridge_script())};
  command.stdin_fd = other.get();
  command.stdout_fd = other.get();
  // Ctrl-C is for this process, which ends the child after its last answer.
  command.group = Group::own;
  auto child = Child::spawn(command);
  other.reset();  // else the child's end is not seen
  if (!child)
    return std::move(child).error().with_context("optuna").cure("export STOKER_PYTHON=/path/to/python");
  std::unique_ptr<OptunaBridge> bridge(
      new OptunaBridge(std::move(python), std::move(own), *std::move(child)));
  STOKER_ASSIGN_OR_RETURN(greeting, bridge->receive());
  if (greeting.contains("error")) return bridge->error_in(greeting);
  return bridge;
}

Result<Json> OptunaBridge::call(const Json& request) {
  const std::string line = json_ascii(request) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ended();
    sent += static_cast<std::size_t>(count);
  }
  STOKER_ASSIGN_OR_RETURN(answer, receive());
  if (answer.contains("error")) return error_in(answer);
  return std::move(answer);
}

Result<Json> OptunaBridge::receive() {
  const Deadline deadline = Deadline::after(kLongestAnswer);
  std::array<char, 65536> buffer{};
  std::size_t line_end = std::string::npos;
  while ((line_end = received_.find('\n')) == std::string::npos) {
    pollfd waiting{socket_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, deadline.poll_ms()) == 0 && deadline.passed())
      return timeout("optuna: {} has not answered for 10 min", python_);
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return ended();
    received_.append(buffer.data(), static_cast<std::size_t>(count));
    if (received_.size() > kLargestAnswer) return unavailable("optuna: an answer of over 1 GiB");
  }
  Json answer = parse_json<Json>(std::string_view(received_).substr(0, line_end));
  received_.erase(0, line_end + 1);
  if (!answer.is_object()) return unavailable("optuna: an answer of {} is not JSON", python_);
  return answer;
}

Status OptunaBridge::ended() {
  auto exit = child_.wait(Deadline::after(kLongestEnd));
  if (!exit) return unavailable("optuna: {} closed its output", python_);
  return unavailable("optuna: {} ended ({})", python_, to_text(*exit));
}

Status OptunaBridge::error_in(const Json& answer) const {
  const auto text = [&](const char* name) {
    const auto found = answer.find(name);
    return found != answer.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (const std::string module = text("missing"); !module.empty()) {
    const std::string package = text("package").empty() ? module : text("package");
    return invalid("optuna: {} has no module {}", python_, printable(module))
        .cure("{} -m pip install {}", shell_quote(python_), shell_quote(package));
  }
  if (const auto known = answer.find("candidates"); known != answer.end() && known->is_array()) {
    std::vector<std::string_view> names;
    for (const Json& name : *known) {
      if (name.is_string()) names.push_back(name.get_ref<const std::string&>());
    }
    return Status(text("code") == "not_found" ? Code::not_found : Code::invalid,
                  format("'{}' is unknown{}", printable(text("name")), suggestion(text("name"), names)));
  }
  if (text("code") == "not_found") return not_found("{}", printable(text("error")));
  if (text("code") == "unavailable") return unavailable("{}", printable(text("error")));
  if (text("code") == "no_space") return Status(Code::no_space, printable(text("error")));
  Status error = invalid("{}", printable(text("error")));
  if (const std::string cure = text("cure"); !cure.empty()) return std::move(error).cure("{}", cure);
  return error;
}

}  // namespace stoker::sweep
