// The messages of nodes in a swarm, as frames of a SecureChannel. Peers are processes of the same job, but
// may have a different version or be damaged, so the parser trusts nothing. Layout:
// docs/formats/broadcast.md. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::stage {

/// Kinds of frames. The numbers are part of the format.
enum class SwarmKind : std::uint8_t {
  proof = 0,     ///< of the channel itself
  hello = 1,     ///< first, from the end that connected
  welcome = 2,   ///< the answer; without it the connection is closed
  have = 3,      ///< the sender has these pieces
  request = 4,   ///< of a piece
  data = 5,      ///< a part of a requested piece
  refuse = 6,    ///< the piece is not sent
  joined = 7,    ///< to the reading queue: all pieces of the sender were named
  unwanted = 8,  ///< the sender never reads these pieces
  ask = 9,       ///< the sender can read one more piece
  misses = 10,   ///< the sender knows no node with the piece
  failed = 11,   ///< the sender could not read the piece
  grant = 12,    ///< read this piece
};

/// What a connection is for.
enum class SwarmRole : std::uint8_t { pieces = 1, queue = 2 };

struct SwarmHello {
  SwarmRole role = SwarmRole::pieces;
  std::uint32_t node = 0;
  std::string plan;  ///< identifies the dataset's version and its pieces: both ends must have the same
};

/// Consecutive pieces.
struct PieceRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  bool operator==(const PieceRange&) const = default;
};

/// Header of a data frame; the bytes follow it.
struct PieceData {
  std::uint32_t piece = 0;
  std::uint64_t offset = 0;  ///< in the piece
};
constexpr std::size_t kDataHeader = 12;

std::vector<std::byte> encode_hello(const SwarmHello& hello);
Result<SwarmHello> parse_hello(std::span<const std::byte> bytes);
std::vector<std::byte> encode_ranges(std::span<const PieceRange> ranges);
/// Corrupt for a piece from `pieces` on.
Result<std::vector<PieceRange>> parse_ranges(std::span<const std::byte> bytes, std::uint32_t pieces);
std::vector<std::byte> encode_piece(std::uint32_t piece);
/// Corrupt as parse_ranges().
Result<std::uint32_t> parse_piece(std::span<const std::byte> bytes, std::uint32_t pieces);
std::vector<std::byte> encode_data_header(const PieceData& data);
/// The header; the bytes are those after kDataHeader. Corrupt as parse_ranges().
Result<PieceData> parse_data_header(std::span<const std::byte> bytes, std::uint32_t pieces);

}  // namespace stoker::stage
