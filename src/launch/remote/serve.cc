// How files are installed:
//   1. receive the tar into a hidden file and unpack it into a hidden folder next to it
//   2. write the list of all names, earlier and new ones
//   3. rename each file into its place
//   4. remove the files that are no longer sent, and write the list without them
// A crash leaves complete files, old and new ones mixed; sending again fixes that.
#include "launch/remote/serve.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <set>
#include <unistd.h>

#include "base/process.h"
#include "launch/remote/send.h"
#include "launch/start/sent_files.h"
#include "record/run_folder.h"
#include "stage/unpack.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSilence = 60s;
constexpr Duration kEndingGrace = 10s;
constexpr std::size_t kLongestLine = std::size_t{16} << 20;
constexpr std::size_t kRequestPiece = std::size_t{256} << 10;

// A temporary folder, removed with its content.
class IncomingFolder {
 public:
  IncomingFolder() : path_(".stoker-incoming-" + random_name()) {}
  IncomingFolder(const IncomingFolder&) = delete;
  IncomingFolder& operator=(const IncomingFolder&) = delete;
  ~IncomingFolder() { (void)remove_tree(path_); }
  const Path& path() const { return path_; }

 private:
  Path path_;
};

bool is_below(const std::string& name, const std::string& folder) {
  return folder.empty() || name.starts_with(folder + "/");
}

Status install_files(const RemoteRequest& request, const Path& unpacked) {
  std::vector<std::string> before;
  if (auto sent = read_sent("."); sent.ok()) before = std::move(*sent);
  const std::set<std::string> now(request.files.begin(), request.files.end());
  std::vector<std::string> all(now.begin(), now.end());
  std::vector<std::string> gone;
  for (const std::string& name : before) {
    if (now.contains(name)) continue;
    all.push_back(name);
    if (is_below(name, request.sent_below)) gone.push_back(name);
  }
  std::sort(all.begin(), all.end());
  STOKER_RETURN_IF_ERROR(write_sent(".", all));
  std::set<Path> made;
  for (const std::string& name : request.files) {
    const Path folder = Path(name).parent_path();
    if (!folder.empty() && made.insert(folder).second) STOKER_RETURN_IF_ERROR(make_directories(folder));
    STOKER_RETURN_IF_ERROR(rename_path(unpacked / name, name));
  }
  if (gone.empty()) return {};
  for (const std::string& name : gone) (void)remove_file(name);
  std::erase_if(
      all, [&](const std::string& name) { return std::find(gone.begin(), gone.end(), name) != gone.end(); });
  return write_sent(".", all);
}

// Runs tar(1) onto standard output; its messages go to standard error.
Status run_tar(const std::vector<std::string>& words) {
  Command command;
  command.argv = {"tar",
                  "--create",
                  "--format=posix",
                  "--file=-",
                  "--warning=no-file-changed",
                  "--warning=no-file-removed"};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  command.parent_death_signal = SIGTERM;
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn(command));
  STOKER_ASSIGN_OR_RETURN(exit, child.wait(Deadline::never()));
  // 1: a file changed while it was read, for example a growing log. That is expected.
  if (exit.signal == 0 && exit.code <= 1) return {};
  return unavailable("tar: {}", to_text(exit));
}

}  // namespace

Status Incoming::more(Deadline deadline) {
  pollfd waiting{fd_, POLLIN, 0};
  if (::poll(&waiting, 1, deadline.poll_ms()) <= 0) return timeout("remote: no data from the other end");
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kRequestPiece);
  const ssize_t count = ::read(fd_, buffer_.data() + before, kRequestPiece);
  buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (count > 0 || (count < 0 && errno == EINTR)) return {};
  return unavailable("remote: the other end closed the connection");
}

Result<std::string> Incoming::line(Deadline deadline) {
  std::size_t end = 0;
  while ((end = buffer_.find('\n')) == std::string::npos) {
    if (buffer_.size() > kLongestLine) return corrupt("remote: invalid request");
    STOKER_RETURN_IF_ERROR(more(deadline));
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

Status Incoming::copy(std::uint64_t bytes, File& out) {
  while (bytes > 0) {
    if (buffer_.empty()) STOKER_RETURN_IF_ERROR(more(Deadline::after(kSilence)));
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, buffer_.size()));
    STOKER_RETURN_IF_ERROR(out.write(std::string_view(buffer_).substr(0, count)));
    buffer_.erase(0, count);
    bytes -= count;
  }
  return {};
}

