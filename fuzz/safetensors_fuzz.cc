// Any bytes as a safetensors file: the parser ends, and whatever it accepts covers the data exactly and plans
// to a header that reads back the same.
#include <cstddef>
#include <cstdint>

#include "archive/safetensors.h"

using stoker::archive::parse_safetensors_header;
using stoker::archive::plan_safetensors;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto header = parse_safetensors_header("fuzz", bytes, size);
  if (!header) return 0;
  std::uint64_t covered = 0;
  for (const auto& entry : header->entries) {
    STOKER_CHECK(entry.begin == covered);
    covered = entry.end;
  }
  STOKER_CHECK(header->data_begin + covered == size);
  const auto plan = plan_safetensors(header->entries, header->metadata);
  if (!plan) return 0;  // a name the format allows and we do not write
  const auto again =
      parse_safetensors_header("again", std::as_bytes(std::span(plan->bytes)), plan->header.file_bytes);
  STOKER_CHECK(again.ok() && again->entries == plan->header.entries &&
               again->metadata == plan->header.metadata);
  return 0;
}
