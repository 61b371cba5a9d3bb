#include "profile/profile.h"

#include <algorithm>

namespace stoker::profile {
namespace {

double busy_s(const RankProfile& rank) { return rank.step_s() - rank.seconds_of(ProfilePart::communication); }

template <typename Measure>
double mean_of(const Profile& profile, const Measure& nanos_of) {
  double sum = 0;
  for (const RankProfile& rank : profile.ranks) sum += static_cast<double>(nanos_of(rank));
  const auto steps = static_cast<double>(profile.steps());
  return steps > 0 ? 1e-9 * sum / steps : 0;
}

}  // namespace

std::string_view key_of(TimeSource source) {
  constexpr std::string_view kKeys[] = {"trainer", "program", "trace", "none"};
  return kKeys[static_cast<std::size_t>(source)];
}

std::int64_t Profile::steps() const {
  std::int64_t steps = 0;
  for (const RankProfile& rank : ranks) steps += rank.steps;
  return steps;
}

double Profile::seconds_of(ProfilePart part) const {
  return mean_of(*this, [part](const RankProfile& rank) { return rank.times[part]; });
}

double Profile::step_s() const {
  return mean_of(*this, [](const RankProfile& rank) { return rank.times.total(); });
}

double Profile::communication_s() const {
  return mean_of(*this, [](const RankProfile& rank) { return rank.communication; });
}

const RankProfile* Profile::worst_rank(ProfilePart part) const {
  if (ranks.size() < 2) return nullptr;
  const auto worst =
      std::ranges::max_element(ranks, {}, [part](const RankProfile& rank) { return rank.seconds_of(part); });
  return worst->times[part] > 0 ? &*worst : nullptr;
}

const RankProfile* Profile::slowest_rank() const {
  if (ranks.size() < 2) return nullptr;
  return &*std::ranges::max_element(ranks, {}, busy_s);
}

}  // namespace stoker::profile
