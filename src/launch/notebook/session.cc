// How the allocation is released, whichever process ends first:
//   - the node's `stoker notebook` lives as long as its standard input is open, which srun connects to a pipe
//       of this process. Closing the pipe, or the death of this process, ends the server, then srun, then
//       salloc.
//   - while the job is pending, nothing reads the pipe: salloc gets SIGTERM and cancels the request.
//   - salloc gets SIGHUP when this process dies, and releases the allocation at once.
#include "launch/notebook/session.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <poll.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/process.h"
#include "launch/interactive/interactive.h"
#include "launch/start/container.h"
#include "launch/start/environment.h"
#include "launch/start/site_ports.h"
#include "rank/notebook/notebook.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::ordered_json;

constexpr int kTickMs = 100;
constexpr std::string_view kMark = "stoker-notebook ";
constexpr std::size_t kLongestLine = 64 * 1024;
// The server has 8 s for its kernels, then srun and salloc exit. After that, the signals escalate.
constexpr Duration kUntilTerm = 15s;
constexpr Duration kUntilHup = 25s;
constexpr Duration kUntilKill = 40s;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Runs salloc and reads its output.
class AllocationHolder {
 public:
  AllocationHolder(const NotebookSessionOptions& options, Child salloc, Fd input, Fd output)
      : options_(options), salloc_(std::move(salloc)), input_(std::move(input)), output_(std::move(output)) {}

  Exit run() {
    for (;;) {
      wait();
      if (const auto exit = salloc_.poll()) {
        while (read_output()) {
        }
        return end_requested_ && is_ready_ ? Exit{} : *exit;
      }
      if (!end_requested_ && options_.should_stop()) request_end();
      if (end_requested_) escalate_signal();
    }
  }

 private:
  void wait() {
    pollfd waiting[] = {{salloc_.pidfd(), POLLIN, 0}, {output_ ? output_.get() : -1, POLLIN, 0}};
    ::poll(waiting, 2, kTickMs);
    if (waiting[1].revents != 0 && !read_output()) output_.reset();
  }

  // False at end of file.
  bool read_output() {
    if (!output_) return false;
    char piece[4096];
    const ssize_t count = ::read(output_.get(), piece, sizeof piece);
    if (count < 0) return errno == EINTR;
    if (count == 0) return false;
    partial_.append(piece, static_cast<std::size_t>(count));
    for (std::size_t end; (end = partial_.find('\n')) != std::string::npos; partial_.erase(0, end + 1)) {
      const auto place = parse_endpoint_line(std::string_view(partial_).substr(0, end));
      if (!place || is_ready_) continue;
      is_ready_ = true;
      options_.ready(*place);
    }
    if (partial_.size() > kLongestLine) partial_.clear();
    return true;
  }

  void request_end() {
    end_requested_ = true;
    input_.reset();
    end_requested_at_ = RealClock().mono();
    if (!is_ready_) (void)salloc_.signal(SIGTERM);
  }

  void escalate_signal() {
    const Duration gone = RealClock().mono() - end_requested_at_;
    const int signal = gone > kUntilKill   ? SIGKILL
                       : gone > kUntilHup  ? SIGHUP
                       : gone > kUntilTerm ? SIGTERM
                                           : 0;
    if (signal == last_signal_) return;
    last_signal_ = signal;
    (void)salloc_.signal(signal);
  }

  const NotebookSessionOptions& options_;
  Child salloc_;
  Fd input_;
  Fd output_;
  std::string partial_;
  bool is_ready_ = false;
  bool end_requested_ = false;
  MonoTime end_requested_at_;
  int last_signal_ = 0;
};

bool is_in_path(const std::string& search_path, const std::string& program) {
  const auto folders = split(search_path, ':');
  return std::any_of(folders.begin(), folders.end(), [&](std::string_view folder) {
    return !folder.empty() && ::access((Path(folder) / program).c_str(), X_OK) == 0;
  });
}

}  // namespace

