// Parts of the readers of quotas. Internal to this folder; no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "explain/preflight/quota.h"

namespace stoker::explain {

constexpr std::uint64_t kQuotaBlock = 1024;  ///< bytes, of lfs, quota, mmlsquota and the kernel's limits

/// What somebody uses, and the limits of it; 0: none.
struct Use {
  std::uint64_t used = 0;
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

/// `blocks.used` in bytes, its limits in blocks.
Quota quota_of(const Use& blocks, const Use& files);

/// "1234*" stands for over the limit. False for what is no number, or larger than 2^53.
bool read_amount(std::string_view text, std::uint64_t* amount);

/// Of two that both hold, limit by limit the one that leaves less.
std::optional<Quota> lesser_of(const std::optional<Quota>& one, const std::optional<Quota>& other);

}  // namespace stoker::explain
