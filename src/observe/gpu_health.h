// The meaning of NVML's clock event reasons and of the driver's Xid errors, in words. Used by the sampler,
// `stoker top`, `explain` and the report. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::observe {

/// The only reason that is normal for a GPU under full load.
inline constexpr std::string_view kPowerLimitText = "power limit";

/// Why a GPU runs below its clock, for example {"power limit"}; empty if it does not. `reasons`: the bits of
/// nvmlDeviceGetCurrentClocksEventReasons. Idleness and clocks that a user or an administrator set are not
/// throttling.
std::vector<std::string> throttle_texts(std::uint64_t reasons);

/// What an Xid error means, without a full stop; "see NVIDIA's list of Xid errors" for a rare code.
std::string_view xid_meaning(int code);

/// "GPU 0 (n1, 00000000:3B:00.0) reported Xid 79: it has fallen off the bus". An empty `pci_bus_id` is left
/// out.
std::string xid_text(int gpu, std::string_view host, std::string_view pci_bus_id, int code);

}  // namespace stoker::observe
