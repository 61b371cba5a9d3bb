// Files get into their places so:
//   1. the tar is received into a hidden file, and unpacked into a hidden folder beside it
//   2. the list of all names, those of before and those of now, is written
//   3. each file is renamed into its place
//   4. what is not there any more is removed, and the list written again without it
// A crash leaves files that are whole, older ones beside newer ones; sending again puts that right.
#include "launch/remote/serve.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <poll.h>
#include <set>
#include <unistd.h>

#include "base/process.h"
#include "launch/remote/send.h"
#include "record/run_folder.h"
#include "stage/unpack.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSilence = 60s;
constexpr Duration kEndingGrace = 10s;
constexpr std::size_t kLongestLine = std::size_t{16} << 20;
constexpr std::size_t kRequestPiece = std::size_t{256} << 10;

// Removed with all in it, whatever comes.
class Waiting {
 public:
  Waiting() : path_(".stoker-incoming-" + random_name()) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { (void)remove_tree(path_); }
  const Path& path() const { return path_; }

 private:
  Path path_;
};

bool is_below(const std::string& name, const std::string& folder) {
  return folder.empty() || name.starts_with(folder + "/");
}

Status put_in_place(const RemoteRequest& request, const Path& unpacked) {
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
  RETURN_IF_ERROR(write_sent(".", all));
  std::set<Path> made;
  for (const std::string& name : request.files) {
    const Path folder = Path(name).parent_path();
    if (!folder.empty() && made.insert(folder).second) RETURN_IF_ERROR(make_directories(folder));
    RETURN_IF_ERROR(rename_path(unpacked / name, name));
  }
  if (gone.empty()) return {};
  for (const std::string& name : gone) (void)remove_file(name);
  std::erase_if(
      all, [&](const std::string& name) { return std::find(gone.begin(), gone.end(), name) != gone.end(); });
  return write_sent(".", all);
}

// tar(1) onto our standard output; what it says goes to standard error.
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
  OK_OR_RETURN(child, Child::spawn(command));
  OK_OR_RETURN(exit, child.wait(Deadline::never()));
  // 1: a file was changed while it was read, as the log of a run that goes on; that is no news to anybody.
  if (exit.signal == 0 && exit.code <= 1) return {};
  return unavailable("tar: {}", to_text(exit));
}

}  // namespace

Status Incoming::more(Deadline deadline) {
  pollfd waiting{fd_, POLLIN, 0};
  if (::poll(&waiting, 1, deadline.poll_ms()) <= 0)
    return timeout("remote: nothing comes from the other end");
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kRequestPiece);
  const ssize_t count = ::read(fd_, buffer_.data() + before, kRequestPiece);
  buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (count > 0 || (count < 0 && errno == EINTR)) return {};
  return unavailable("remote: the other end has closed the connection");
}

Result<std::string> Incoming::line(Deadline deadline) {
  std::size_t end = 0;
  while ((end = buffer_.find('\n')) == std::string::npos) {
    if (buffer_.size() > kLongestLine) return corrupt("remote: what came is no request of another stoker");
    RETURN_IF_ERROR(more(deadline));
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

Status Incoming::copy(std::uint64_t bytes, File& out) {
  while (bytes > 0) {
    if (buffer_.empty()) RETURN_IF_ERROR(more(Deadline::after(kSilence)));
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, buffer_.size()));
    RETURN_IF_ERROR(out.write(std::string_view(buffer_).substr(0, count)));
    buffer_.erase(0, count);
    bytes -= count;
  }
  return {};
}

Status enter_folder(const RemoteRequest& request) {
  RETURN_IF_ERROR(make_directories(request.folder));
  std::error_code error;
  std::filesystem::current_path(request.folder, error);
  return error ? posix_error(printable(request.folder), error.value()) : Status();
}

Status take_files(const RemoteRequest& request, Incoming& in) {
  if (request.bytes == 0) return {};
  const Waiting waiting;
  RETURN_IF_ERROR(make_directory(waiting.path()));
  const Path tar = waiting.path() / "tar", folder = waiting.path() / "files";
  OK_OR_RETURN(file, File::create_new(tar));
  RETURN_IF_ERROR(in.copy(request.bytes, file));
  RETURN_IF_ERROR(file.close());
  RETURN_IF_ERROR(make_directory(folder));
  NoProgress progress;
  // Links are the user's own, and lead where he wants.
  const auto unpacked =
      stage::unpack(tar, folder, {.links = stage::OutsideLinks::kept, .threads = 2}, progress);
  if (!unpacked.ok()) return unpacked.status();
  return put_in_place(request, folder);
}

Result<int> run_words(const RemoteRequest& request, const Path& stoker, int in_fd) {
  Command command;
  command.argv = {stoker.string()};
  command.argv.insert(command.argv.end(), request.words.begin(), request.words.end());
  command.group = Group::own;
  command.parent_death_signal = SIGTERM;
  OK_OR_RETURN(child, Child::spawn(command));
  std::optional<Deadline> kill_at;
  for (;;) {
    pollfd waiting[] = {{child.pidfd(), POLLIN, 0}, {kill_at ? -1 : in_fd, POLLIN, 0}};
    ::poll(waiting, 2, kill_at ? kill_at->poll_ms(1000) : -1);
    if (const auto exit = child.poll()) return exit->shell_code();
    if (waiting[1].revents != 0) {
      char ignored[256];
      if (::read(in_fd, ignored, sizeof ignored) > 0) continue;
      // Nobody listens any more.
      ::kill(-child.pid(), SIGINT);
      kill_at = Deadline::after(kEndingGrace);
    }
    if (kill_at && kill_at->passed()) ::kill(-child.pid(), SIGKILL);
  }
}

Status send_run(const RemoteRequest& request) {
  OK_OR_RETURN(run, record::RunFolder::find(request.runs, request.words.front()));
  const Path folder = std::filesystem::absolute(run.folder() / "").lexically_normal().parent_path();
  const std::string name = folder.filename().string();
  std::vector<std::string> words = {"--directory=" + folder.parent_path().string(), "--anchored",
                                    "--no-wildcards"};
  std::vector<std::string> rest = words;
  rest.push_back("--exclude=" + name + "/attempts");
  if (!request.has_checkpoints) rest.push_back("--exclude=" + name + "/checkpoints");
  rest.insert(rest.end(), {"--", name});
  RETURN_IF_ERROR(run_tar(rest));
  if (!folder_exists(folder / "attempts")) return {};
  // The log of a batch script lies where the script wants it.
  words.insert(words.end(), {"--dereference", "--", name + "/attempts"});
  return run_tar(words);
}

}  // namespace stoker::launch
