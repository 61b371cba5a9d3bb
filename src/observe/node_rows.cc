#include "observe/node_rows.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/language/counted.h"
#include "observe/gpu_health.h"
#include "stoker/bytes.h"
#include "stoker/time.h"

namespace stoker::observe {

namespace {

constexpr std::size_t kMostRows = 16;
// How far a node's samples may be behind the newest ones: they are one second apart, a few on a busy node.
constexpr double kLate = 15;
constexpr double kLongest = 1e9;

struct ShownColumn {
  std::string_view header;
  std::string_view key;
};
constexpr ShownColumn kShown[] = {{"CORES", "cpu_cores"},
                                  {"CPU", "job_cpu_percent"},
                                  {"MEMORY", "memory_bytes"},
                                  {"READ", "asked_bytes_per_s"},
                                  {"WRITE", "write_bytes_per_s"},
                                  {"SHARED READ", "shared_read_bytes_per_s"},
                                  {"SHARED WRITE", "shared_write_bytes_per_s"},
                                  {"NET IN", "network_received_bytes_per_s"},
                                  {"NET OUT", "network_sent_bytes_per_s"},
                                  {"IB IN", "fabric_received_bytes_per_s"},
                                  {"IB OUT", "fabric_sent_bytes_per_s"},
                                  {"GPU", "gpu_busy_percent"},
                                  {"GPU MEM", "gpu_memory_bytes"}};

constexpr NodeMeasure kPower{"power_w", "power", MeasureUnit::watts, "", ""};

struct TableColumn {
  std::string_view header;
  const NodeMeasure* measure;
  std::vector<std::optional<double>> values;  // by node
};

std::vector<TableColumn> columns_of(const std::vector<LiveNode>& nodes) {
  std::vector<TableColumn> columns;
  const auto add = [&](std::string_view header, const NodeMeasure& measure, auto value_of) {
    TableColumn column{header, &measure, {}};
    for (const LiveNode& node : nodes) column.values.push_back(value_of(node));
    if (spread_of(column.values)) columns.push_back(std::move(column));
  };
  for (const ShownColumn& shown : kShown) {
    const std::size_t index = measure_index(shown.key);
    add(shown.header, kNodeMeasures[index], [&](const LiveNode& node) { return node.values[index]; });
  }
  add("POWER", kPower, [](const LiveNode& node) { return node.power_w; });
  return columns;
}

// Cores and memory with what there is of them.
std::string cell(const TableColumn& column, const LiveNode& node, std::size_t index) {
  std::string text = measure_text(*column.measure, column.values[index]);
  if (text == "-") return text;
  if (column.measure->unit == MeasureUnit::cores && node.cpus) text += format(" of {:.0f}", *node.cpus);
  if (column.measure->key == "memory_bytes") {
    const std::string limit = measure_text(*column.measure, node.memory_limit_bytes);
    if (limit != "-") text += " of " + limit;
    if (node.oom_kills.value_or(0) > 0) text += format(", {} killed", *node.oom_kills);
  }
  return text;
}

std::vector<std::vector<std::string>> summary_of(const std::vector<LiveNode>& nodes,
                                                 const std::vector<TableColumn>& columns) {
  std::vector<std::string> mean = {format("mean of {}", nodes.size())};
  std::vector<std::string> lowest = {"lowest"};
  std::vector<std::string> highest = {"highest"};
  for (const TableColumn& column : columns) {
    const Spread spread = *spread_of(column.values);
    mean.push_back(measure_text(*column.measure, spread.mean));
    const auto named = [&](std::size_t index) {
      return format("{} {}", measure_text(*column.measure, column.values[index]), node_name(nodes[index]));
    };
    lowest.push_back(named(spread.lowest));
    highest.push_back(named(spread.highest));
  }
  return {mean, lowest, highest};
}

}  // namespace

std::string measure_text(const NodeMeasure& measure, const std::optional<double>& value) {
  constexpr double kMost = 1e18;
  if (!value || !(*value >= 0 && *value < kMost)) return "-";
  const auto bytes = [&] { return rounded(ByteCount{static_cast<std::uint64_t>(*value)}); };
  switch (measure.unit) {
    case MeasureUnit::cores:
      return format("{:.1f}", *value);
    case MeasureUnit::percent:
      return format("{:.0f} %", *value);
    case MeasureUnit::bytes:
      return bytes();
    case MeasureUnit::bytes_per_s:
      return bytes() + "/s";
    case MeasureUnit::per_s:
      return format("{:.0f}/s", *value);
    case MeasureUnit::watts:
      return format("{:.0f} W", *value);
  }
  return "-";
}

std::string node_name(const LiveNode& node) {
  return node.host.empty() ? format("node {}", node.node) : printable(node.host);
}

NodeRows rows_of(const std::vector<LiveNode>& nodes) {
  NodeRows table{.header = {"NODE"}, .rows = {}};
  const std::vector<TableColumn> columns = columns_of(nodes);
  for (const TableColumn& column : columns) table.header.emplace_back(column.header);
  if (columns.empty()) return table;
  if (nodes.size() > kMostRows) table.rows = summary_of(nodes, columns);
  const double newest = std::ranges::min_element(nodes, {}, &LiveNode::age_s)->age_s;
  for (std::size_t i = 0; i < nodes.size() && nodes.size() <= kMostRows; ++i) {
    std::string name = node_name(nodes[i]);
    if (const double behind = nodes[i].age_s - newest; behind > kLate && behind < kLongest)
      name += format(" ({} behind)", rounded_duration(std::chrono::duration_cast<Duration>(Seconds(behind))));
    table.rows.push_back({std::move(name)});
    for (const TableColumn& column : columns) table.rows.back().push_back(cell(column, nodes[i], i));
  }
  return table;
}

std::vector<std::string> throttling_of(const LiveGpu& gpu) {
  return throttle_texts(static_cast<std::uint64_t>(gpu.throttle_reasons.value_or(0)));
}

namespace {

// By more than its power limit, which is normal under load.
bool is_slowed(const LiveGpu& gpu) {
  const auto reasons = throttling_of(gpu);
  return std::ranges::any_of(reasons, [](const std::string& reason) { return reason != kPowerLimitText; });
}

// "GPU 0 of n1  93 % busy, 61.2 GB of 85.9 GB, 640 W, 1980 MHz, 65 °C, throttled: power limit, Xid 79: ...".
std::string gpu_line(const LiveGpu& gpu, const LiveRun& live) {
  const auto or_dash = [](const auto& value, const char* unit) {
    return value ? format("{:.0f} {}", *value, unit) : "-";
  };
  const NodeMeasure& memory = kNodeMeasures[measure_index("gpu_memory_bytes")];
  std::string name = format("GPU {}", gpu.number);
  for (const LiveNode& node : live.nodes) {
    if (live.nodes.size() > 1 && node.node == gpu.node) name += " of " + node_name(node);
  }
  std::string line =
      format("{}  {} busy, {}", name, or_dash(gpu.busy_percent, "%"), measure_text(memory, gpu.memory_bytes));
  if (gpu.memory_total_bytes) line += " of " + measure_text(memory, gpu.memory_total_bytes);
  line += ", " + or_dash(gpu.power_w, "W");
  if (gpu.sm_clock_mhz) line += ", " + or_dash(gpu.sm_clock_mhz, "MHz");
  if (gpu.temperature_c) line += ", " + or_dash(gpu.temperature_c, "°C");
  if (const auto reasons = throttling_of(gpu); !reasons.empty())
    line += ", throttled: " + join(reasons, " and ");
  for (const int code : std::set<int>(gpu.xids.begin(), gpu.xids.end()))
    line += format(", Xid {}: {}", code, xid_meaning(code));
  return line;
}

}  // namespace

std::vector<std::string> gpu_lines(const LiveRun& live) {
  std::vector<std::string> lines;
  std::size_t left_out = 0;
  for (const LiveGpu& gpu : live.gpus) {
    if (live.gpus.size() <= kMostRows || !gpu.xids.empty() || is_slowed(gpu)) {
      lines.push_back(gpu_line(gpu, live));
    } else {
      ++left_out;
    }
  }
  if (left_out > 0) lines.push_back(format("{} without a problem", counted(left_out, "GPU")));
  return lines;
}

}  // namespace stoker::observe
