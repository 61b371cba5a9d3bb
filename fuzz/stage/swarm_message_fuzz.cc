// Frames of a broadcast come from nodes with damaged memory or a different version: any bytes are parsed or
// rejected, and a parsed message survives a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "stage/broadcast/swarm_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::stage;
  if (size == 0) return 0;
  constexpr std::uint32_t kPieces = 1000;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const auto is_same = [&](const std::vector<std::byte>& again) {
    return std::equal(again.begin(), again.end(), bytes.begin(), bytes.end());
  };
  if (const auto hello = parse_hello(bytes); data[0] == 1 && hello.ok() && !is_same(encode_hello(*hello)))
    std::abort();
  if (const auto ranges = parse_ranges(bytes, kPieces); ranges.ok()) {
    for (const PieceRange& range : *ranges) {
      if (range.first + range.count > kPieces) std::abort();
    }
    if (!is_same(encode_ranges(*ranges))) std::abort();
  }
  if (const auto piece = parse_piece(bytes, kPieces);
      piece.ok() && (*piece >= kPieces || !is_same(encode_piece(*piece))))
    std::abort();
  if (const auto header = parse_data_header(bytes, kPieces); header.ok() && header->piece >= kPieces)
    std::abort();
  return 0;
}
