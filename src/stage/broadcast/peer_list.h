// How the nodes of a job find each other for a broadcast: each sends its addresses to the run that started
// it, and gets all of them; the first one also sends what it lists. One line of JSON each. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::stage {

/// From a node: where its SwarmServer listens.
struct PeerAddress {
  int node = 0;
  std::vector<std::string> addresses;
};
/// With a newline.
std::string to_line(const PeerAddress& peer);
/// Nothing for any other line.
std::optional<PeerAddress> parse_peer_address(std::string_view line);

/// To each node: the addresses of all, by number, and the secret of the job.
struct PeerList {
  std::vector<std::vector<std::string>> addresses;  ///< empty: the node does not take part
  std::string secret;
};
/// With a newline.
std::string to_line(const PeerList& peers);
/// Nothing for any other line.
std::optional<PeerList> parse_peer_list(std::string_view line);

/// Bytes of a list of staged files at most.
constexpr std::uint64_t kLargestList = std::uint64_t{1} << 32;

/// From the first node by way of the run to all: which list of staged files they exchange.
struct ListHead {
  std::uint64_t bytes = 0;  ///< of the list; 0: each node stages alone
  std::string hash;         ///< its SHA-256 in hexadecimal digits
};
/// With a newline.
std::string to_line(const ListHead& head);
/// Nothing for any other line.
std::optional<ListHead> parse_list_head(std::string_view line);

}  // namespace stoker::stage
