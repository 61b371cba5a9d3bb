#include "observe/node/energy.h"

#include <algorithm>

#include "base/file.h"

namespace stoker::observe {

namespace {

constexpr double kMicro = 1e-6;
constexpr double kMostWatts = 1e5;

std::string text_of(const Path& file) {
  const auto text = read_pseudo_file(file);
  return text.ok() ? std::string(trim(*text)) : "";
}

}  // namespace

EnergyReader EnergyReader::find(const NodeRoots& roots) {
  EnergyReader reader;
  reader.add_pm_counters(roots.sys / "cray/pm_counters");
  if (!reader.has_cpu()) reader.add_rapl(roots.sys / "class/powercap");
  if (!reader.has_node()) reader.add_power_meters(roots.sys / "class/hwmon");
  return reader;
}

bool EnergyReader::has(Part part) const {
  return std::ranges::any_of(meters_, [&](const Meter& meter) { return meter.part == part; });
}

void EnergyReader::add_source(Part part, std::string_view what) {
  constexpr std::string_view kNames[] = {"cpu", "memory", "node"};
  const std::string_view name = kNames[static_cast<int>(part)];
  source_ += format("{}{}: {}", source_.empty() ? "" : "; ", name, what);
}

// "1234567 J 1700000000000000 us".
void EnergyReader::add_pm_counters(const Path& folder) {
  constexpr std::pair<std::string_view, Part> kFiles[] = {
      {"energy", Part::node}, {"cpu_energy", Part::cpu}, {"memory_energy", Part::memory}};
  for (const auto& [name, part] : kFiles) {
    if (!read_counter(folder / name)) continue;
    meters_.push_back({.part = part, .file = folder / name, .wraps_at = {}, .before = {}});
    add_source(part, format("pm_counters {}", name));
  }
}

// The package of a socket includes its cores; DRAM is counted apart. psys, where there is one, includes both:
// it is left out, because laptops and servers mean different things by it.
void EnergyReader::add_rapl(const Path& folder) {
  std::vector<std::string> packages;
  bool has_dram = false;
  for (const std::string& name : names_in(folder)) {
    if (name.find("-rapl:") == std::string::npos || name.find("-mmio") != std::string::npos) continue;
    const Path zone = folder / name;
    const std::string what = text_of(zone / "name");
    const bool is_package = what.starts_with("package");
    if ((!is_package && what != "dram") || !read_counter(zone / "energy_uj")) continue;
    meters_.push_back({.part = is_package ? Part::cpu : Part::memory,
                       .file = zone / "energy_uj",
                       .joules_per_unit = kMicro,
                       .wraps_at = read_counter(zone / "max_energy_range_uj"),
                       .before = {}});
    if (is_package) packages.push_back(printable(what));
    has_dram = has_dram || !is_package;
  }
  if (!packages.empty()) add_source(Part::cpu, "RAPL " + join(packages, ", "));
  if (has_dram) add_source(Part::memory, "RAPL dram");
}

// ACPI power meters measure the node. NVIDIA's Grace has several per socket. "Module Power" includes the
// remaining ones.
void EnergyReader::add_power_meters(const Path& folder) {
  std::size_t count = 0;
  for (const std::string& name : names_in(folder)) {
    const Path meter = folder / name;
    if (text_of(meter / "name") != "power_meter") continue;
    const Path info =
        path_exists(meter / "power1_oem_info") ? meter / "power1_oem_info" : meter / "device/power1_oem_info";
    const std::string what = text_of(info);
    if (!what.empty() && !what.starts_with("Module Power")) continue;
    for (const Path& file : {meter / "power1_average", meter / "device/power1_average"}) {
      if (!read_counter(file)) continue;
      meters_.push_back({.part = Part::node,
                         .file = file,
                         .joules_per_unit = kMicro,
                         .wraps_at = {},
                         .is_power = true,
                         .before = {}});
      ++count;
      break;
    }
  }
  if (count > 0) add_source(Part::node, "power meter of hwmon, integrated");
}

void EnergyReader::add_interval(Meter& meter, double mono_s) {
  constexpr double kMostWattsOfSocket = 2000;
  const Counter now = read_counter(meter.file);
  if (!now) return;
  const auto value = static_cast<double>(*now);
  const double seconds = mono_s - meter.before_s;
  std::optional<double>& sum = joules_[static_cast<int>(meter.part)];
  if (meter.before && seconds > 0 && sum) {
    const auto before = static_cast<double>(*meter.before);
    double units = 0;
    if (meter.is_power) {
      units = (value + before) / 2 * seconds;
    } else if (*now >= *meter.before) {
      units = static_cast<double>(*now - *meter.before);
    } else if (meter.wraps_at && *meter.before <= *meter.wraps_at) {
      units = static_cast<double>(*meter.wraps_at) - before + value;
    }
    const double joules = units * meter.joules_per_unit;
    if (joules <= kMostWatts * seconds) *sum += joules;
    const double range = meter.wraps_at ? static_cast<double>(*meter.wraps_at) * meter.joules_per_unit : 0;
    if (range > 0 && range < kMostWattsOfSocket * seconds) sum.reset();
  }
  meter.before = now;
  meter.before_s = mono_s;
}

EnergyUse EnergyReader::read(double mono_s) {
  for (Meter& meter : meters_) add_interval(meter, mono_s);
  const auto of = [&](Part part) { return has(part) ? joules_[static_cast<int>(part)] : std::nullopt; };
  return {.cpu_j = of(Part::cpu), .memory_j = of(Part::memory), .node_j = of(Part::node)};
}

}  // namespace stoker::observe
