// The token is a secret. It is only
//   - in the server's environment (JUPYTER_TOKEN), which only its user can read, and in no command line
//   - in files below a folder of mode 0700: the server's log and its runtime files (JUPYTER_RUNTIME_DIR)
// The user's Jupyter settings apply and may disable the token, so the server is tested before it is
// announced.
#include "rank/notebook/notebook.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/channel.h"
#include "rank/process/signals.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kTokenLetters = 48;  // 5 bits each
constexpr Duration kAnswerLimit = 5s;
constexpr Duration kGrace = 8s;
constexpr int kTickMs = 200;
constexpr std::size_t kLastLines = 12;
// May include creating a virtual environment.
constexpr Duration kFindTimeout = 20min;

constexpr std::string_view kFindProgram =
    "for program do command -v \"$program\" > /dev/null 2>&1 && echo \"$program\" && exit; done; exit 0";

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Finds a program in the PATH of the environment's shell.
Result<std::string> find_program(const NotebookOptions& options) {
  Command command;
  command.argv = with(options.command_prefix, {"/bin/sh", "-c", std::string(kFindProgram), "sh"});
  command.argv = with(std::move(command.argv), notebook_programs());
  command.environment = options.environment;
  STOKER_ASSIGN_OR_RETURN(looked, run_program(command, Deadline::after(kFindTimeout)));
  const std::string_view found = trim(looked.out);
  const auto& known = notebook_programs();
  if (std::find(known.begin(), known.end(), found) != known.end()) return std::string(found);
  if (!looked.exit.ok()) {
    const auto lines = split(trim(looked.err), '\n');
    return unavailable("jupyter: the job's environment: {}: {}", to_text(looked.exit),
                       printable(lines.back()));
  }
  return not_found("jupyter: none of {} is in the PATH of the job's environment", join(known, ", "))
      .cure("pip install jupyterlab      (in the job's venv, conda environment or container)");
}

// A temporary folder, removed with its content.
class PrivateFolder {
 public:
  PrivateFolder() = default;
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    if (!path_.empty()) (void)remove_tree(path_);
  }
  Status make(const Path& root) {
    const Path path = root / ("stoker-jupyter-" + random_name());
    if (::mkdir(path.c_str(), 0700) != 0) return posix_error(printable(path.string()), errno);
    path_ = path;
    return {};
  }
  const Path& path() const { return path_; }

 private:
  Path path_;
};

// A running server and its resources.
class Server {
 public:
  Server(const NotebookOptions& options, SignalFd signals)
      : options_(options), signals_(std::move(signals)) {}

  Status start() {
    STOKER_RETURN_IF_ERROR(folder_.make(options_.scratch));
    STOKER_ASSIGN_OR_RETURN(program, find_program(options_));
    facts_ = {.program = program,
              .address = local_address_to(options_.client_address),
              .token = random_name(kTokenLetters)};
    STOKER_ASSIGN_OR_RETURN(
        port, net::PortReservation::find(static_cast<std::uint64_t>(::getpid()), options_.ports));
    port_ = std::move(port);
    facts_.port = port_.port();
    STOKER_ASSIGN_OR_RETURN(log, File::create_new(log_path()));
    Command command;
    // All versions support these options.
    command.argv = with(options_.command_prefix, {program, "--no-browser", "--ip=" + facts_.address,
                                                  format("--port={}", facts_.port), "--port-retries=0"});
    if (::geteuid() == 0) command.argv.emplace_back("--allow-root");
    command.environment = options_.environment;
    set_variable(*command.environment, "JUPYTER_TOKEN", facts_.token);
    set_variable(*command.environment, "JUPYTER_RUNTIME_DIR", folder_.path() / "runtime");
    command.stdout_fd = log.fd();
    command.stderr_fd = log.fd();
    command.group = ::stoker::Group::own;
    command.parent_death_signal = SIGTERM;
    STOKER_ASSIGN_OR_RETURN(child, Child::spawn(command));
    child_.emplace(std::move(child));
    return {};
  }

  /// Cancelled when a stop is requested.
  Status wait_until_ready() {
    const Deadline deadline = Deadline::after(options_.ready_timeout);
    for (;;) {
      if (const auto exit = child_->poll())
        return unavailable("{}: {}{}", facts_.program, to_text(*exit), last_log_lines());
      if (wait(kTickMs)) return cancelled("{}: ended before it answered", facts_.program);
      const auto status = query_notebook(facts_, facts_.token, Deadline::after(kAnswerLimit));
      if (status.ok() && *status == 200) return check_locked();
      if (status.ok() && *status != 404 && *status < 500) {
        return invalid("{}: does not accept its token (HTTP {}), because of a setting in ~/.jupyter",
                       facts_.program, *status)
            .cure("environment: {{variables: {{JUPYTER_CONFIG_DIR: /tmp/none}}}}");
      }
      if (deadline.passed()) {
        return Status(Code::timeout,
                      format("{}: did not answer within {} ({})", facts_.program,
                             rounded_duration(options_.ready_timeout),
                             status.ok() ? format("HTTP {}", *status) : status.status().message()));
      }
    }
  }

