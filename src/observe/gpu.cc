#include "observe/gpu.h"

#include <array>
#include <cstring>
#include <dlfcn.h>

namespace stoker::observe {

namespace {

// The used part of nvml.h. Its ABI has been stable since CUDA 4; functions whose structs changed have a
// version suffix.
using Device = void*;
using EventSet = void*;
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct PciInfo {
  char legacy_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char id[32];
};
struct EventData {
  Device device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr int kSuccess = 0;
constexpr unsigned kTemperatureOfChip = 0;
constexpr unsigned kClockOfSms = 1;
constexpr unsigned kClockOfMemory = 2;
constexpr unsigned kUncorrected = 1;
constexpr unsigned kSinceDriverLoad = 0;
constexpr unsigned long long kXidEvents = 8;
constexpr unsigned kMaxMigDevices = 16;
constexpr int kMaxXids = 64;

// The value that a function of NVML writes to its last argument; nullopt without the function or the value.
template <typename Value, typename Function, typename... Arguments>
std::optional<Value> queried(Function* function, Arguments... arguments) {
  Value value{};
  if (function == nullptr || function(arguments..., &value) != kSuccess) return std::nullopt;
  return value;
}

template <typename To, typename From>
std::optional<To> converted(const std::optional<From>& value) {
  return value ? std::optional<To>(static_cast<To>(*value)) : std::nullopt;
}

std::string queried_text(int (*function)(Device, char*, unsigned), Device device) {
  std::array<char, 128> text{};
  if (function == nullptr || function(device, text.data(), text.size() - 1) != kSuccess) return "";
  return text.data();
}

}  // namespace

struct GpuReader::Library {
  void* handle = nullptr;
  bool is_started = false;
  bool is_watching = false;
  EventSet events = nullptr;
  std::vector<Device> devices;

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  // Absent from some versions of the driver.
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*pci)(Device, PciInfo*) = nullptr;
  int (*clock)(Device, unsigned, unsigned*) = nullptr;
  int (*temperature)(Device, unsigned, unsigned*) = nullptr;
  int (*throttle_reasons)(Device, unsigned long long*) = nullptr;
  int (*ecc_errors)(Device, unsigned, unsigned, unsigned long long*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;
  int (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  int (*mig_device)(Device, unsigned, Device*) = nullptr;
  int (*make_events)(EventSet*) = nullptr;
  int (*free_events)(EventSet) = nullptr;
  int (*register_events)(Device, unsigned long long, EventSet) = nullptr;
  int (*wait_event)(EventSet, EventData*, unsigned) = nullptr;

  ~Library() {
    if (events != nullptr) free_events(events);
    if (is_started) shutdown();
    if (handle != nullptr) ::dlclose(handle);
  }

  template <typename Function>
  bool load(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, symbol));
    return function != nullptr;
  }

  bool load_all() {
    load_optional();
    return load("nvmlInit_v2", init) && load("nvmlShutdown", shutdown) &&
           load("nvmlDeviceGetCount_v2", count) && load("nvmlDeviceGetHandleByIndex_v2", device) &&
           load("nvmlDeviceGetName", name) && load("nvmlDeviceGetUtilizationRates", utilization) &&
           load("nvmlDeviceGetMemoryInfo", memory) && load("nvmlDeviceGetPowerUsage", power);
  }

  void load_optional() {
    load("nvmlDeviceGetUUID", uuid);
    load("nvmlDeviceGetPciInfo_v3", pci);
    load("nvmlDeviceGetClockInfo", clock);
    load("nvmlDeviceGetTemperature", temperature);
    // The first name came with CUDA 12.
    (void)(load("nvmlDeviceGetCurrentClocksEventReasons", throttle_reasons) ||
           load("nvmlDeviceGetCurrentClocksThrottleReasons", throttle_reasons));
    load("nvmlDeviceGetTotalEccErrors", ecc_errors);
    load("nvmlDeviceGetTotalEnergyConsumption", energy);
    load("nvmlDeviceGetMigMode", mig_mode);
    load("nvmlDeviceGetMigDeviceHandleByIndex", mig_device);
    load("nvmlEventSetCreate", make_events);
    load("nvmlEventSetFree", free_events);
    load("nvmlDeviceRegisterEvents", register_events);
    (void)(load("nvmlEventSetWait_v2", wait_event) || load("nvmlEventSetWait", wait_event));
  }

