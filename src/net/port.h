// Ports and addresses of this host: a port that is free now and stays ours, and the addresses under which
// other hosts may reach us. Thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace stoker::net {

/// A TCP port kept from everybody else on this host while this object lives. The program it was taken for can
/// still listen on it, if it sets SO_REUSEADDR as PyTorch's store does: the socket here is bound, never
/// listens, and gives its claim up only to such a program.
class PortReservation {
 public:
  PortReservation() = default;
  /// A free port below the range that the kernel hands to outgoing connections (ip_local_port_range), so that
  /// no client takes it between now and its use. The search starts at a place that `seed` decides, so that
  /// two runs rarely probe the same ones. Unavailable when none of 1000 is free.
  static Result<PortReservation> find(std::uint64_t seed);
  /// That port. Unavailable "port 29500: taken by another program on this host" when it is not free.
  static Result<PortReservation> take(std::uint16_t port);

  std::uint16_t port() const { return port_; }

 private:
  PortReservation(Fd fd, std::uint16_t port) : fd_(std::move(fd)), port_(port) {}

  Fd fd_;
  std::uint16_t port_ = 0;
};

/// The first port that the kernel gives to outgoing connections, read from `proc`; 32768 where it cannot be
/// read.
std::uint16_t first_ephemeral_port(const Path& proc = "/proc");

/// This host's name without its domain, as Slurm and people call it.
std::string host_name();
/// Numeric addresses of the interfaces that are up, loopback and link-local ones left out, IPv4 first: what
/// another host may reach. No name is resolved, so nothing waits for DNS.
std::vector<std::string> local_addresses();

}  // namespace stoker::net
