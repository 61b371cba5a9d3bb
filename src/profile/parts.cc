#include "profile/parts.h"

#include <numeric>

namespace stoker::profile {

std::string_view key_of(ProfilePart part) {
  constexpr std::string_view kKeys[] = {"data",     "host_to_device", "compute",   "forward",
                                        "backward", "communication",  "optimizer", "checkpoint",
                                        "copies",   "host",           "other"};
  static_assert(std::size(kKeys) == kParts);
  return kKeys[static_cast<std::size_t>(part)];
}

std::optional<ProfilePart> part_of(std::string_view key) {
  for (const ProfilePart part : kAllParts) {
    if (key_of(part) == key) return part;
  }
  return std::nullopt;
}

std::string label_of(ProfilePart part, const Translator& words) {
  switch (part) {
    case ProfilePart::data:
      return words.localize("wait for data");
    case ProfilePart::host_to_device:
      return words.localize("host-to-device");
    case ProfilePart::compute:
      return words.localize("GPU compute");
    case ProfilePart::forward:
      return words.localize("forward");
    case ProfilePart::backward:
      return words.localize("backward");
    case ProfilePart::communication:
      return words.localize("communication not hidden");
    case ProfilePart::optimizer:
      return words.localize("optimizer");
    case ProfilePart::checkpoint:
      return words.localize("checkpoint");
    case ProfilePart::copies:
      return words.localize("other GPU copies");
    case ProfilePart::host:
      return words.localize("GPU waits for host");
    case ProfilePart::other:
      return words.localize("other");
  }
  return words.localize("other");
}

Nanos PartTimes::total() const { return std::accumulate(nanos.begin(), nanos.end(), Nanos{0}); }

PartTimes& PartTimes::operator+=(const PartTimes& more) {
  for (std::size_t i = 0; i < kParts; ++i) nanos[i] += more.nanos[i];
  return *this;
}

}  // namespace stoker::profile
