// Ports and addresses of this host: reservation of a free port, and the addresses at which other hosts can
// connect. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::net {

/// The port range of a site, inclusive.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;

  friend bool operator==(const PortRange&, const PortRange&) = default;
};
/// "21000-21999".
std::string to_text(const PortRange& range);
/// Nullopt for an invalid or empty range.
std::optional<PortRange> parse_port_range(std::string_view text);

/// Reserves a TCP port on this host for its lifetime. The socket is bound but never listens. A program that
/// sets SO_REUSEADDR, like PyTorch's store, can still listen on the port; other programs cannot.
class PortReservation {
 public:
  PortReservation() = default;
  /// A free port below the ephemeral range (ip_local_port_range), so that no client connection uses it
  /// meanwhile. `seed` determines where the search begins, so that concurrent runs rarely probe the same
  /// ports. Unavailable if 1000 ports are in use. `range` restricts the search.
  static Result<PortReservation> find(std::uint64_t seed, std::optional<PortRange> range = std::nullopt);
  /// Reserves this port. Unavailable "port 29500: in use by another program on this host" if it is in use.
  static Result<PortReservation> reserve(std::uint16_t port);

  std::uint16_t port() const { return port_; }

 private:
  PortReservation(Fd fd, std::uint16_t port) : fd_(std::move(fd)), port_(port) {}

  Fd fd_;
  std::uint16_t port_ = 0;
};

/// The first port of the ephemeral range, read from `proc`; 32768 if unreadable.
std::uint16_t first_ephemeral_port(const Path& proc = "/proc");

/// "10.0.0.1" or "fe80::1": an address that needs no name resolution.
bool is_numeric_address(const std::string& text);
/// Makes this process resolve host names from /etc/hosts only, so that no library waits for an unresponsive
/// DNS server. Affects all threads: call it in main. False if the C library does not support it.
bool resolve_hosts_from_files_only();

/// Short host name without the domain, as in Slurm.
std::string host_name();
/// Numeric addresses of interfaces that are up, IPv4 first, without loopback and link-local addresses.
/// Resolves no names.
std::vector<std::string> local_addresses();

}  // namespace stoker::net