  GpuDevice identify(Device gpu) const {
    GpuDevice found{.name = queried_text(name, gpu),
                    .uuid = queried_text(uuid, gpu),
                    .pci_bus_id = {},
                    .has_mig = {},
                    .mig_uuids = {}};
    if (found.name.empty()) found.name = "GPU";
    if (const auto info = queried<PciInfo>(pci, gpu))
      found.pci_bus_id.assign(info->id, ::strnlen(info->id, sizeof info->id));
    unsigned current = 0, pending = 0;
    if (mig_mode != nullptr && mig_mode(gpu, &current, &pending) == kSuccess) found.has_mig = current == 1;
    for (unsigned i = 0; found.has_mig.value_or(false) && i < kMaxMigDevices; ++i) {
      const auto part = queried<Device>(mig_device, gpu, i);
      if (part) found.mig_uuids.push_back(queried_text(uuid, *part));  // indices may have gaps
    }
    return found;
  }

  GpuUsage usage(Device gpu) const {
    GpuUsage use;
    if (const auto busy = queried<Utilization>(utilization, gpu)) use.busy_percent = busy->gpu;
    if (const auto bytes = queried<Memory>(memory, gpu)) {
      use.memory_bytes = bytes->used;
      use.memory_total_bytes = bytes->total;
    }
    if (const auto milliwatts = queried<unsigned>(power, gpu)) use.power_w = *milliwatts / 1000.0;
    use.sm_clock_mhz = converted<double>(queried<unsigned>(clock, gpu, kClockOfSms));
    use.memory_clock_mhz = converted<double>(queried<unsigned>(clock, gpu, kClockOfMemory));
    use.temperature_c = converted<double>(queried<unsigned>(temperature, gpu, kTemperatureOfChip));
    use.throttle_reasons = converted<std::uint64_t>(queried<unsigned long long>(throttle_reasons, gpu));
    use.ecc_errors = converted<std::uint64_t>(
        queried<unsigned long long>(ecc_errors, gpu, kUncorrected, kSinceDriverLoad));
    use.energy_mj = converted<std::uint64_t>(queried<unsigned long long>(energy, gpu));
    return use;
  }

  // Without all functions, or without support for one GPU at least, `events` stays null.
  void start_watching() {
    is_watching = true;
    if (make_events == nullptr || free_events == nullptr || register_events == nullptr ||
        wait_event == nullptr)
      return;
    EventSet made = nullptr;
    if (make_events(&made) != kSuccess) return;
    bool has_any = false;
    for (Device gpu : devices) has_any |= register_events(gpu, kXidEvents, made) == kSuccess;
    if (has_any) {
      events = made;
    } else {
      free_events(made);
    }
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
  const unsigned count = queried<unsigned>(nvml->count).value_or(0);
  GpuReader reader;
  for (unsigned i = 0; i < count && i < kMaxGpus; ++i) {
    const auto device = queried<Device>(nvml->device, i);
    if (!device) continue;  // a GPU that this job may not use
    nvml->devices.push_back(*device);
    reader.devices_.push_back(nvml->identify(*device));
  }
  reader.library_ = std::move(nvml);
  return reader;
}

std::vector<GpuUsage> GpuReader::read() const {
  std::vector<GpuUsage> all;
  if (!library_) return all;
  for (Device device : library_->devices) all.push_back(library_->usage(device));
  return all;
}

std::vector<GpuXid> GpuReader::poll_xids() {
  std::vector<GpuXid> found;
  if (!library_) return found;
  if (!library_->is_watching) library_->start_watching();
  if (library_->events == nullptr) return found;
  constexpr unsigned kNoWait = 0;
  for (int i = 0; i < kMaxXids; ++i) {
    EventData event{};
    if (library_->wait_event(library_->events, &event, kNoWait) != kSuccess) break;
    for (std::size_t gpu = 0; gpu < library_->devices.size(); ++gpu) {
      if (library_->devices[gpu] == event.device && event.type == kXidEvents)
        found.push_back({static_cast<int>(gpu), static_cast<int>(event.data)});
    }
  }
  return found;
}

}  // namespace stoker::observe
