// Where the time of a training step goes: parts that exclude each other and add up to the step. Values in
// whole nanoseconds, so that sums are exact. Used by all of this room. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/language/translator.h"

namespace stoker::profile {

/// Nanoseconds: of a duration, or since the beginning of a source's clock.
using Nanos = std::int64_t;

/// The parts of a step. Records of a training loop have no GPU part. Traces with GPU events have no forward,
/// backward and optimizer: while the GPU is idle, these are `host`.
enum class ProfilePart {
  data,            ///< the loop waits for the next batch
  host_to_device,  ///< copies to the GPU that nothing else hides
  compute,         ///< the GPU runs kernels other than collectives
  forward,
  backward,
  communication,  ///< collectives that neither compute nor backward hides
  optimizer,
  checkpoint,
  copies,  ///< other copies and memset of the GPU
  host,    ///< the GPU is idle while the host runs operators
  other,   ///< none of the above
};
inline constexpr std::size_t kParts = static_cast<std::size_t>(ProfilePart::other) + 1;
inline constexpr std::array<ProfilePart, kParts> kAllParts = {
    ProfilePart::data,     ProfilePart::host_to_device, ProfilePart::compute,   ProfilePart::forward,
    ProfilePart::backward, ProfilePart::communication,  ProfilePart::optimizer, ProfilePart::checkpoint,
    ProfilePart::copies,   ProfilePart::host,           ProfilePart::other};

/// "data", "host_to_device", ...: names in JSON, and of the columns of records without "_s".
std::string_view key_of(ProfilePart part);
std::optional<ProfilePart> part_of(std::string_view key);
/// "wait for data", ...
std::string label_of(ProfilePart part, const Translator& words);

/// Time by part.
struct PartTimes {
  std::array<Nanos, kParts> nanos{};

  Nanos& operator[](ProfilePart part) { return nanos[static_cast<std::size_t>(part)]; }
  Nanos operator[](ProfilePart part) const { return nanos[static_cast<std::size_t>(part)]; }
  Nanos total() const;
  PartTimes& operator+=(const PartTimes& more);
};

}  // namespace stoker::profile
