#include "transfer/ssh_link.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace stoker::transfer {
namespace {

using namespace std::chrono_literals;

constexpr int kTickMs = 200;
constexpr Duration kGrace = 10s;
// A slow disk may take long to write or to read what was requested.
constexpr Duration kSilence = 15min;
constexpr int kPipeBytes = 1 << 20;
constexpr std::size_t kReadPiece = std::size_t{256} << 10;
constexpr std::size_t kMaxErrors = std::size_t{64} << 10;
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

std::string last_line_of(std::string_view text) {
  text = trim(text);
  const std::size_t end = text.rfind('\n');
  return printable(trim(end == std::string_view::npos ? text : text.substr(end + 1)));
}

}  // namespace

SshLink::~SshLink() {
  to_.reset();
  from_.reset();
  if (!ssh_) return;
  if (ssh_->wait(Deadline::after(should_stop_() ? Duration::zero() : kGrace)).ok()) return;
  (void)ssh_->signal(SIGTERM);
  (void)ssh_->wait(Deadline::after(kGrace));
}

Status SshLink::start(const std::vector<std::string>& arguments) {
  STOKER_ASSIGN_OR_RETURN(in, Pipe::create());
  STOKER_ASSIGN_OR_RETURN(out, Pipe::create());
  STOKER_ASSIGN_OR_RETURN(err, Pipe::create());
  // Fewer switches between the processes; the default size works too.
  (void)::fcntl(in.write.get(), F_SETPIPE_SZ, kPipeBytes);
  (void)::fcntl(out.read.get(), F_SETPIPE_SZ, kPipeBytes);
  Command command{.argv = arguments, .environment = {}, .directory = {}};
  command.stdin_fd = in.read.get();
  command.stdout_fd = out.write.get();
  command.stderr_fd = err.write.get();
  auto child = Child::spawn(command);
  if (!child.ok() && child.status().code() == Code::not_found)
    return unavailable("ssh: program not found in PATH");
  if (!child.ok()) return child.status();
  ssh_.emplace(std::move(*child));
  to_ = std::move(in.write);
  from_ = std::move(out.read);
  errors_ = std::move(err.read);
  ::fcntl(to_.get(), F_SETFL, O_NONBLOCK);
  return {};
}

Status SshLink::send(std::string_view bytes) {
  Deadline deadline = Deadline::after(kSilence);
  while (!bytes.empty()) {
    if (!to_ || !from_) return ended();
    const ssize_t count = ::write(to_.get(), bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      deadline = Deadline::after(kSilence);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) {
      to_.reset();  // an answer, with the reason, may still come
      return {};
    }
    STOKER_RETURN_IF_ERROR(poll_once(true, deadline));
  }
  return {};
}

Result<std::string> SshLink::line(Deadline deadline) {
  std::size_t end = 0;
  while ((end = received_.find('\n')) == std::string::npos) {
    if (received_.size() > kLongestLine) return unavailable("{}: no valid answer", host_);
    if (!from_) return ended();
    STOKER_RETURN_IF_ERROR(poll_once(false, deadline));
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  if (!trim(line).empty()) last_line_ = line;
  return line;
}

Status SshLink::receive(std::span<char> out) {
  const std::size_t buffered = std::min(out.size(), received_.size());
  std::memcpy(out.data(), received_.data(), buffered);
  received_.erase(0, buffered);
  out = out.subspan(buffered);
  Deadline deadline = Deadline::after(kSilence);
  while (!out.empty()) {
    if (!from_) return ended();
    pollfd ready{from_.get(), POLLIN, 0};
    if (::poll(&ready, 1, 0) <= 0) {
      STOKER_RETURN_IF_ERROR(poll_once(false, deadline));
      const std::size_t more = std::min(out.size(), received_.size());
      std::memcpy(out.data(), received_.data(), more);
      received_.erase(0, more);
      out = out.subspan(more);
      continue;
    }
    const ssize_t count = ::read(from_.get(), out.data(), out.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      from_.reset();
      continue;
    }
    out = out.subspan(static_cast<std::size_t>(count));
    deadline = Deadline::after(kSilence);
  }
  return {};
}

// Waits until bytes arrive or, when sending, can be written.
Status SshLink::poll_once(bool is_sending, Deadline deadline) {
  if (should_stop_()) return cancelled("{}: interrupted", host_);
  if (deadline.passed()) return timeout("{}: no answer", host_);
  pollfd waiting[] = {{from_ ? from_.get() : -1, POLLIN, 0},
                      {errors_ ? errors_.get() : -1, POLLIN, 0},
                      {is_sending && to_ ? to_.get() : -1, POLLOUT, 0}};
  if (::poll(waiting, 3, kTickMs) <= 0) return {};
  if (waiting[0].revents != 0 && !read_into(from_, received_)) from_.reset();
  if (waiting[1].revents != 0) {
    if (!read_into(errors_, error_text_)) errors_.reset();
    if (error_text_.size() > kMaxErrors) error_text_.erase(0, error_text_.size() - kMaxErrors);
  }
  return {};
}

bool SshLink::read_into(Fd& fd, std::string& buffer) {
  const std::size_t before = buffer.size();
  buffer.resize(before + kReadPiece);
  const ssize_t count = ::read(fd.get(), buffer.data() + before, kReadPiece);
  buffer.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return count > 0 || (count < 0 && errno == EINTR);
}

Status SshLink::ended() {
  if (should_stop_()) return cancelled("{}: interrupted", host_);
  to_.reset();
  const auto exit = ssh_->wait(Deadline::after(kGrace));
  // The rest of ssh's messages. A shared connection keeps the pipe open.
  pollfd waiting{errors_ ? errors_.get() : -1, POLLIN, 0};
  while (errors_ && ::poll(&waiting, 1, 0) > 0 && read_into(errors_, error_text_)) {
  }
  const std::string words = last_line_of(error_text_);
  if (!words.empty()) return unavailable("{}: {}", host_, words);
  if (!last_line_.empty() && !exit.ok()) return unavailable("{}: connection lost", host_);
  return unavailable("{}: connection lost{}", host_, exit.ok() ? format(" (ssh: {})", to_text(*exit)) : "");
}

std::string SshLink::last_output() const {
  const std::string words = last_line_of(error_text_);
  return words.empty() ? printable(trim(last_line_)) : words;
}

}  // namespace stoker::transfer
