#include "report/traces.h"

#include <algorithm>
#include <map>
#include <utility>

#include "record/trace/trace_file.h"

namespace stoker::report {

namespace {

using record::TraceFile;
using record::TraceSpan;
using record::TraceStep;

// More rows would be unreadable.
constexpr std::size_t kMaxRanks = 64;

// Epoch and step.
using Key = std::pair<std::uint64_t, std::uint64_t>;

struct RankTrace {
  int rank = 0;
  TraceFile file;
  std::map<Key, const TraceStep*> steps;
};

// The steps traced by all ranks, with the slowest rank's time. Skips the first step, which is atypical, if
// there are more.
std::vector<std::pair<double, Key>> common_steps(const std::vector<RankTrace>& ranks) {
  std::vector<std::pair<double, Key>> common;
  for (const auto& [key, step] : ranks.front().steps) {
    double longest = 0;
    const bool is_common = std::ranges::all_of(ranks, [&](const RankTrace& rank) {
      const auto found = rank.steps.find(key);
      if (found == rank.steps.end()) return false;
      longest = std::max(longest, found->second->end_us - found->second->begin_us);
      return true;
    });
    if (is_common) common.emplace_back(longest, key);
  }
  if (common.size() > 1) common.erase(common.begin());
  return common;
}

// The spans inside the step, clipped to it.
std::vector<TracedSpan> spans_in(const std::vector<TraceSpan>& spans, const TraceStep& step, double zero_us) {
  std::vector<TracedSpan> inside;
  for (const TraceSpan& span : spans) {
    const double begin = std::max(span.begin_us, step.begin_us), end = std::min(span.end_us, step.end_us);
    if (end <= begin) continue;
    inside.push_back({printable(span.name), 1e-6 * (begin - zero_us), 1e-6 * (end - zero_us)});
  }
  return inside;
}

TracedStep make_traced_step(const std::vector<RankTrace>& ranks, Key key) {
  TracedStep traced;
  traced.epoch = key.first;
  traced.step = key.second;
  double zero = ranks.front().steps.at(key)->begin_us;
  for (const RankTrace& rank : ranks) zero = std::min(zero, rank.steps.at(key)->begin_us);
  for (const RankTrace& rank : ranks) {
    const TraceStep& step = *rank.steps.at(key);
    traced.ranks.push_back({rank.rank, 1e-6 * (step.begin_us - zero), 1e-6 * (step.end_us - zero),
                            spans_in(rank.file.phases, step, zero),
                            spans_in(rank.file.exchanges, step, zero)});
    traced.seconds = std::max(traced.seconds, traced.ranks.back().end_s);
  }
  return traced;
}

std::vector<RankTrace> read_ranks(const record::Attempt& attempt, RunFacts& facts) {
  std::vector<RankTrace> ranks;
  std::vector<int> numbers = indices_of(attempt, "trace-", ".json");
  if (numbers.size() > kMaxRanks) numbers.resize(kMaxRanks);
  for (const int number : numbers) {
    auto file = record::read_trace(attempt.trace(number));
    if (!file.ok()) {
      facts.notes.push_back(format(
          "{}: {}", printable(attempt.trace(number).lexically_relative(facts.folder).string()),
          file.error().code() == Code::corrupt ? "contains no complete step" : file.error().message()));
      continue;
    }
    ranks.push_back({number, std::move(*file), {}});
  }
  for (RankTrace& rank : ranks) {
    for (const TraceStep& step : rank.file.steps) rank.steps.insert_or_assign({step.epoch, step.step}, &step);
  }
  return ranks;
}

}  // namespace

void read_traces(const std::vector<AttemptSource>& attempts, RunFacts& facts) {
  for (auto source = attempts.rbegin(); source != attempts.rend(); ++source) {
    const std::vector<RankTrace> ranks = read_ranks(source->attempt, facts);
    if (ranks.empty()) continue;
    auto common = common_steps(ranks);
    if (common.empty()) continue;
    const auto middle = common.begin() + static_cast<std::ptrdiff_t>(common.size() / 2);
    std::ranges::nth_element(common, middle);
    facts.traced = make_traced_step(ranks, middle->second);
    facts.traced->attempt = source->attempt.number();
    facts.traced->candidates = common.size();
    return;
  }
}

}  // namespace stoker::report
