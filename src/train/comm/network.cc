#include "train/comm/network.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stoker::train {

namespace {

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

Result<AddressInfo> look_up(const RendezvousOptions& rendezvous) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(rendezvous.address.c_str(), std::to_string(rendezvous.port).c_str(), &hints, &found);
  if (error != 0) {
    return unavailable("'{}': {} (MASTER_ADDR)", rendezvous.address, gai_strerror(error));
  }
  return AddressInfo(found, &freeaddrinfo);
}

bool is_loopback(const std::string& address) {
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  if (::inet_pton(AF_INET6, address.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return address == "localhost";
}

bool same_host(const sockaddr* a, const sockaddr* b) {
  if (a == nullptr || a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b)->sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr, sizeof(in6_addr)) == 0;
}

}  // namespace

// connect() on a datagram socket sends no packet.
Result<std::string> interface_to_rank0(const RendezvousOptions& rendezvous) {
  STOKER_ASSIGN_OR_RETURN(there, look_up(rendezvous));
  const Socket probe(::socket(there->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage here{};
  socklen_t length = sizeof here;
  if (probe.fd() < 0 || ::connect(probe.fd(), there->ai_addr, there->ai_addrlen) != 0 ||
      ::getsockname(probe.fd(), reinterpret_cast<sockaddr*>(&here), &length) != 0) {
    return posix_error(format("no route to '{}'", rendezvous.address), errno);
  }
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return posix_error("network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (same_host(entry->ifa_addr, reinterpret_cast<const sockaddr*>(&here)))
      return std::string(entry->ifa_name);
  }
  return unavailable("no network interface has the address that reaches '{}'", rendezvous.address);
}

Status check_address(const RendezvousOptions& rendezvous) { return look_up(rendezvous).status(); }

Result<Fd> listen_on_loopback(const RendezvousOptions& rendezvous) {
  if (!is_loopback(rendezvous.address)) return Fd();
  STOKER_ASSIGN_OR_RETURN(here, look_up(rendezvous));
  Fd fd(::socket(here->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;  // the port is reserved by a bound socket, see net::PortReservation
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd.get(), here->ai_addr, here->ai_addrlen) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    if (errno == EADDRINUSE) {
      return unavailable("another process listens on {}:{} (EADDRINUSE, MASTER_PORT)", rendezvous.address,
                         rendezvous.port);
    }
    return posix_error(format("listen on {}:{}", rendezvous.address, rendezvous.port), errno);
  }
  return fd;
}

// Where nothing listens yet, Linux may give connect() the port that it looks for as its own: TCP then
// connects the socket to itself.
bool is_connected_to_itself(int fd) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_length = sizeof here;
  socklen_t there_length = sizeof there;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &here_length) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &there_length) == 0 &&
         here_length == there_length && std::memcmp(&here, &there, here_length) == 0;
}

// c10d's own retry sleeps up to a second between attempts, which would dominate the start of a short job.
// Polling every few milliseconds avoids that.
Status wait_for_rank0(const RendezvousOptions& rendezvous, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(there, look_up(rendezvous));
  RealClock clock;
  for (;;) {
    const Socket knock(::socket(there->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    int error = ECONNREFUSED;
    if (knock.fd() < 0 || ::connect(knock.fd(), there->ai_addr, there->ai_addrlen) != 0) {
      error = errno;
    } else if (!is_connected_to_itself(knock.fd())) {
      return {};
    }
    if (deadline.passed()) {
      return timeout("rank 0 did not open {}:{} within {} (last answer: {})", rendezvous.address,
                     rendezvous.port, rounded_duration(rendezvous.connect_within), std::strerror(error));
    }
    clock.sleep(std::chrono::milliseconds(2));
  }
}

std::string own_ports() {
  std::string ports;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    std::int64_t fd = -1;
    sockaddr_storage here{};
    socklen_t length = sizeof here;
    if (!parse_number(entry.path().filename().string(), &fd) ||
        ::getsockname(static_cast<int>(fd), reinterpret_cast<sockaddr*>(&here), &length) != 0) {
      continue;
    }
    if (here.ss_family == AF_INET) {
      ports += format("{} ", ntohs(reinterpret_cast<const sockaddr_in&>(here).sin_port));
    } else if (here.ss_family == AF_INET6) {
      ports += format("{} ", ntohs(reinterpret_cast<const sockaddr_in6&>(here).sin6_port));
    }
  }
  return ports;
}

}  // namespace stoker::train
