// The token is a secret, so it is
//   - in the server's environment (JUPYTER_TOKEN), which its own user alone can read, and in no command line
//   - in files below a folder of mode 0700 alone: the server's log and what it writes of itself
//   (JUPYTER_RUNTIME_DIR)
// The user's own settings of Jupyter count, and may switch all that off: so the server is asked before
// anybody is told of it.
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
#include "rank/environment.h"
#include "rank/process/signals.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kTokenLetters = 48;  // of 5 bits
constexpr Duration kAnswerLimit = 5s;
constexpr Duration kGrace = 8s;
constexpr int kTickMs = 200;
constexpr std::size_t kLastLines = 12;
// Making a virtual environment may come before it.
constexpr Duration kLookingLimit = 20min;

constexpr std::string_view kLook =
    "for program do command -v \"$program\" > /dev/null 2>&1 && echo \"$program\" && exit; done; exit 0";

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// What the environment's shell finds in its PATH.
Result<std::string> find_program(const NotebookOptions& options) {
  Command command;
  command.argv = with(options.in_environment, {"/bin/sh", "-c", std::string(kLook), "sh"});
  command.argv = with(std::move(command.argv), notebook_programs());
  command.environment = options.environment;
  OK_OR_RETURN(looked, run_program(command, Deadline::after(kLookingLimit)));
  const std::string_view found = trim(looked.out);
  const auto& known = notebook_programs();
  if (std::find(known.begin(), known.end(), found) != known.end()) return std::string(found);
  if (!looked.exit.ok()) {
    const auto lines = split(trim(looked.err), '\n');
    return unavailable("jupyter: the job's environment: {}: {}", to_text(looked.exit),
                       printable(lines.back()));
  }
  return not_found("jupyter: none of {} is in the PATH of the job's environment", join(known, ", "))
      .cure("pip install jupyterlab, in what environment.venv, conda or container names");
}

// Removed with all in it at the end.
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

// One that has begun, and what it may still need.
class Server {
 public:
  Server(const NotebookOptions& options, SignalFd signals)
      : options_(options), signals_(std::move(signals)) {}

  Status start() {
    RETURN_IF_ERROR(folder_.make(options_.scratch));
    OK_OR_RETURN(program, find_program(options_));
    facts_ = {.program = program,
              .address = address_towards(options_.seen_from),
              .token = random_name(kTokenLetters)};
    OK_OR_RETURN(port, net::PortReservation::find(static_cast<std::uint64_t>(::getpid()), options_.ports));
    port_ = std::move(port);
    facts_.port = port_.port();
    OK_OR_RETURN(log, File::create_new(log_path()));
    Command command;
    // These options are known to all of its versions, under these names.
    command.argv = with(options_.in_environment, {program, "--no-browser", "--ip=" + facts_.address,
                                                  format("--port={}", facts_.port), "--port-retries=0"});
    if (::geteuid() == 0) command.argv.emplace_back("--allow-root");
    command.environment = options_.environment;
    set_variable(*command.environment, "JUPYTER_TOKEN", facts_.token);
    set_variable(*command.environment, "JUPYTER_RUNTIME_DIR", folder_.path() / "runtime");
    command.stdout_fd = log.fd();
    command.stderr_fd = log.fd();
    command.group = ::stoker::Group::own;
    command.parent_death_signal = SIGTERM;
    OK_OR_RETURN(child, Child::spawn(command));
    child_.emplace(std::move(child));
    return {};
  }

