// Collects the evidence for a finding of lint and shows the first few items by name. Thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/encode.h"
#include "base/finding.h"
#include "stoker/text.h"

namespace stoker::inspect {

class EvidenceList {
 public:
  void add(std::string where, std::string text = {}) {
    ++count_;
    places_.push_back({printable(where), printable(text)});
    if (places_.size() >= 4 * kMaxShown) keep_first();
  }
  std::uint64_t count() const { return count_; }
  /// The first few items, and the number of remaining ones. Ends the collection.
  std::vector<Evidence> evidence() {
    keep_first();
    if (count_ > places_.size())
      places_.push_back({"", format("and {} more", grouped(count_ - places_.size()))});
    return std::move(places_);
  }

 private:
  static constexpr std::size_t kMaxShown = 5;
  void keep_first() {
    std::sort(places_.begin(), places_.end(),
              [](const Evidence& a, const Evidence& b) { return a.where < b.where; });
    if (places_.size() > kMaxShown) places_.resize(kMaxShown);
  }
  std::uint64_t count_ = 0;
  std::vector<Evidence> places_;
};

}  // namespace stoker::inspect
