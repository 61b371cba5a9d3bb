// Collects things of one kind for a finding of lint, and shows the first few by name. Thread-compatible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/encode.h"
#include "base/finding.h"
#include "base/text.h"

namespace stoker::data {

/// Things of one kind, by name.
class LintKind {
 public:
  void add(std::string where, std::string text = {}) {
    ++count_;
    places_.push_back({printable(where), printable(text)});
    if (places_.size() >= 4 * kShown) keep_first();
  }
  std::uint64_t count() const { return count_; }
  /// The first few, and how many more there are. Ends the collecting.
  std::vector<Evidence> evidence() {
    keep_first();
    if (count_ > places_.size())
      places_.push_back({"", format("and {} more", grouped(count_ - places_.size()))});
    return std::move(places_);
  }

 private:
  static constexpr std::size_t kShown = 5;
  void keep_first() {
    std::sort(places_.begin(), places_.end(),
              [](const Evidence& a, const Evidence& b) { return a.where < b.where; });
    if (places_.size() > kShown) places_.resize(kShown);
  }
  std::uint64_t count_ = 0;
  std::vector<Evidence> places_;
};

}  // namespace stoker::data