  /// Cancelled when somebody asks for the end meanwhile.
  Status wait_until_ready() {
    const Deadline deadline = Deadline::after(options_.patience);
    for (;;) {
      if (const auto exit = child_->poll())
        return unavailable("{}: {}{}", facts_.program, to_text(*exit), last_words());
      if (wait(kTickMs)) return cancelled("{}: ended before it answered", facts_.program);
      const auto status = ask_notebook(facts_, facts_.token, Deadline::after(kAnswerLimit));
      if (status.ok() && *status == 200) return check_locked();
      if (status.ok() && *status != 404 && *status < 500) {
        return invalid("{}: does not take its token (HTTP {}): a setting in ~/.jupyter decides about it",
                       facts_.program, *status)
            .cure("environment: {{variables: {{JUPYTER_CONFIG_DIR: /tmp/none}}}}");
      }
      if (deadline.passed()) {
        return Status(
            Code::timeout,
            format("{}: gives no answer within {} ({})", facts_.program, rounded_duration(options_.patience),
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

  /// Ends it, with time to end what was started from it.
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
    OK_OR_RETURN(status, ask_notebook(facts_, "", Deadline::after(kAnswerLimit)));
    if (status != 200) return {};
    return invalid("{}: lets everybody in, without its token: a setting in ~/.jupyter switches it off",
                   facts_.program)
        .cure("environment: {{variables: {{JUPYTER_CONFIG_DIR: /tmp/none}}}}");
  }

  // True once the end is asked for. What comes on standard input is nothing; its end is the word to end.
  bool wait(int milliseconds) {
    pollfd waiting[] = {{signals_.fd(), POLLIN, 0}, {child_->pidfd(), POLLIN, 0}, {0, POLLIN, 0}};
    if (::poll(waiting, 3, milliseconds) <= 0) return false;
    bool is_asked = signals_.take().has_value();
    if (waiting[2].revents != 0) {
      char ignored[256];
      const ssize_t count = ::read(0, ignored, sizeof ignored);
      is_asked = is_asked || count == 0 || (count < 0 && errno != EINTR);
    }
    // A server that has ended makes poll(2) return at once.
    return is_asked;
  }

  std::string last_words() const {
    const auto text = read_file(log_path());
    if (!text.ok() || trim(*text).empty()) return "";
    auto lines = split(trim(*text), '\n');
    if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
    std::string words;
    for (std::string_view line : lines) {
      // What is told here may be kept by whoever reads it.
      if (line.find(facts_.token) == std::string_view::npos) words += "\n  " + printable(line);
    }
    return ", and said:" + words;
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
    return corrupt("the server: answers without HTTP");
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

std::string address_towards(const std::string& other) {
  const std::string loopback = "127.0.0.1";
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(9);
  if (::inet_pton(AF_INET, other.c_str(), &there.sin_addr) != 1) return loopback;
  // A datagram socket's connect sends nothing: the kernel only chooses the way.
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (!fd || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&there), sizeof there) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return loopback;
  char text[INET_ADDRSTRLEN];
  return ::inet_ntop(AF_INET, &own.sin_addr, text, sizeof text) == nullptr ? loopback : text;
}

Result<int> ask_notebook(const Notebook& server, const std::string& token, Deadline deadline) {
  OK_OR_RETURN(channel, net::Channel::connect(format("{}:{}", server.address, server.port), deadline));
  const Fd fd = std::move(channel).release();
  std::string request =
      format("GET /api/status HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n", server.address, server.port);
  if (!token.empty()) request += format("Authorization: token {}\r\n", token);
  request += "\r\n";
  const ssize_t sent = ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(request.size())) return unavailable("the server: takes no request");
  OK_OR_RETURN(answer, first_line(fd.get(), deadline));
  return status_of(answer);
}

Result<Exit> run_notebook(const NotebookOptions& options, const std::function<void(const Notebook&)>& ready) {
  OK_OR_RETURN(signals, SignalFd::open({SIGINT, SIGTERM, SIGHUP}));
  Server server(options, std::move(signals));
  RETURN_IF_ERROR(server.start());
  if (Status status = server.wait_until_ready(); !status.ok()) {
    (void)server.end();
    return status;
  }
  ready(server.facts());
  return server.wait_for_end();
}

}  // namespace stoker::rank
