// NVIDIA GPUs of this machine through NVML, which is loaded when it is there: no link, no header, no error
// without it. One object belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

namespace stoker::observe {

/// One GPU at one moment; a value that the driver refuses is nullopt.
struct GpuUse {
  std::optional<double> busy_percent;  ///< part of the last sample period with a kernel running
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<double> power_w;
};

/// Of one machine, that are looked at.
inline constexpr int kMostGpus = 64;

/// An opened NVML, or nothing.
class GpuReader {
 public:
  /// Loads `library` and starts it. Without one, or without a driver, the reader has no GPUs.
  static GpuReader open(const std::string& library = "libnvidia-ml.so.1");
  GpuReader();
  GpuReader(GpuReader&&) noexcept;
  GpuReader& operator=(GpuReader&&) noexcept;
  ~GpuReader();

  /// Names in NVML's order (PCI bus), which CUDA_VISIBLE_DEVICES may permute.
  const std::vector<std::string>& names() const { return names_; }
  /// One value per name. A call into the driver for each: about 1 ms per GPU.
  std::vector<GpuUse> read() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::vector<std::string> names_;
};

}  // namespace stoker::observe
