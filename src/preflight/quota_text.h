// Helpers of the quota parsers. Internal to this folder; no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "preflight/quota.h"

namespace stoker::preflight {

constexpr std::uint64_t kQuotaBlock = 1024;  ///< bytes; unit of lfs, quota, mmlsquota and the kernel's limits

/// Usage and limits; 0: no limit.
struct QuotaUsage {
  std::uint64_t used = 0;
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

/// `blocks.used` in bytes, its limits in blocks.
Quota quota_of(const QuotaUsage& blocks, const QuotaUsage& files);

/// "1234*" means over the limit. False if not a number, or above 2^53.
bool read_amount(std::string_view text, std::uint64_t* amount);

/// Combines two quotas that both apply: the tighter limit of each kind.
std::optional<Quota> tighter_quota(const std::optional<Quota>& one, const std::optional<Quota>& other);

}  // namespace stoker::preflight
