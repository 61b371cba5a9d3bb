// Ports and addresses of this host: a port that is free now and stays ours, and the addresses under which
// other hosts may reach us. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace stoker::net {

/// The ports that a site lets its jobs use, both ends included.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;

  friend bool operator==(const PortRange&, const PortRange&) = default;
};
/// "21000-21999".
std::string to_text(const PortRange& range);
/// Nothing for anything else, or for an empty range.
std::optional<PortRange> parse_port_range(std::string_view text);

/// A TCP port kept from everybody else on this host while this object lives. The program it was taken for can
/// still listen on it, if it sets SO_REUSEADDR as PyTorch's store does: the socket here is bound, never
/// listens, and gives its claim up only to such a program.
class PortReservation {
 public:
  PortReservation() = default;
  /// A free port below the range that the kernel hands to outgoing connections (ip_local_port_range), so that
  /// no client takes it between now and its use. The search starts at a place that `seed` decides, so that
  /// two runs rarely probe the same ones. Unavailable when none of 1000 is free. With `range` only these
  /// count.
  static Result<PortReservation> find(std::uint64_t seed, std::optional<PortRange> range = std::nullopt);
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

/// "10.0.0.1" or "fe80::1": an address that needs no look-up.
bool is_numeric_address(const std::string& text);
/// From now on this process looks for names of hosts in /etc/hosts alone, so that no library of it waits for
/// a DNS that is silent. For a program's main: it is for all its threads. False where the C library knows no
/// such thing.
bool look_names_up_in_files();

/// This host's name without its domain, as Slurm and people call it.
std::string host_name();
/// Numeric addresses of the interfaces that are up, loopback and link-local ones left out, IPv4 first: what
/// another host may reach. No name is resolved, so nothing waits for DNS.
std::vector<std::string> local_addresses();

}  // namespace stoker::net
