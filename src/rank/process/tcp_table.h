// The TCP sockets of this host as /proc/net/tcp shows them: whose they are, and which of them send what
// nobody acknowledges. Used by a rank's watch and by `stoker hello`. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/text.h"

namespace stoker::rank {

/// One socket.
struct TcpSocket {
  std::uint16_t local_port = 0;
  std::string peer;  ///< numeric address; an IPv4 one also where the socket is of IPv6
  std::uint16_t peer_port = 0;
  bool is_connected = false;
  int retransmits = 0;  ///< how often the oldest packet has been sent again, without an answer
  std::string inode;

  friend bool operator==(const TcpSocket&, const TcpSocket&) = default;
};

/// Reads one line of the table; nothing for its header and for what is no such line.
std::optional<TcpSocket> parse_tcp_line(std::string_view line);

/// All sockets of the network namespace of process `pid`, IPv6 too. Empty where they cannot be read.
std::vector<TcpSocket> tcp_sockets(pid_t pid, const Path& proc = "/proc");

/// Whether a process has one of these sockets open.
bool holds_socket(pid_t pid, const std::vector<std::string>& inodes, const Path& proc = "/proc");

/// The peer that takes longest to acknowledge what one of these processes has sent it, if it was sent again
/// at least `retransmits` times (4 are 3 s at least); or "". Loopback does not count.
std::string silent_peer(const std::vector<pid_t>& pids, int retransmits, const Path& proc = "/proc");

}  // namespace stoker::rank