Status Incoming::read(std::span<char> out) {
  const std::size_t buffered = std::min(out.size(), buffer_.size());
  std::memcpy(out.data(), buffer_.data(), buffered);
  buffer_.erase(0, buffered);
  out = out.subspan(buffered);
  while (!out.empty()) {
    const ssize_t count = ::read(fd_, out.data(), out.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return unavailable("remote: the other end closed the connection");
    out = out.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Status enter_folder(const RemoteRequest& request) {
  STOKER_RETURN_IF_ERROR(make_directories(request.folder));
  std::error_code error;
  std::filesystem::current_path(request.folder, error);
  return error ? posix_error(printable(request.folder), error.value()) : Status();
}

Status receive_files(const RemoteRequest& request, Incoming& in) {
  if (request.bytes == 0) return {};
  const IncomingFolder waiting;
  STOKER_RETURN_IF_ERROR(make_directory(waiting.path()));
  const Path tar = waiting.path() / "tar", folder = waiting.path() / "files";
  STOKER_ASSIGN_OR_RETURN(file, File::create_new(tar));
  STOKER_RETURN_IF_ERROR(in.copy(request.bytes, file));
  STOKER_RETURN_IF_ERROR(file.close());
  STOKER_RETURN_IF_ERROR(make_directory(folder));
  NoProgress progress;
  // The user's symbolic links may lead anywhere.
  const auto unpacked =
      stage::unpack(tar, folder, {.links = stage::OutsideLinks::kept, .threads = 2}, progress);
  if (!unpacked.ok()) return unpacked.status();
  return install_files(request, folder);
}

Result<int> run_remote_command(const RemoteRequest& request, const Path& stoker, int in_fd) {
  Command command;
  command.argv = {stoker.string()};
  command.argv.insert(command.argv.end(), request.words.begin(), request.words.end());
  command.environment = current_environment();
  if (!request.host_options.empty())
    command.environment->emplace_back(kHostOptionsVariable, request.host_options);
  command.group = Group::own;
  command.parent_death_signal = SIGTERM;
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn(command));
  std::optional<Deadline> kill_at;
  for (;;) {
    pollfd waiting[] = {{child.pidfd(), POLLIN, 0}, {kill_at ? -1 : in_fd, POLLIN, 0}};
    ::poll(waiting, 2, kill_at ? kill_at->poll_ms(1000) : -1);
    if (const auto exit = child.poll()) return exit->shell_code();
    if (waiting[1].revents != 0) {
      char ignored[256];
      if (::read(in_fd, ignored, sizeof ignored) > 0) continue;
      // The local side is gone.
      ::kill(-child.pid(), SIGINT);
      kill_at = Deadline::after(kEndingGrace);
    }
    if (kill_at && kill_at->passed()) ::kill(-child.pid(), SIGKILL);
  }
}

Status send_run(const RemoteRequest& request) {
  STOKER_ASSIGN_OR_RETURN(run, record::RunFolder::find(request.runs, request.words.front()));
  const Path folder = std::filesystem::absolute(run.folder() / "").lexically_normal().parent_path();
  const std::string name = folder.filename().string();
  std::vector<std::string> words = {"--directory=" + folder.parent_path().string(), "--anchored",
                                    "--no-wildcards"};
  std::vector<std::string> rest = words;
  rest.push_back("--exclude=" + name + "/attempts");
  if (!request.has_checkpoints) rest.push_back("--exclude=" + name + "/checkpoints");
  rest.insert(rest.end(), {"--", name});
  STOKER_RETURN_IF_ERROR(run_tar(rest));
  if (!folder_exists(folder / "attempts")) return {};
  // A user script's log may be anywhere; follow the link.
  words.insert(words.end(), {"--dereference", "--", name + "/attempts"});
  return run_tar(words);
}

}  // namespace stoker::launch
