// A list of staged files comes from a different node: any bytes are parsed or rejected, no entry leads out of
// the folder, and a parsed list survives a round trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stage/broadcast/tree_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::stage;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto list = parse_tree_list(text);
  if (!list.ok()) return 0;
  for (const auto* entries : {&list->copies, &list->archives}) {
    for (const ArchiveEntry& entry : *entries) {
      const auto clean = clean_name("", entry.name);
      if (!clean.ok() || *clean != entry.name) std::abort();
    }
  }
  const auto again = parse_tree_list(encode_tree_list(*list));
  if (!again.ok() || again->bytes != list->bytes || encode_tree_list(*again).size() != size) std::abort();
  return 0;
}
