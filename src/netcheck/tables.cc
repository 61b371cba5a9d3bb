#include "netcheck/tables.h"

#include <algorithm>
#include <map>
#include <utility>

#include "stoker/time.h"

namespace stoker::netcheck {
namespace {

std::string seconds_text(double seconds) {
  if (seconds < 0.001) return format("{:.0f} us", seconds * 1e6);
  return rounded_duration(std::chrono::duration_cast<Duration>(Seconds(seconds)));
}

std::string speed_text(double bytes_per_s) {
  return format("{}/s", rounded({static_cast<std::uint64_t>(std::max(0.0, bytes_per_s))}));
}

std::string size_text(std::uint64_t bytes) {
  return bytes >= (1 << 20) ? format("{} MiB", bytes >> 20) : format("{} KiB", bytes >> 10);
}

Message path_text(const GpuLink& link) {
  if (link.nvlinks > 0) return message("{} x NVLink", link.nvlinks);
  if (!link.path) return message("unknown");
  switch (*link.path) {
    case observe::GpuPath::board:
      return message("same board");
    case observe::GpuPath::pcie_switch:
      return message("one PCIe switch");
    case observe::GpuPath::pcie_switches:
      return message("PCIe switches");
    case observe::GpuPath::host_bridge:
      return message("PCIe host bridge");
    case observe::GpuPath::numa_node:
      return message("one NUMA node");
    case observe::GpuPath::machine:
      return message("between NUMA nodes");
  }
  return message("unknown");
}

Message access_text(const std::optional<bool>& has_access) {
  return !has_access ? message("unknown") : *has_access ? message("yes") : message("no");
}

}  // namespace

CheckTable timing_table(const Report& report, const Translator& words) {
  CheckTable table{.head = {words.localize("OPERATION"), words.localize("SIZE"), words.localize("TIME"),
                            words.localize("SPEED"), words.localize("BOUND"), words.localize("OF IT")},
                   .rows = {}};
  for (const Timing& timing : report.timings) {
    table.rows.push_back(
        {std::string(to_text(timing.operation)), size_text(timing.bytes), seconds_text(timing.seconds),
         speed_text(timing.bytes_per_s()), seconds_text(timing.bound_s),
         format("{:.0f} %", timing.seconds > 0 ? 100 * timing.bound_s / timing.seconds : 0)});
  }
  table.notes.push_back(words.localize("bound: limit of the slowest connection, without computation").text());
  const bool is_above_bound = std::ranges::any_of(
      report.timings, [](const Timing& timing) { return timing.bound_s > 1.1 * timing.seconds; });
  if (is_above_bound) {
    table.notes.push_back(
        words
            .localize("       (some exceed it: short transfers stay in caches, or the machine "
                      "was busy during the measurement)")
            .text());
  }
  return table;
}

CheckTable gpu_timing_table(const Report& report, const Translator& words) {
  CheckTable table{.head = {"NCCL", words.localize("SIZE"), words.localize("TIME"), "ALGBW", "BUSBW",
                            words.localize("BOUND"), words.localize("OF IT")},
                   .rows = {}};
  for (const GpuTiming& timing : report.gpu_timings) {
    const double bound = timing.bound_bytes_per_s;
    table.rows.push_back({"all-reduce", size_text(timing.bytes), seconds_text(timing.seconds),
                          speed_text(timing.algorithm_bytes_per_s()), speed_text(timing.bus_bytes_per_s()),
                          bound > 0 ? speed_text(bound) : "-",
                          bound > 0 ? format("{:.0f} %", 100 * timing.bus_bytes_per_s() / bound) : "-"});
  }
  table.notes.push_back(words.localize("bound: what the links of the slowest GPU carry (NVML)").text());
  return table;
}

CheckTable gpu_link_table(const Report& report, const Translator& words) {
  CheckTable table{.head = {words.localize("HOST"), words.localize("GPUS"), words.localize("CONNECTION"),
                            words.localize("PEER ACCESS")},
                   .rows = {}};
  for (const auto& [rank, facts] : report.ranks) {
    std::map<std::pair<std::string, std::string>, std::string> pairs;
    for (const GpuLink& link : facts.gpu_links) {
      std::string& list =
          pairs[{words.render(path_text(link)), words.render(access_text(link.has_peer_access))}];
      list += format("{}{}-{}", list.empty() ? "" : ", ", link.first, link.second);
    }
    for (const auto& [connection, list] : pairs)
      table.rows.push_back({printable(facts.host), list, connection.first, connection.second});
  }
  return table;
}

}  // namespace stoker::netcheck
