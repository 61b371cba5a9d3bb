#include "stage/broadcast/peer_list.h"

#include "base/json/json.h"
#include "stoker/text.h"

namespace stoker::stage {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPeerMark = "stoker-peer";
constexpr std::string_view kPeersMark = "stoker-peers";
constexpr std::string_view kListHeadMark = "stoker-list";
constexpr std::int64_t kMostNodes = 100'000;

bool has_mark(const Json& object, std::string_view mark) {
  const auto found = object.is_object() ? object.find("format") : object.end();
  return object.is_object() && found != object.end() && found->is_string() &&
         found->get<std::string>() == mark;
}

std::vector<std::string> addresses_of(const Json& list) {
  std::vector<std::string> addresses;
  if (!list.is_array()) return addresses;
  for (const Json& one : list) {
    if (one.is_string()) addresses.push_back(one.get<std::string>());
  }
  return addresses;
}

}  // namespace

std::string to_line(const PeerAddress& peer) {
  return json_text(Json{{"format", kPeerMark}, {"node", peer.node}, {"addresses", peer.addresses}}) + "\n";
}

std::optional<PeerAddress> parse_peer_address(std::string_view line) {
  const Json object = parse_json<Json>(line);
  if (!has_mark(object, kPeerMark)) return std::nullopt;
  const auto node = object.find("node");
  if (node == object.end() || !node->is_number_integer()) return std::nullopt;
  const auto number = node->get<std::int64_t>();
  if (number < 0 || number >= kMostNodes) return std::nullopt;
  const auto list = object.find("addresses");
  return PeerAddress{static_cast<int>(number),
                     list == object.end() ? std::vector<std::string>() : addresses_of(*list)};
}

std::string to_line(const PeerList& peers) {
  return json_text(Json{{"format", kPeersMark}, {"secret", peers.secret}, {"nodes", peers.addresses}}) + "\n";
}

std::optional<PeerList> parse_peer_list(std::string_view line) {
  const Json object = parse_json<Json>(line);
  if (!has_mark(object, kPeersMark)) return std::nullopt;
  const auto secret = object.find("secret");
  const auto nodes = object.find("nodes");
  if (secret == object.end() || !secret->is_string() || nodes == object.end() || !nodes->is_array())
    return std::nullopt;
  PeerList peers{.addresses = {}, .secret = secret->get<std::string>()};
  for (const Json& node : *nodes) peers.addresses.push_back(addresses_of(node));
  return peers;
}

std::string to_line(const ListHead& head) {
  return json_text(Json{{"format", kListHeadMark}, {"bytes", head.bytes}, {"hash", head.hash}}) + "\n";
}

std::optional<ListHead> parse_list_head(std::string_view line) {
  const Json object = parse_json<Json>(line);
  if (!has_mark(object, kListHeadMark)) return std::nullopt;
  const auto bytes = object.find("bytes");
  const auto hash = object.find("hash");
  if (bytes == object.end() || !bytes->is_number_integer() || hash == object.end() || !hash->is_string())
    return std::nullopt;
  const auto size = bytes->get<std::int64_t>();
  if (size < 0 || static_cast<std::uint64_t>(size) > kLargestList) return std::nullopt;
  return ListHead{static_cast<std::uint64_t>(size), hash->get<std::string>()};
}

}  // namespace stoker::stage
