#include "rank/process/tcp_table.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <netinet/in.h>

#include "base/file.h"

namespace stoker::rank {
namespace {

constexpr std::string_view kEstablished = "01";
constexpr std::size_t kV4Digits = 8;
constexpr std::size_t kV6Digits = 32;

bool parse_hex(std::string_view text, std::uint32_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out, 16);
  return error == std::errc() && end == text.data() + text.size();
}

// "0301010A" is 10.1.1.3: 32-bit words in host byte order.
std::string parse_address(std::string_view digits) {
  if (digits.size() != kV4Digits && digits.size() != kV6Digits) return "";
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < digits.size() / kV4Digits; ++i) {
    if (!parse_hex(digits.substr(i * kV4Digits, kV4Digits), &words[i])) return "";
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  in6_addr v6{};
  std::memcpy(&v6, words.data(), sizeof v6);
  const bool is_v4 = digits.size() == kV4Digits;
  const bool is_mapped = !is_v4 && IN6_IS_ADDR_V4MAPPED(&v6);
  const void* bytes = is_v4       ? static_cast<const void*>(words.data())
                      : is_mapped ? static_cast<const void*>(&words[3])
                                  : static_cast<const void*>(&v6);
  const int family = is_v4 || is_mapped ? AF_INET : AF_INET6;
  return ::inet_ntop(family, bytes, text.data(), text.size()) == nullptr ? "" : text.data();
}

bool split_end(std::string_view text, std::string_view* address, std::uint16_t* port) {
  const std::size_t colon = text.rfind(':');
  std::uint32_t number = 0;
  if (colon == std::string_view::npos || !parse_hex(text.substr(colon + 1), &number) || number > 65535)
    return false;
  *address = text.substr(0, colon);
  *port = static_cast<std::uint16_t>(number);
  return true;
}

}  // namespace

// "sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode ..."
std::optional<TcpSocket> parse_tcp_line(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::string_view field : split(line, ' ')) {
    if (!field.empty()) fields.push_back(field);
  }
  if (fields.size() < 10) return std::nullopt;
  TcpSocket socket;
  std::string_view own;
  std::string_view peer;
  std::uint32_t retransmits = 0;
  if (!split_end(fields[1], &own, &socket.local_port) || !split_end(fields[2], &peer, &socket.peer_port) ||
      !parse_hex(fields[6], &retransmits))
    return std::nullopt;
  socket.peer = parse_address(peer);
  socket.is_connected = fields[3] == kEstablished;
  socket.retransmits = static_cast<int>(std::min(retransmits, 1000U));
  socket.inode = fields[9];
  return socket;
}

std::vector<TcpSocket> tcp_sockets(pid_t pid, const Path& proc) {
  std::vector<TcpSocket> sockets;
  for (const char* table : {"net/tcp", "net/tcp6"}) {
    const auto text = read_pseudo_file(proc / std::to_string(pid) / table);
    if (!text.ok()) continue;
    for (std::string_view line : split(*text, '\n')) {
      if (auto socket = parse_tcp_line(line)) sockets.push_back(std::move(*socket));
    }
  }
  return sockets;
}

bool holds_socket(pid_t pid, const std::vector<std::string>& inodes, const Path& proc) {
  std::error_code error;
  std::filesystem::directory_iterator it(proc / std::to_string(pid) / "fd", error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    std::error_code unreadable;
    const std::string target = std::filesystem::read_symlink(it->path(), unreadable).string();
    // "socket:[12345]"
    if (target.starts_with("socket:[") &&
        std::ranges::find(inodes, target.substr(8, target.size() - 9)) != inodes.end())
      return true;
  }
  return false;
}

std::string unresponsive_peer(const std::vector<pid_t>& pids, int retransmits, const Path& proc) {
  if (pids.empty()) return "";
  std::vector<TcpSocket> sockets = tcp_sockets(pids.front(), proc);
  std::erase_if(sockets, [&](const TcpSocket& socket) {
    return !socket.is_connected || socket.retransmits < retransmits || socket.peer.empty() ||
           socket.peer.starts_with("127.") || socket.peer == "::1";
  });
  std::ranges::sort(sockets, std::greater(), &TcpSocket::retransmits);
  for (const TcpSocket& socket : sockets) {
    for (const pid_t pid : pids) {
      if (holds_socket(pid, {socket.inode}, proc)) return socket.peer;
    }
  }
  return "";
}

}  // namespace stoker::rank
