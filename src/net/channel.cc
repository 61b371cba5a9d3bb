#include "net/channel.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/port.h"

namespace stoker::net {
namespace {

constexpr std::size_t kMaxUnsent = 1024 * 1024;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Result<SocketAddress> parse_address(std::string_view text) {
  const Status bad =
      invalid("address '{}': expected the form 10.0.0.1:4000 or [fe80::1]:4000", printable(text));
  const std::size_t colon = text.rfind(':');
  std::int64_t port = 0;
  if (colon == std::string_view::npos || !parse_number(text.substr(colon + 1), &port) || port < 1 ||
      port > 65535)
    return bad;
  std::string host(text.substr(0, colon));
  SocketAddress address;
  if (host.starts_with('[') && host.ends_with(']')) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<std::uint16_t>(port));
    address.size = sizeof *v6;
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6->sin6_addr) != 1) return bad;
    return address;
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(static_cast<std::uint16_t>(port));
  address.size = sizeof *v4;
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) != 1) return bad;
  return address;
}

std::string numeric(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* address =
      storage.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(storage).sin_addr);
  return ::inet_ntop(storage.ss_family, address, text, sizeof text) == nullptr ? "" : text;
}

// Detects a dead host after about 15 s instead of hours, and sends small messages at once.
void tune(int fd) {
  const auto set = [fd](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 3);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 15000);
}

}  // namespace

Result<PendingConnection> PendingConnection::start(std::string_view address) {
  STOKER_ASSIGN_OR_RETURN(target, parse_address(address));
  Fd fd(::socket(target.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return posix_error(address, errno);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&target.storage), target.size) != 0 &&
      errno != EINPROGRESS) {
    return posix_error(address, errno);
  }
  return PendingConnection(std::move(fd), std::string(address));
}

Result<Channel> PendingConnection::finish() && {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return posix_error(address_, error);
  tune(fd_.get());
  return Channel(std::move(fd_));
}

Result<Channel> Channel::connect(std::string_view address, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(dial, PendingConnection::start(address));
  pollfd waiting{dial.fd(), POLLOUT, 0};
  while (::poll(&waiting, 1, deadline.poll_ms()) <= 0) {
    if (deadline.passed()) return timeout("{}: does not answer", address);
  }
  return std::move(dial).finish();
}

Result<Channel> Channel::connect_any(const std::vector<std::string>& addresses, Deadline deadline) {
  // An earlier address in the list may answer slightly later: wait for it, so that the choice is stable.
  constexpr std::chrono::milliseconds kGrace{100};
  std::vector<std::optional<PendingConnection>> dials(addresses.size());
  std::vector<std::string> reasons(addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    auto dial = PendingConnection::start(addresses[i]);
    if (dial.ok()) dials[i] = std::move(*dial);
    if (!dial.ok()) reasons[i] = dial.status().message();
  }
  std::optional<Channel> best;
  for (;;) {
    std::vector<pollfd> waiting;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < dials.size(); ++i) {
      if (!dials[i]) continue;
      waiting.push_back({dials[i]->fd(), POLLOUT, 0});
      which.push_back(i);
    }
    if (waiting.empty() || deadline.passed()) break;
    ::poll(waiting.data(), waiting.size(), deadline.poll_ms());
    for (std::size_t k = 0; k < waiting.size(); ++k) {
      if (waiting[k].revents == 0) continue;
      auto channel = std::move(*dials[which[k]]).finish();
      dials[which[k]].reset();
      if (!channel.ok()) {
        reasons[which[k]] = channel.status().message();
        continue;
      }
      best = std::move(*channel);
      // From here on only earlier addresses in the list can win.
      dials.resize(which[k]);
      deadline = Deadline::at(std::min(deadline.time(), Deadline::after(kGrace).time()));
      break;
    }
  }
  if (best) return std::move(*best);
  for (std::size_t i = 0; i < dials.size(); ++i) {
    if (dials[i]) reasons[i] = format("{}: does not answer", addresses[i]);
  }
  return unavailable("cannot reach the run: {}",
                     reasons.empty() ? "it has no address" : ::stoker::join(reasons, "; "));
}

std::string Channel::local_address() const {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  return ::getsockname(fd(), reinterpret_cast<sockaddr*>(&storage), &size) == 0 ? numeric(storage) : "";
}

std::string Channel::peer_address() const {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  return ::getpeername(fd(), reinterpret_cast<sockaddr*>(&storage), &size) == 0 ? numeric(storage) : "";
}

Status Channel::send(const ControlMessage& message) {
  if (closed_) return unavailable("connection: closed by the peer");
  if (unsent_.size() > kMaxUnsent) return unavailable("connection: the peer does not receive");
  unsent_ += encode(message);
  return flush();
}

Status Channel::flush() {
  while (!unsent_.empty()) {
    const ssize_t n = ::send(fd_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      unsent_.erase(0, static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return {};
    } else if (errno != EINTR) {
      closed_ = true;
      return posix_error("connection", errno);
    }
  }
  return {};
}

Result<std::vector<ControlMessage>> Channel::receive() {
  char buffer[16384];
  while (!closed_) {
    const ssize_t n = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0) {
      parser_.feed(std::string_view(buffer, static_cast<std::size_t>(n)));
      if (static_cast<std::size_t>(n) < sizeof buffer) break;  // the next poll returns the rest
    } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      closed_ = true;
    } else if (errno != EINTR) {
      break;
    }
  }
  std::vector<ControlMessage> messages;
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(next, parser_.next());
    if (!next) return messages;
    messages.push_back(std::move(*next));
  }
}

Result<Listener> Listener::open(ListenScope reach) {
  Listener listener;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(reach == ListenScope::loopback ? INADDR_LOOPBACK : INADDR_ANY);
  listener.fd_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (!listener.fd_ || ::bind(listener.fd_.get(), raw, size) != 0 ||
      ::listen(listener.fd_.get(), 1024) != 0 || ::getsockname(listener.fd_.get(), raw, &size) != 0) {
    return posix_error("listen for the ranks", errno);
  }
  const int port = ntohs(address.sin_port);
  if (reach == ListenScope::loopback) {
    listener.addresses_ = {format("127.0.0.1:{}", port)};
    return listener;
  }
  for (const std::string& host : local_addresses()) {
    if (host.find(':') == std::string::npos) listener.addresses_.push_back(format("{}:{}", host, port));
  }
  if (listener.addresses_.empty()) return unavailable("listen for the ranks: no network interface is up");
  return listener;
}

Fd Listener::accept() {
  Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) tune(fd.get());
  return fd;
}

}  // namespace stoker::net
