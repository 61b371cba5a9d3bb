#include "observe/gpu.h"

#include <array>
#include <cstring>
#include <dlfcn.h>

namespace stoker::observe {

namespace {

// The used part of nvml.h. Its ABI has been stable since CUDA 4; functions whose structs changed have a
// version suffix.
using Device = void*;
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
constexpr int kSuccess = 0;

}  // namespace

struct GpuReader::Library {
  void* handle = nullptr;
  bool is_started = false;
  std::vector<Device> devices;

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;

  ~Library() {
    if (is_started) shutdown();
    if (handle != nullptr) ::dlclose(handle);
  }

  template <typename Function>
  bool load(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, symbol));
    return function != nullptr;
  }

  bool load_all() {
    return load("nvmlInit_v2", init) && load("nvmlShutdown", shutdown) &&
           load("nvmlDeviceGetCount_v2", count) && load("nvmlDeviceGetHandleByIndex_v2", device) &&
           load("nvmlDeviceGetName", name) && load("nvmlDeviceGetUtilizationRates", utilization) &&
           load("nvmlDeviceGetMemoryInfo", memory) && load("nvmlDeviceGetPowerUsage", power);
  }
};

GpuReader::GpuReader() = default;
GpuReader::GpuReader(GpuReader&&) noexcept = default;
GpuReader& GpuReader::operator=(GpuReader&&) noexcept = default;
GpuReader::~GpuReader() = default;

GpuReader GpuReader::open(const std::string& library) {
  GpuReader none;
  auto nvml = std::make_unique<Library>();
  nvml->handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nvml->handle == nullptr || !nvml->load_all() || nvml->init() != kSuccess) return none;
  nvml->is_started = true;
  unsigned count = 0;
  if (nvml->count(&count) != kSuccess) return none;
  GpuReader reader;
  for (unsigned i = 0; i < count && i < kMaxGpus; ++i) {
    Device device = nullptr;
    if (nvml->device(i, &device) != kSuccess) continue;  // a GPU that this job may not use
    std::array<char, 96> name{};
    if (nvml->name(device, name.data(), name.size() - 1) != kSuccess) std::strcpy(name.data(), "GPU");
    nvml->devices.push_back(device);
    reader.names_.emplace_back(name.data());
  }
  reader.library_ = std::move(nvml);
  return reader;
}

std::vector<GpuUsage> GpuReader::read() const {
  std::vector<GpuUsage> all;
  if (!library_) return all;
  for (Device device : library_->devices) {
    GpuUsage use;
    Utilization utilization{};
    if (library_->utilization(device, &utilization) == kSuccess) use.busy_percent = utilization.gpu;
    Memory memory{};
    if (library_->memory(device, &memory) == kSuccess) {
      use.memory_bytes = memory.used;
      use.memory_total_bytes = memory.total;
    }
    unsigned milliwatts = 0;
    if (library_->power(device, &milliwatts) == kSuccess) use.power_w = milliwatts / 1000.0;
    all.push_back(use);
  }
  return all;
}

}  // namespace stoker::observe