std::string NotebookEndpoint::url(int local_port) const {
  const std::string page = program == "jupyter-lab" ? "lab" : program == "jupyter-notebook" ? "tree" : "";
  return format("http://127.0.0.1:{}/{}?token={}", local_port, page, token);
}

std::string to_line(const NotebookEndpoint& place) {
  const Json object = {{"program", place.program}, {"host", place.host},   {"address", place.address},
                       {"port", place.port},       {"token", place.token}, {"job", place.job}};
  return std::string(kMark) + json_text(object);
}

std::optional<NotebookEndpoint> parse_endpoint_line(std::string_view line) {
  if (!line.starts_with(kMark)) return std::nullopt;
  const Json object = parse_json<Json>(line.substr(kMark.size()));
  if (!object.is_object()) return std::nullopt;
  NotebookEndpoint place{.program = text_of(object, "program"),
                         .host = text_of(object, "host"),
                         .address = text_of(object, "address"),
                         .port = 0,
                         .token = text_of(object, "token"),
                         .job = text_of(object, "job")};
  const auto port = object.find("port");
  if (port == object.end() || !port->is_number_integer() || place.token.empty()) return std::nullopt;
  const auto number = port->get<std::int64_t>();
  if (number < 1 || number > 65535) return std::nullopt;
  place.port = static_cast<int>(number);
  return place;
}

std::string tunnel_command(const NotebookEndpoint& place, int local_port, const std::string& login) {
  return format("ssh -N -L {}:{}:{} {}", local_port, place.address, place.port, shell_quote(login));
}

std::string full_host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string external_login(const std::string& host_name, const std::string& user,
                           const std::optional<std::string>& ssh_connection) {
  std::string host = host_name;
  if (host.find('.') == std::string::npos && ssh_connection) {
    // "client port server port"
    const auto words = split(*ssh_connection, ' ');
    if (words.size() == 4) host = std::string(words[2]);
  }
  return user + "@" + host;
}

Status check_notebook(const job::Job& job, const Environment& variables) {
  if (job.environment.container || has_requirements_file(job.environment)) return {};
  const std::string search_path = variable(variables, "PATH");
  const auto& programs = rank::notebook_programs();
  if (std::any_of(programs.begin(), programs.end(),
                  [&](const std::string& program) { return is_in_path(search_path, program); }))
    return {};
  const bool has_venv = job.environment.venv.has_value();
  return not_found("jupyter: none of {} is in the PATH of the job's environment{}", join(programs, ", "),
                   has_venv ? format(" (environment.venv: {})", *job.environment.venv) : "")
      .cure("{} install jupyterlab",
            has_venv ? shell_quote((*job.environment.venv / "bin/pip").string()) : "pip");
}

Result<std::vector<std::string>> notebook_arguments(const Request& request) {
  std::vector<std::string> command = {request.stoker.string(), "notebook"};
  if (const auto ports = ports_of_site(request.job, request.stoker))
    command.push_back("--ports=" + to_text(*ports));
  const auto around =
      wrap_in_container(request.job, wrap_in_node_venv(request.job.environment, request.stoker, {}));
  if (!around.empty()) {
    command.emplace_back("--");
    command.insert(command.end(), around.begin(), around.end());
  }
  return salloc_arguments(request, command, Terminal::none);
}

Result<Exit> run_notebook_session(const NotebookSessionOptions& options) {
  STOKER_ASSIGN_OR_RETURN(input, Pipe::create());
  STOKER_ASSIGN_OR_RETURN(output, Pipe::create());
  Command command;
  command.argv = options.command;
  command.environment = options.environment;
  command.directory = options.directory;
  command.stdin_fd = input.read.get();
  command.stdout_fd = output.write.get();
  // Ctrl-C is handled here: srun would need it twice.
  command.group = Group::own;
  command.parent_death_signal = SIGHUP;
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn(command));
  input.read.reset();
  output.write.reset();
  return AllocationHolder(options, std::move(child), std::move(input.write), std::move(output.read)).run();
}

}  // namespace stoker::launch
