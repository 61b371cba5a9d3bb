#include "profile/gains.h"

#include <algorithm>

namespace stoker::profile {

void StepModel::add(std::size_t index, const PartTimes& times) {
  Step& step = steps_[index];
  const Nanos total = times.total();
  const Nanos busy = total - times[ProfilePart::communication];
  step.ranks += 1;
  step.longest = std::max(step.longest, total);
  step.busiest = std::max(step.busiest, busy);
  step.busy_sum += busy;
  for (const ProfilePart part : kAllParts) {
    const Nanos left = part == ProfilePart::communication ? busy : busy - times[part];
    Nanos& busiest = step.busiest_without[static_cast<std::size_t>(part)];
    busiest = std::max(busiest, left);
  }
}

template <typename Shortened>
std::optional<double> StepModel::gain(int ranks, const Shortened& shortened) const {
  double before = 0;
  double after = 0;
  for (const Step& step : steps_) {
    if (step.ranks != ranks) continue;
    before += static_cast<double>(step.longest);
    after += shortened(step);
  }
  if (after <= 0 || before <= 0) return std::nullopt;
  return std::max(1.0, before / after);
}

std::optional<double> StepModel::gain_without(ProfilePart part, int ranks) const {
  return gain(ranks, [part](const Step& step) {
    const Nanos busy = step.busiest_without[static_cast<std::size_t>(part)];
    return static_cast<double>(part == ProfilePart::communication ? busy
                                                                  : busy + (step.longest - step.busiest));
  });
}

std::optional<double> StepModel::gain_of_balance(int ranks) const {
  return gain(ranks, [ranks](const Step& step) {
    return static_cast<double>(step.busy_sum) / ranks + static_cast<double>(step.longest - step.busiest);
  });
}

}  // namespace stoker::profile
