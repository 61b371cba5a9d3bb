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

/// The identity of one GPU. Texts that the driver does not provide are empty.
struct GpuDevice {
  std::string name;                    ///< "NVIDIA H100 80GB HBM3"
  std::string uuid;                    ///< "GPU-5c0e...", a valid entry of CUDA_VISIBLE_DEVICES
  std::string pci_bus_id;              ///< "00000000:3B:00.0", as in the kernel's messages
  std::optional<bool> has_mig;         ///< whether MIG mode is on; unset: unknown or not supported
  std::vector<std::string> mig_uuids;  ///< "MIG-...", of its MIG devices
};

/// One GPU at one moment; values that the driver does not provide are nullopt.
struct GpuUsage {
  std::optional<double> busy_percent;  ///< fraction of the last sample period with a running kernel
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<double> power_w;
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> temperature_c;
  std::optional<std::uint64_t> throttle_reasons;  ///< NVML's bits of clock event reasons: gpu_health.h
  std::optional<std::uint64_t> ecc_errors;        ///< uncorrected memory errors since the driver was loaded
  std::optional<std::uint64_t> energy_mj;         ///< millijoules since the driver was loaded
};

/// A critical error that the driver reported for one GPU.
struct GpuXid {
  int gpu = 0;   ///< index in GpuReader::devices
  int code = 0;  ///< see xid_meaning
};

/// How one GPU is connected. Speeds are bytes per second in one direction, 0 if the driver does not tell.
struct GpuPort {
  int nvlinks = 0;                ///< active ones
  double nvlink_bytes_per_s = 0;  ///< of all of them
  int pcie_generation = 0;        ///< the fastest that GPU and slot support: an idle one is slower
  int pcie_width = 0;
  double pcie_bytes_per_s = 0;
};

/// The closest part of the machine that two GPUs share.
enum class GpuPath { board, pcie_switch, pcie_switches, host_bridge, numa_node, machine };

/// Two GPUs of this machine.
struct GpuPair {
  int first = 0;  ///< index in GpuReader::devices
  int second = 0;
  std::optional<GpuPath> path;
  std::optional<bool> has_peer_access;  ///< whether one can read the memory of its peer
  bool has_nvlink = false;              ///< over NVLink, also through a switch
};

/// How the GPUs of this machine are connected.
struct GpuTopology {
  std::vector<GpuPort> ports;  ///< one per device
  std::vector<GpuPair> pairs;  ///< every two devices, the smaller index first
};

/// Maximum number of GPUs of one machine that are read.
inline constexpr int kMaxGpus = 64;

/// The NVIDIA driver's library; the loader searches LD_LIBRARY_PATH for it.
inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

/// A loaded NVML library, or nothing. Functions that the library lacks, or that the GPU does not support,
/// give unset values.
class GpuReader {
 public:
  /// Loads and initializes `library`. Without it or without a driver the reader has no GPUs.
  static GpuReader open(const std::string& library = kNvmlLibrary);
  GpuReader();
  GpuReader(GpuReader&&) noexcept;
  GpuReader& operator=(GpuReader&&) noexcept;
  ~GpuReader();

  /// In NVML's order (PCI bus), which CUDA_VISIBLE_DEVICES may permute.
  const std::vector<GpuDevice>& devices() const { return devices_; }
  /// One value per device. About 1 ms per GPU.
  std::vector<GpuUsage> read() const;
  /// Values that the driver does not provide are unset. Takes some milliseconds.
  GpuTopology topology() const;
  /// Xid errors since the last call; the first call starts the driver's recording. At most 64 per call. Does
  /// not wait.
  std::vector<GpuXid> poll_xids();

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::vector<GpuDevice> devices_;
};

}  // namespace stoker::observe
