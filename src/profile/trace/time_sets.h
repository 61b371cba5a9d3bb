// Sets of time spans in bounded memory, and how much of a period they cover. An object belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "profile/parts.h"

namespace stoker::profile {

struct TimeSpan {
  Nanos begin = 0;
  Nanos end = 0;
};

/// Sorts the spans and joins spans that touch or are up to `gap` apart.
void join_spans(std::vector<TimeSpan>& spans, Nanos gap = 0);
/// Time in `a` and in `b`. REQUIRES: both joined.
Nanos overlap(std::span<const TimeSpan> a, std::span<const TimeSpan> b);
Nanos length_of(std::span<const TimeSpan> joined);
/// The union. REQUIRES: both joined.
std::vector<TimeSpan> unite(std::span<const TimeSpan> a, std::span<const TimeSpan> b);

/// Several sets that share one budget of memory. When it is exhausted, spans are joined, if need be over
/// gaps, so that a set has a little more than its time: gap() is the longest of these gaps.
class TimeSets {
 public:
  /// 128 MB.
  static constexpr std::size_t kMostSpans = 8u << 20;

  TimeSets(std::size_t sets, std::size_t most_spans = kMostSpans) : sets_(sets), most_(most_spans) {}

  void add(std::size_t set, TimeSpan span);
  /// Joins all. Afterwards the sets can be read.
  void finish();
  std::span<const TimeSpan> set(std::size_t index) const { return sets_[index]; }
  Nanos gap() const { return gap_; }

 private:
  void shrink();

  std::vector<std::vector<TimeSpan>> sets_;
  std::size_t most_;
  std::size_t count_ = 0;  // of spans
  Nanos gap_ = 0;
};

}  // namespace stoker::profile
