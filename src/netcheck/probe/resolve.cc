#include "netcheck/probe/resolve.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <csignal>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "base/stopwatch.h"

namespace stoker::netcheck {
namespace {

constexpr std::size_t kAtOnce = 32;
constexpr std::size_t kMaxAnswer = 64 * 1024;

void write_line(int fd, const std::string& line) {
  (void)!::write(fd, line.data(), line.size());  // at most a page: a pipe accepts it at once
}

// The output of the child: "address A" lines, "found SECONDS" or "error TEXT", then "reverse SECONDS".
void resolve_in_child(const std::string& name, int fd) {
  const MonoTime start = mono_now();
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &list);
  const double seconds = Seconds(mono_now() - start).count();
  if (error != 0) return write_line(fd, format("error {}\n", ::gai_strerror(error)));
  std::string lines;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      lines += format("address {}\n", text.data());
  }
  write_line(fd, lines + format("found {:.6f}\n", seconds));
  std::array<char, NI_MAXHOST> back{};
  const MonoTime reverse_start = mono_now();
  (void)::getnameinfo(list->ai_addr, list->ai_addrlen, back.data(), back.size(), nullptr, 0, NI_NAMEREQD);
  write_line(fd, format("reverse {:.6f}\n", Seconds(mono_now() - reverse_start).count()));
}

struct LookUp {
  pid_t child = -1;
  Fd answer;
  std::string text;
  MonoTime start;
};

LookUp start(const std::string& name) {
  LookUp one;
  one.start = mono_now();
  auto pipe = Pipe::create();
  if (!pipe.ok()) return one;
  one.child = ::fork();
  if (one.child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGPIPE, SIG_IGN);
    resolve_in_child(name, pipe->write.get());
    ::_exit(0);
  }
  if (one.child > 0) one.answer = std::move(pipe->read);
  return one;
}

void read_some(LookUp& one) {
  std::array<char, 4096> buffer{};
  const ssize_t n = ::read(one.answer.get(), buffer.data(), buffer.size());
  if (n < 0 && errno == EINTR) return;
  if (n <= 0 || one.text.size() > kMaxAnswer) return one.answer.reset();
  one.text.append(buffer.data(), static_cast<std::size_t>(n));
}

ResolvedName finish(const std::string& name, LookUp& one) {
  const bool was_late = static_cast<bool>(one.answer);
  if (one.child > 0) {
    if (was_late) ::kill(one.child, SIGKILL);
    while (::waitpid(one.child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  const double waited = Seconds(mono_now() - one.start).count();
  ResolvedName found{.name = name};
  bool is_done = false;
  bool is_reversed = false;
  for (std::string_view line : split(one.text, '\n')) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const std::string rest(line.substr(space + 1));
    if (line.starts_with("address ") && std::ranges::find(found.addresses, rest) == found.addresses.end())
      found.addresses.push_back(rest);
    if (line.starts_with("error ")) found.error = rest;
    if (line.starts_with("found ")) is_done = parse_number(rest, &found.seconds);
    if (line.starts_with("reverse ")) is_reversed = parse_number(rest, &found.reverse_seconds);
  }
  if (is_done && !is_reversed) found.reverse_seconds = std::max(0.0, waited - found.seconds);
  if (!is_done && found.error.empty()) {
    found.seconds = waited;
    found.error = was_late ? format("no answer within {}",
                                    rounded_duration(std::chrono::duration_cast<Duration>(Seconds(waited))))
                           : "the lookup ended without an answer";
  }
  return found;
}

}  // namespace

std::vector<ResolvedName> resolve(std::span<const std::string> names, Deadline deadline) {
  std::vector<ResolvedName> all;
  while (all.size() < names.size()) {
    const auto batch = names.subspan(all.size(), std::min(kAtOnce, names.size() - all.size()));
    std::vector<LookUp> running;
    for (const std::string& name : batch) running.push_back(start(name));
    for (;;) {
      std::vector<pollfd> waiting;
      std::vector<LookUp*> whose;
      for (LookUp& one : running) {
        if (!one.answer) continue;
        waiting.push_back({one.answer.get(), POLLIN, 0});
        whose.push_back(&one);
      }
      if (waiting.empty() || deadline.passed()) break;
      ::poll(waiting.data(), waiting.size(), deadline.poll_ms(500));
      for (std::size_t i = 0; i < waiting.size(); ++i) {
        if (waiting[i].revents != 0) read_some(*whose[i]);
      }
    }
    for (std::size_t i = 0; i < running.size(); ++i) all.push_back(finish(batch[i], running[i]));
  }
  return all;
}

}  // namespace stoker::netcheck
