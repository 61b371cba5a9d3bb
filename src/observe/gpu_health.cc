#include "observe/gpu_health.h"

#include <algorithm>
#include <array>

#include "stoker/text.h"

namespace stoker::observe {
namespace {

// nvmlClocksEventReason*; the hardware bit is set together with one of the last two.
constexpr std::uint64_t kPowerCap = 0x4;
constexpr std::uint64_t kHardwareSlowdown = 0x8;
constexpr std::uint64_t kSoftwareThermal = 0x20;
constexpr std::uint64_t kHardwareThermal = 0x40;
constexpr std::uint64_t kPowerBrake = 0x80;

struct XidMeaning {
  int code;
  std::string_view text;
};

// After NVIDIA's "Xid Errors".
constexpr std::array kXidMeanings = {
    XidMeaning{13, "a kernel failed, usually an address out of range"},
    XidMeaning{31, "a program accessed an invalid address"},
    XidMeaning{32, "invalid commands reached the GPU"},
    XidMeaning{43, "a program's error stopped its work on the GPU"},
    XidMeaning{45, "the driver removed a program's work after an earlier error or its end"},
    XidMeaning{48, "uncorrectable memory error (double-bit ECC)"},
    XidMeaning{61, "internal microcontroller breakpoint"},
    XidMeaning{62, "internal microcontroller halt"},
    XidMeaning{63, "damaged memory was marked for replacement at the next GPU reset"},
    XidMeaning{64, "damaged memory could not be marked for replacement"},
    XidMeaning{74, "NVLink error"},
    XidMeaning{79, "it has fallen off the bus"},
    XidMeaning{92, "many corrected memory errors"},
    XidMeaning{94, "uncorrectable memory error, contained to the programs on it"},
    XidMeaning{95, "uncorrectable memory error, uncontained"},
    XidMeaning{119, "its firmware (GSP) did not respond"},
    XidMeaning{120, "its firmware (GSP) failed"},
    XidMeaning{140, "unrecovered ECC error"},
};

}  // namespace

std::vector<std::string> throttle_texts(std::uint64_t reasons) {
  std::vector<std::string> texts;
  if ((reasons & kPowerCap) != 0) texts.emplace_back(kPowerLimitText);
  if ((reasons & (kSoftwareThermal | kHardwareThermal)) != 0) texts.emplace_back("temperature");
  if ((reasons & kPowerBrake) != 0) texts.emplace_back("power brake");
  const bool is_explained = (reasons & (kHardwareThermal | kPowerBrake)) != 0;
  if ((reasons & kHardwareSlowdown) != 0 && !is_explained) texts.emplace_back("hardware slowdown");
  return texts;
}

std::string_view xid_meaning(int code) {
  const auto* const found = std::find_if(kXidMeanings.begin(), kXidMeanings.end(),
                                         [&](const XidMeaning& each) { return each.code == code; });
  return found == kXidMeanings.end() ? "see NVIDIA's list of Xid errors" : found->text;
}

std::string xid_text(int gpu, std::string_view host, std::string_view pci_bus_id, int code) {
  return format("GPU {} ({}{}{}) reported Xid {}: {}", gpu, printable(host), pci_bus_id.empty() ? "" : ", ",
                printable(pci_bus_id), code, xid_meaning(code));
}

}  // namespace stoker::observe