  const Notebook& facts() const { return facts_; }

  Exit wait_for_end() {
    while (!child_->poll()) {
      if (wait(-1)) return end();
    }
    return *child_->poll();
  }

  /// Ends it, with time for its kernels.
  Exit end() {
    (void)child_->signal(SIGTERM);
    if (child_->wait(Deadline::after(kGrace)).ok()) return {};
    ::kill(-child_->pid(), SIGKILL);
    (void)child_->wait(Deadline::after(kGrace));
    return {};
  }

 private:
  Path log_path() const { return folder_.path() / "jupyter.log"; }

  Status check_locked() const {
    STOKER_ASSIGN_OR_RETURN(status, query_notebook(facts_, "", Deadline::after(kAnswerLimit)));
    if (status != 200) return {};
    return invalid("{}: accepts requests without its token, because of a setting in ~/.jupyter",
                   facts_.program)
        .cure("environment: {{variables: {{JUPYTER_CONFIG_DIR: /tmp/none}}}}");
  }

  // True when a stop is requested. Data on standard input is ignored; its end requests a stop.
  bool wait(int milliseconds) {
    pollfd waiting[] = {{signals_.fd(), POLLIN, 0}, {child_->pidfd(), POLLIN, 0}, {0, POLLIN, 0}};
    if (::poll(waiting, 3, milliseconds) <= 0) return false;
    bool end_requested = signals_.next_signal().has_value();
    if (waiting[2].revents != 0) {
      char ignored[256];
      const ssize_t count = ::read(0, ignored, sizeof ignored);
      end_requested = end_requested || count == 0 || (count < 0 && errno != EINTR);
    }
    // After the server has exited, poll(2) returns at once.
    return end_requested;
  }

  std::string last_log_lines() const {
    const auto text = read_file(log_path());
    if (!text.ok() || trim(*text).empty()) return "";
    auto lines = split(trim(*text), '\n');
    if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
    std::string words;
    for (std::string_view line : lines) {
      // The reader may store this output.
      if (line.find(facts_.token) == std::string_view::npos) words += "\n  " + printable(line);
    }
    return ", its last log lines:" + words;
  }

  const NotebookOptions& options_;
  PrivateFolder folder_;
  SignalFd signals_;
  Notebook facts_;
  net::PortReservation port_;
  std::optional<Child> child_;
};

// The first line of an answer: "HTTP/1.1 403 Forbidden".
Result<int> status_of(std::string_view answer) {
  std::int64_t status = 0;
  if (!answer.starts_with("HTTP/1.") || answer.size() < 12 || !parse_number(answer.substr(9, 3), &status))
    return corrupt("the server: invalid HTTP answer");
  return static_cast<int>(status);
}

Result<std::string> first_line(int fd, Deadline deadline) {
  constexpr std::size_t kLongest = 4096;
  std::string answer;
  while (answer.find('\n') == std::string::npos && answer.size() < kLongest) {
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, deadline.poll_ms()) <= 0) return timeout("the server: no answer");
    char piece[1024];
    const ssize_t count = ::recv(fd, piece, sizeof piece, 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return unavailable("the server: closed the connection");
    answer.append(piece, static_cast<std::size_t>(count));
  }
  return answer;
}

}  // namespace

const std::vector<std::string>& notebook_programs() {
  static const std::vector<std::string> kPrograms = {"jupyter-lab", "jupyter-server", "jupyter-notebook"};
  return kPrograms;
}

std::string local_address_to(const std::string& other) {
  const std::string loopback = "127.0.0.1";
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(9);
  if (::inet_pton(AF_INET, other.c_str(), &there.sin_addr) != 1) return loopback;
  // connect on a datagram socket sends nothing: the kernel only selects the route.
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (!fd || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&there), sizeof there) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return loopback;
  char text[INET_ADDRSTRLEN];
  return ::inet_ntop(AF_INET, &own.sin_addr, text, sizeof text) == nullptr ? loopback : text;
}

Result<int> query_notebook(const Notebook& server, const std::string& token, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(channel,
                          net::Channel::connect(format("{}:{}", server.address, server.port), deadline));
  const Fd fd = std::move(channel).release();
  std::string request =
      format("GET /api/status HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n", server.address, server.port);
  if (!token.empty()) request += format("Authorization: token {}\r\n", token);
  request += "\r\n";
  const ssize_t sent = ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(request.size())) return unavailable("the server: accepts no request");
  STOKER_ASSIGN_OR_RETURN(answer, first_line(fd.get(), deadline));
  return status_of(answer);
}

Result<Exit> run_notebook(const NotebookOptions& options, const std::function<void(const Notebook&)>& ready) {
  STOKER_ASSIGN_OR_RETURN(signals, SignalFd::open({SIGINT, SIGTERM, SIGHUP}));
  Server server(options, std::move(signals));
  STOKER_RETURN_IF_ERROR(server.start());
  if (Status status = server.wait_until_ready(); !status.ok()) {
    (void)server.end();
    return status;
  }
  ready(server.facts());
  return server.wait_for_end();
}

}  // namespace stoker::rank
