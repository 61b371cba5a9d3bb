#include "profile/trace/time_sets.h"

#include <algorithm>

namespace stoker::profile {

void join_spans(std::vector<TimeSpan>& spans, Nanos gap) {
  if (spans.empty()) return;
  if (!std::ranges::is_sorted(spans, {}, &TimeSpan::begin)) std::ranges::sort(spans, {}, &TimeSpan::begin);
  std::size_t last = 0;
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].begin <= spans[last].end || spans[i].begin - spans[last].end <= gap) {
      spans[last].end = std::max(spans[last].end, spans[i].end);
    } else {
      spans[++last] = spans[i];
    }
  }
  spans.resize(last + 1);
}

Nanos overlap(std::span<const TimeSpan> a, std::span<const TimeSpan> b) {
  Nanos sum = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    sum += std::max<Nanos>(0, std::min(a[i].end, b[j].end) - std::max(a[i].begin, b[j].begin));
    (a[i].end < b[j].end ? i : j) += 1;
  }
  return sum;
}

Nanos length_of(std::span<const TimeSpan> joined) {
  Nanos sum = 0;
  for (const TimeSpan& span : joined) sum += span.end - span.begin;
  return sum;
}

std::vector<TimeSpan> unite(std::span<const TimeSpan> a, std::span<const TimeSpan> b) {
  std::vector<TimeSpan> all(a.size() + b.size());
  std::ranges::merge(a, b, all.begin(), {}, &TimeSpan::begin, &TimeSpan::begin);
  join_spans(all);
  return all;
}

void TimeSets::add(std::size_t set, TimeSpan span) {
  if (span.end <= span.begin) return;
  std::vector<TimeSpan>& spans = sets_[set];
  // Nested operators come after the one that has them.
  if (!spans.empty() && span.begin >= spans.back().begin && span.begin <= spans.back().end) {
    spans.back().end = std::max(spans.back().end, span.end);
    return;
  }
  spans.push_back(span);
  if (++count_ >= most_) shrink();
}

void TimeSets::shrink() {
  constexpr Nanos kFirstGap = 1000;
  while (true) {
    count_ = 0;
    for (auto& spans : sets_) {
      join_spans(spans, gap_);
      count_ += spans.size();
    }
    if (count_ <= most_ / 2) return;
    gap_ = gap_ == 0 ? kFirstGap : 2 * gap_;
  }
}

void TimeSets::finish() {
  for (auto& spans : sets_) join_spans(spans, gap_);
}

}  // namespace stoker::profile
