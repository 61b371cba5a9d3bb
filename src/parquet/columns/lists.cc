#include "parquet/columns/lists.h"

#include <algorithm>
#include <cstring>

namespace stoker::parquet {

namespace {

// Appends `flag` to flags with `before` entries; the vector stays empty while all are set.
void add_flag(bool flag, std::uint64_t before, std::vector<std::uint8_t>& flags) {
  if (flag && flags.empty()) return;
  if (flags.empty()) flags.assign(before, 1);
  flags.push_back(flag ? 1 : 0);
}

}  // namespace

LeafLists::LeafLists(const LeafLayout& layout, ParquetValues& values) : layout_(layout), values_(values) {
  values_.lists.resize(layout.lists.size());
  counts_.resize(layout.lists.size());
}

bool LeafLists::add_entry(unsigned repetition, unsigned definition, bool& is_slot) {
  std::size_t level = repetition;  // the list that the entry begins; 0 is the row's list
  is_slot = false;
  if (repetition == 0) {
    ++values_.rows;
  } else {
    if (repetition > counts_.size() || counts_[repetition - 1] == 0) return false;
    if (definition < layout_.lists[repetition - 1]) return false;
    ++counts_[repetition - 1];
  }
  for (; level < counts_.size(); ++level) {
    const unsigned with_item = layout_.lists[level];
    ParquetValues::List& list = values_.lists[level];
    add_flag(definition + 1 >= with_item, list.offsets.size(), list.present);
    list.offsets.push_back(counts_[level]);
    if (definition < with_item) return true;
    ++counts_[level];
  }
  is_slot = true;
  return true;
}

bool LeafLists::add(std::span<const std::uint8_t> repetition, std::span<const std::uint8_t> definition,
                    std::vector<std::uint8_t>& present) {
  present.resize(repetition.size());
  std::size_t slots = 0;
  for (std::size_t i = 0; i < repetition.size(); ++i) {
    bool is_slot = false;
    if (!add_entry(repetition[i], definition[i], is_slot)) return false;
    present[slots] = definition[i] == layout_.definition ? 1 : 0;
    slots += is_slot ? 1 : 0;
  }
  present.resize(slots);
  return true;
}

// Of the one level that most lists have: an entry begins a row or is an item more.
bool LeafLists::add_items(std::span<const std::uint8_t> repetition) {
  constexpr std::uint64_t kEightItems = 0x0101010101010101;
  constexpr std::size_t kEight = sizeof kEightItems;
  ParquetValues::List& list = values_.lists[0];
  if (counts_[0] == 0 && !repetition.empty() && repetition[0] != 0) return false;
  const std::size_t before = list.offsets.size();
  std::vector<std::uint64_t>& offsets = list.offsets;
  const auto add = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      if (repetition[i] == 0) offsets.push_back(counts_[0] + i);
  };
  std::size_t i = 0;
  for (; i + kEight <= repetition.size(); i += kEight) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, repetition.data() + i, kEight);
    if (eight != kEightItems) add(i, i + kEight);
  }
  add(i, repetition.size());
  counts_[0] += repetition.size();
  const std::size_t rows = offsets.size() - before;
  values_.rows += rows;
  if (!list.present.empty()) list.present.insert(list.present.end(), rows, 1);
  return true;
}

bool LeafLists::add_full(std::span<const std::uint8_t> repetition) {
  if (counts_.size() == 1) return add_items(repetition);
  bool is_slot = false;
  return std::ranges::all_of(repetition,
                             [&](unsigned level) { return add_entry(level, layout_.definition, is_slot); });
}

void LeafLists::finish() {
  for (std::size_t level = 0; level < counts_.size(); ++level)
    values_.lists[level].offsets.push_back(counts_[level]);
}

}  // namespace stoker::parquet
