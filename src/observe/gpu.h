// NVIDIA GPUs of this machine through NVML, loaded at run time if available: no linking, no header, no error
// without it. An object belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/text.h"

namespace stoker::observe {

/// One GPU at one moment; values that the driver does not provide are nullopt.
struct GpuUsage {
  std::optional<double> busy_percent;  ///< fraction of the last sample period with a running kernel
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<double> power_w;
};

/// Maximum number of GPUs of one machine that are read.
inline constexpr int kMaxGpus = 64;

/// A loaded NVML library, or nothing.
class GpuReader {
 public:
  /// Loads and initializes `library`. Without it or without a driver the reader has no GPUs.
  static GpuReader open(const std::string& library = "libnvidia-ml.so.1");
  GpuReader();
  GpuReader(GpuReader&&) noexcept;
  GpuReader& operator=(GpuReader&&) noexcept;
  ~GpuReader();

  /// Names in NVML's order (PCI bus), which CUDA_VISIBLE_DEVICES may permute.
  const std::vector<std::string>& names() const { return names_; }
  /// One value per name. One driver call each: about 1 ms per GPU.
  std::vector<GpuUsage> read() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::vector<std::string> names_;
};

}  // namespace stoker::observe
