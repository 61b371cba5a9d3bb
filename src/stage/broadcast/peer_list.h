// How the nodes of a job find each other for a broadcast: each sends its addresses to the run that started
// it, and gets all of them. One line of JSON each. Values.
#pragma once

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

}  // namespace stoker::stage
