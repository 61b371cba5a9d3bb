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
struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  unsigned type;
  int status;
  union {
    double real;
    unsigned natural;
    unsigned long long large;
  } value;
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
constexpr unsigned kMaxNvlinks = 36;
constexpr unsigned kNvlinkMegabytesPerS = 90;  // of each active link
constexpr unsigned kUnsigned = 1;
constexpr unsigned kPeerRead = 0;
constexpr unsigned kPeerNvlink = 2;
constexpr unsigned kPeerAccess = 0;
// Bytes per second of one lane, by generation from 1, after the encoding.
constexpr std::array<double, 6> kLaneBytesPerS = {0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};

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
  int (*nvlink_state)(Device, unsigned, unsigned*) = nullptr;
  int (*field_values)(Device, int, FieldValue*) = nullptr;
  int (*pcie_generation)(Device, unsigned*) = nullptr;
  int (*pcie_width)(Device, unsigned*) = nullptr;
  int (*common_ancestor)(Device, Device, unsigned*) = nullptr;
  int (*peer_status)(Device, Device, unsigned, unsigned*) = nullptr;
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
    load("nvmlDeviceGetNvLinkState", nvlink_state);
    load("nvmlDeviceGetFieldValues", field_values);
    load("nvmlDeviceGetMaxPcieLinkGeneration", pcie_generation);
    load("nvmlDeviceGetMaxPcieLinkWidth", pcie_width);
    load("nvmlDeviceGetTopologyCommonAncestor", common_ancestor);
    load("nvmlDeviceGetP2PStatus", peer_status);
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

  GpuPort port(Device gpu) const {
    GpuPort found;
    for (unsigned link = 0; link < kMaxNvlinks; ++link)
      found.nvlinks += queried<unsigned>(nvlink_state, gpu, link).value_or(0) == 1 ? 1 : 0;
    FieldValue speed{.field = kNvlinkMegabytesPerS};
    const bool has_speed = found.nvlinks > 0 && field_values != nullptr &&
                           field_values(gpu, 1, &speed) == kSuccess && speed.status == kSuccess &&
                           speed.type == kUnsigned;
    if (has_speed) found.nvlink_bytes_per_s = 1e6 * speed.value.natural * found.nvlinks;
    found.pcie_generation = static_cast<int>(queried<unsigned>(pcie_generation, gpu).value_or(0));
    found.pcie_width = static_cast<int>(queried<unsigned>(pcie_width, gpu).value_or(0));
    const auto generation = static_cast<std::size_t>(found.pcie_generation);
    if (generation >= 1 && generation <= kLaneBytesPerS.size())
      found.pcie_bytes_per_s = kLaneBytesPerS[generation - 1] * found.pcie_width;
    return found;
  }

  // NVML numbers the paths 0, 10, ... 50.
  GpuPair pair(int first, int second) const {
    GpuPair found{.first = first, .second = second, .path = {}, .has_peer_access = {}};
    Device a = devices[static_cast<std::size_t>(first)], b = devices[static_cast<std::size_t>(second)];
    const auto level = queried<unsigned>(common_ancestor, a, b);
    if (level && *level <= 50 && *level % 10 == 0) found.path = static_cast<GpuPath>(*level / 10);
    if (const auto status = queried<unsigned>(peer_status, a, b, kPeerRead))
      found.has_peer_access = *status == kPeerAccess;
    found.has_nvlink = queried<unsigned>(peer_status, a, b, kPeerNvlink) == kPeerAccess;
    return found;
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

GpuTopology GpuReader::topology() const {
  GpuTopology topology;
  if (!library_) return topology;
  const int count = static_cast<int>(library_->devices.size());
  for (Device device : library_->devices) topology.ports.push_back(library_->port(device));
  for (int first = 0; first < count; ++first) {
    for (int second = first + 1; second < count; ++second)
      topology.pairs.push_back(library_->pair(first, second));
  }
  return topology;
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
