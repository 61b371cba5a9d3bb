#include "stage/broadcast/swarm_message.h"

#include <algorithm>

namespace stoker::stage {
namespace {

constexpr std::size_t kLongestPlan = 128;

void put(std::vector<std::byte>& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

// REQUIRES: enough bytes.
std::uint64_t take(std::span<const std::byte>& bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value |= std::uint64_t{std::to_integer<std::uint8_t>(bytes[i])} << (8 * i);
  bytes = bytes.subspan(count);
  return value;
}

Status bad_message(std::string_view what) { return corrupt("a peer sent {}", what); }

}  // namespace

std::vector<std::byte> encode_hello(const SwarmHello& hello) {
  std::vector<std::byte> out;
  put(out, static_cast<std::uint8_t>(hello.role), 1);
  put(out, hello.node, 4);
  std::ranges::transform(hello.plan, std::back_inserter(out),
                         [](char c) { return static_cast<std::byte>(c); });
  return out;
}

Result<SwarmHello> parse_hello(std::span<const std::byte> bytes) {
  if (bytes.size() < 5 || bytes.size() > 5 + kLongestPlan) return bad_message("a hello of wrong length");
  const auto role = static_cast<SwarmRole>(take(bytes, 1));
  if (role != SwarmRole::pieces && role != SwarmRole::queue) return bad_message("a hello of unknown role");
  SwarmHello hello{.role = role, .node = static_cast<std::uint32_t>(take(bytes, 4)), .plan = {}};
  hello.plan.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return hello;
}

std::vector<std::byte> encode_ranges(std::span<const PieceRange> ranges) {
  std::vector<std::byte> out;
  for (const PieceRange& range : ranges) {
    put(out, range.first, 4);
    put(out, range.count, 4);
  }
  return out;
}

Result<std::vector<PieceRange>> parse_ranges(std::span<const std::byte> bytes, std::uint32_t pieces) {
  if (bytes.size() % 8 != 0) return bad_message("half a range of pieces");
  std::vector<PieceRange> ranges;
  while (!bytes.empty()) {
    const auto first = static_cast<std::uint32_t>(take(bytes, 4));
    const auto count = static_cast<std::uint32_t>(take(bytes, 4));
    if (first > pieces || count > pieces - first)
      return bad_message("a piece that the dataset does not have");
    ranges.push_back({first, count});
  }
  return ranges;
}

std::vector<std::byte> encode_piece(std::uint32_t piece) {
  std::vector<std::byte> out;
  put(out, piece, 4);
  return out;
}

Result<std::uint32_t> parse_piece(std::span<const std::byte> bytes, std::uint32_t pieces) {
  if (bytes.size() != 4) return bad_message("a message of wrong length");
  const auto piece = static_cast<std::uint32_t>(take(bytes, 4));
  if (piece >= pieces) return bad_message("a piece that the dataset does not have");
  return piece;
}

std::vector<std::byte> encode_data_header(const PieceData& data) {
  std::vector<std::byte> out;
  put(out, data.piece, 4);
  put(out, data.offset, 8);
  return out;
}

Result<PieceData> parse_data_header(std::span<const std::byte> bytes, std::uint32_t pieces) {
  if (bytes.size() < kDataHeader) return bad_message("data without its header");
  PieceData data;
  data.piece = static_cast<std::uint32_t>(take(bytes, 4));
  data.offset = take(bytes, 8);
  if (data.piece >= pieces) return bad_message("a piece that the dataset does not have");
  return data;
}

}  // namespace stoker::stage
