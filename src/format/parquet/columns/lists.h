// Lists out of Parquet's levels: a repetition level says which list an entry is another item of, a definition
// level how far down there is something. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/parquet/leaf.h"
#include "format/parquet/schema.h"

namespace stoker::formats {

class LeafLists {
 public:
  /// Both outlive it; it fills the rows and lists of `values`, which are empty.
  LeafLists(const LeafLayout& layout, ParquetValues& values);

  // Both add one page's entries. False for levels that do not hold.

  /// Entries whose levels differ. Puts in place of what was in `present` for each slot whether it has a
  /// value.
  bool add(std::span<const std::uint8_t> repetition, std::span<const std::uint8_t> definition,
           std::vector<std::uint8_t>& present);
  /// Entries that all have a value: each is a slot.
  bool add_full(std::span<const std::uint8_t> repetition);
  /// Once, behind the last page.
  void finish();

 private:
  bool add_entry(unsigned repetition, unsigned definition, bool& is_slot);
  bool add_items(std::span<const std::uint8_t> repetition);

  const LeafLayout& layout_;
  ParquetValues& values_;
  std::vector<std::uint64_t> counts_;  // items of each level so far
};

}  // namespace stoker::formats
