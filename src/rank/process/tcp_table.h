// The TCP sockets of this host from /proc/net/tcp: their owners, and unacknowledged data. Used by `stoker
// rank` and by `stoker hello`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "stoker/text.h"

namespace stoker::rank {

/// One socket.
struct TcpSocket {
  std::uint16_t local_port = 0;
  std::string peer;  ///< numeric address; IPv4 also for a mapped address of an IPv6 socket
  std::uint16_t peer_port = 0;
  bool is_connected = false;
  int retransmits = 0;  ///< retransmissions of the oldest packet without an answer
  std::string inode;

  friend bool operator==(const TcpSocket&, const TcpSocket&) = default;
};

/// Parses one line of the table; nothing for its header and other text.
std::optional<TcpSocket> parse_tcp_line(std::string_view line);

/// All sockets in the network namespace of process `pid`, including IPv6. Empty if unreadable.
std::vector<TcpSocket> tcp_sockets(pid_t pid, const Path& proc = "/proc");

/// Whether a process has one of these sockets open.
bool holds_socket(pid_t pid, const std::vector<std::string>& inodes, const Path& proc = "/proc");

/// The peer that leaves data of these processes unacknowledged for longest, after at least `retransmits`
/// retransmissions (4 take at least 3 s); or "". Ignores loopback.
std::string unresponsive_peer(const std::vector<pid_t>& pids, int retransmits, const Path& proc = "/proc");

}  // namespace stoker::rank
