// Builds lists from Parquet's levels: a repetition level selects the list that an entry continues, a
// definition level how deep it is defined. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parquet/schema/leaf.h"
#include "parquet/schema/schema.h"

namespace stoker::parquet {

class LeafLists {
 public:
  /// Both must outlive it. Fills the rows and lists of `values`, which are empty.
  LeafLists(const LeafLayout& layout, ParquetValues& values);

  // Both add one page's entries. False for inconsistent levels.

  /// Entries with different levels. Replaces `present`: for each slot whether it has a value.
  bool add(std::span<const std::uint8_t> repetition, std::span<const std::uint8_t> definition,
           std::vector<std::uint8_t>& present);
  /// Entries that all have a value.
  bool add_full(std::span<const std::uint8_t> repetition);
  /// Call once, after the last page.
  void finish();

 private:
  bool add_entry(unsigned repetition, unsigned definition, bool& is_slot);
  bool add_items(std::span<const std::uint8_t> repetition);

  const LeafLayout& layout_;
  ParquetValues& values_;
  std::vector<std::uint64_t> counts_;  // items of each level so far
};

}  // namespace stoker::parquet
