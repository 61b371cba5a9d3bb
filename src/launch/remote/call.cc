#include "launch/remote/call.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <unistd.h>

#include "base/process.h"
#include "base/version.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

constexpr int kTickMs = 200;
// The user may be looking for a second factor.
constexpr Duration kGreetingLimit = 5min;
constexpr Duration kGrace = 10s;
constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr std::size_t kMaxHeld = std::size_t{1} << 20;
constexpr int kSshFailed = 255;

// Writes all of it to a file or a terminal. Fails when the reader closed it.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::string last_line(std::string_view text) {
  text = trim(text);
  const std::size_t end = text.rfind('\n');
  return printable(trim(end == std::string_view::npos ? text : text.substr(end + 1)));
}

}  // namespace

class RemoteCall::Link {
 public:
  Link(RemoteHost host, std::function<bool()> should_stop)
      : host_(std::move(host)), should_stop_(std::move(should_stop)) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() {
    if (!ssh_ || ssh_->poll()) return;
    (void)ssh_->signal(SIGTERM);
    (void)ssh_->wait(Deadline::after(kGrace));
  }

  Status connect() {
    const std::string nonce = random_name(16);
    STOKER_ASSIGN_OR_RETURN(in, Pipe::create());
    STOKER_ASSIGN_OR_RETURN(out, Pipe::create());
    STOKER_ASSIGN_OR_RETURN(err, Pipe::create());
    Command command;
    command.argv = ssh_arguments(host_, nonce);
    command.stdin_fd = in.read.get();
    command.stdout_fd = out.write.get();
    command.stderr_fd = err.write.get();
    command.parent_death_signal = SIGTERM;
    auto child = Child::spawn(command);
    if (!child.ok() && child.error().code() == Code::not_found)
      return unavailable("ssh: program not found in PATH");
    if (!child.ok()) return child.status();
    ssh_.emplace(std::move(*child));
    to_ = std::move(in.write);
    from_ = std::move(out.read);
    errors_ = std::move(err.read);
    // End of file needs all other copies to be closed.
    in.read.reset();
    out.write.reset();
    err.write.reset();
    ::fcntl(to_.get(), F_SETFL, O_NONBLOCK);
    return greet(nonce);
  }

  Result<int> run(const RemoteRequest& request, const File* tar, int out_fd) {
    out_fd_ = out_fd;
    unsent_ = to_line(request);
    tar_ = tar;
    tar_left_ = request.bytes;
    // Output after the greeting belongs to the command.
    if (!write_all(out_fd_, held_out_)) handle_closed_reader();
    while (is_open()) {
      poll_once();
      if (should_stop_() && to_) end_input();
      if (stopping_ && stopping_->passed()) break;
    }
    if (errors_) poll_once();
    if (is_reader_gone_) return 128 + SIGPIPE;
    if (should_stop_()) return cancelled("{}: interrupted", host_.host);
    STOKER_ASSIGN_OR_RETURN(exit, ssh_->wait(Deadline::after(kGrace)));
    if (exit.signal != 0 || exit.code == kSshFailed)
      return unavailable("{}: connection lost (ssh: {})", host_.host, to_text(exit));
    return exit.code;
  }

 private:
  // Waits for the remote version.
  Status greet(const std::string& nonce) {
    const Deadline deadline = Deadline::after(kGreetingLimit);
    while (from_) {
      poll_once();
      std::size_t end = 0;
      while ((end = held_out_.find('\n')) != std::string::npos) {
        const auto found = parse_greeting(std::string_view(held_out_).substr(0, end), nonce);
        held_out_.erase(0, end + 1);
        if (found) return check_version(*found);
      }
      if (should_stop_()) return cancelled("{}: interrupted", host_.host);
      if (deadline.passed() || held_out_.size() > kMaxHeld)
        return unavailable("{}: no valid answer from stoker", host_.host);
    }
    return explain_end();
  }

  Status check_version(const std::string& there) {
    is_greeted_ = true;
    held_errors_.clear();  // a login banner
    if (there == version()) return {};
    return invalid("{}: stoker {} on the host, {} here", host_.host, printable(there), version())
        .cure("install the same version on the host, or: --host-program PATH");
  }

  // ssh exited before the greeting.
  Status explain_end() {
    while (is_open()) poll_once();
    poll_once();
    STOKER_ASSIGN_OR_RETURN(exit, ssh_->wait(Deadline::after(kGrace)));
    const std::string words = last_line(held_errors_);
    if (exit.signal == 0 && (exit.code == 126 || exit.code == 127)) {
      return unavailable("{}: {} is not in the PATH of ssh commands{}", host_.host, printable(host_.program),
                         words.empty() ? "" : format(" ({})", words))
          .cure("--host-program PATH      (its path on the host)");
    }
    if (exit.signal == 0 && exit.code != kSshFailed) {
      return unavailable("{}: {} on the host does not support --host ({}){}", host_.host,
                         printable(host_.program), to_text(exit), words.empty() ? "" : ": " + words)
          .cure("install stoker {} on the host, or: --host-program PATH", version());
    }
    return unavailable("{}: {}", host_.host, words.empty() ? format("ssh: {}", to_text(exit)) : words)
        .cure("ssh {} true", shell_quote(host_.host));
  }

  // Polls once and handles all ready descriptors.
  void poll_once() {
    fill();
    pollfd waiting[] = {{from_ ? from_.get() : -1, POLLIN, 0},
                        {errors_ ? errors_.get() : -1, POLLIN, 0},
                        {to_ && !unsent_.empty() ? to_.get() : -1, POLLOUT, 0}};
    if (::poll(waiting, 3, kTickMs) <= 0) return;
    if (waiting[0].revents != 0) read_from(from_, held_out_, out_fd_);
    if (waiting[1].revents != 0) read_from(errors_, held_errors_, is_greeted_ ? 2 : -1);
    if (waiting[2].revents != 0) send();
  }

  // Holds the data back while there is no output.
  void read_from(Fd& fd, std::string& held, int to) {
    std::string piece(kPiece, '\0');
    const ssize_t count = ::read(fd.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) return;
    if (count <= 0) return fd.reset();
    piece.resize(static_cast<std::size_t>(count));
    if (to < 0) {
      held += piece;
      if (held.size() > kMaxHeld) held.erase(0, held.size() - kMaxHeld);
    } else if (!write_all(to, piece)) {
      handle_closed_reader();
    }
  }

  // A shared ssh connection (ControlPersist) keeps standard error open.
  bool is_open() { return from_ || (errors_ && !ssh_->poll()); }

  // The reader of our output is gone.
  void handle_closed_reader() {
    is_reader_gone_ = true;
    end_input();
  }

  void fill() {
    if (!to_ || !unsent_.empty() || tar_left_ == 0) return;
    unsent_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(tar_left_, kPiece)));
    const Status read =
        tar_->read_at(tar_at_, std::as_writable_bytes(std::span(unsent_.data(), unsent_.size())));
    if (!read.ok()) return end_input();  // an unnamed file of this process: it cannot fail
    tar_at_ += unsent_.size();
    tar_left_ -= unsent_.size();
  }

  void send() {
    const ssize_t count = ::write(to_.get(), unsent_.data(), unsent_.size());
    if (count > 0) unsent_.erase(0, static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR && errno != EAGAIN) to_.reset();  // ssh exited and prints the reason
  }

  // End of input: the remote side interrupts its command.
  void end_input() {
    to_.reset();
    unsent_.clear();
    tar_left_ = 0;
    if (!stopping_) stopping_ = Deadline::after(kGrace);
  }

  const RemoteHost host_;
  const std::function<bool()> should_stop_;
  std::optional<Child> ssh_;
  Fd to_;
  Fd from_;
  Fd errors_;
  std::string held_out_;
  std::string held_errors_;
  std::string unsent_;
  const File* tar_ = nullptr;
  std::uint64_t tar_at_ = 0;
  std::uint64_t tar_left_ = 0;
  int out_fd_ = -1;
  bool is_greeted_ = false;
  bool is_reader_gone_ = false;
  std::optional<Deadline> stopping_;
};

RemoteCall::RemoteCall(std::unique_ptr<Link> link) : link_(std::move(link)) {}
RemoteCall::RemoteCall(RemoteCall&&) noexcept = default;
RemoteCall& RemoteCall::operator=(RemoteCall&&) noexcept = default;
RemoteCall::~RemoteCall() = default;

Result<RemoteCall> RemoteCall::open(const RemoteHost& host, std::function<bool()> should_stop) {
  // A write to an exited ssh is reported as a broken connection.
  ::signal(SIGPIPE, SIG_IGN);
  auto link = std::make_unique<Link>(host, std::move(should_stop));
  STOKER_RETURN_IF_ERROR(link->connect());
  return RemoteCall(std::move(link));
}

Result<int> RemoteCall::run(const RemoteRequest& request, const File* tar, int out_fd) {
  return link_->run(request, tar, out_fd);
}

}  // namespace stoker::launch
