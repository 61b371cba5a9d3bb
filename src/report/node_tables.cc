#include "report/node_tables.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/language/counted.h"
#include "report/next_request.h"
#include "report/sentence.h"
#include "stoker/bytes.h"

namespace stoker::report {

namespace {

constexpr std::size_t kMostRows = 16;

std::string bytes_text(double bytes) {
  if (!(bytes >= 0)) return "-";
  return rounded(ByteCount{static_cast<std::uint64_t>(std::min(bytes, 1e18))});
}

std::string percent_text(double value) { return std::isfinite(value) ? format("{:.0f} %", value) : "-"; }

// "340 kJ", or with 3.6 MJ and more "1.2 kWh".
std::string energy_text(double joules) {
  constexpr double kKwh = 3.6e6;
  if (!(joules >= 0)) return "-";
  if (joules >= kKwh) return format("{} kWh", significant(joules / kKwh));
  return joules >= 1e4 ? format("{} kJ", significant(joules / 1e3)) : format("{} J", significant(joules));
}

std::string name_of(const NodeFacts& node) {
  return node.host.empty() ? std::to_string(node.node) : printable(node.host);
}

double total_energy(const NodeFacts& node) {
  if (node.energy.node_j) return *node.energy.node_j;
  double sum = NAN;
  for (const auto& part : {node.energy.cpu_j, node.energy.memory_j, node.energy.gpu_j}) {
    if (part) sum = (std::isfinite(sum) ? sum : 0) + *part;
  }
  return sum;
}

/// A quantity: its value of a node, and how it is printed.
struct NodeColumn {
  std::string_view name;
  double (*value)(const NodeFacts&);
  std::string (*text)(double);
};

template <std::size_t Measure>
double mean(const NodeFacts& node) {
  return node.use[Measure].mean;
}
template <std::size_t Measure>
double peak(const NodeFacts& node) {
  return node.use[Measure].peak;
}
template <std::size_t Measure>
double total(const NodeFacts& node) {
  return node.use[Measure].total;
}

constexpr std::size_t index_of(std::string_view key) { return observe::measure_index(key); }

const NodeColumn kColumns[] = {
    {"cores", [](const NodeFacts& node) { return node.cpus; }, significant},
    {"cores used", mean<index_of("cpu_cores")>, significant},
    {"job's cores busy", mean<index_of("job_cpu_percent")>, percent_text},
    {"peak memory", peak<index_of("memory_bytes")>, bytes_text},
    {"memory limit", [](const NodeFacts& node) { return node.memory_limit; }, bytes_text},
    {"read", total<index_of("asked_bytes_per_s")>, bytes_text},
    {"from storage", total<index_of("read_bytes_per_s")>, bytes_text},
    {"written", total<index_of("write_bytes_per_s")>, bytes_text},
    {"shared fs read", total<index_of("shared_read_bytes_per_s")>, bytes_text},
    {"shared fs written", total<index_of("shared_write_bytes_per_s")>, bytes_text},
    {"opens", total<index_of("shared_opens_per_s")>, significant},
    {"disks read", total<index_of("local_read_bytes_per_s")>, bytes_text},
    {"disks written", total<index_of("local_write_bytes_per_s")>, bytes_text},
    {"network in", total<index_of("network_received_bytes_per_s")>, bytes_text},
    {"network out", total<index_of("network_sent_bytes_per_s")>, bytes_text},
    {"InfiniBand in", total<index_of("fabric_received_bytes_per_s")>, bytes_text},
    {"InfiniBand out", total<index_of("fabric_sent_bytes_per_s")>, bytes_text},
    {"GPUs busy", mean<index_of("gpu_busy_percent")>, percent_text},
    {"GPU memory", peak<index_of("gpu_memory_bytes")>, bytes_text},
    {"energy", total_energy, energy_text},
    {"killed for memory", [](const NodeFacts& node) { return node.oom_kills; }, significant},
};

std::vector<std::optional<double>> values_of(const NodeColumn& column, const RunFacts& facts) {
  std::vector<std::optional<double>> values;
  for (const NodeFacts& node : facts.nodes) values.emplace_back(column.value(node));
  return values;
}

std::vector<const NodeColumn*> recorded_columns(const RunFacts& facts) {
  std::vector<const NodeColumn*> columns;
  for (const NodeColumn& column : kColumns) {
    const auto values = values_of(column, facts);
    const auto spread = observe::spread_of(values);
    // Kills are worth a column only where there were some.
    if (spread && (column.name != "killed for memory" || *values[spread->highest] > 0))
      columns.push_back(&column);
  }
  return columns;
}

/// Mean, lowest and highest; the latter two with their node, unless all nodes are equal.
std::array<std::string, 3> summary_of(const NodeColumn& column, const RunFacts& facts) {
  const auto values = values_of(column, facts);
  const observe::Spread spread = *observe::spread_of(values);
  const auto named = [&](std::size_t index) {
    return format("{} ({})", column.text(*values[index]), name_of(facts.nodes[index]));
  };
  const std::string mean = column.text(spread.mean);
  if (*values[spread.lowest] == *values[spread.highest]) return {mean, mean, mean};
  return {mean, named(spread.lowest), named(spread.highest)};
}

std::string mean_title(const RunFacts& facts) { return format("mean of {}", facts.nodes.size()); }

// The text of a source with this beginning: "energy: cpu: RAPL package-0".
std::string source_of(const RunFacts& facts, std::string_view part) {
  constexpr std::string_view kKind = "energy: ";
  for (const NodeFacts& node : facts.nodes) {
    for (std::string_view source : node.sources) {
      if (!source.starts_with(kKind)) continue;
      for (std::string_view each : split(source.substr(kKind.size()), ';')) {
        each = trim(each);
        if (each.starts_with(part)) return printable(trim(each.substr(part.size())));
      }
    }
  }
  return "system-*.csv";
}

}  // namespace

double share_of(double used, double asked) { return asked > 0 ? used / asked : NAN; }

Table nodes_table(const RunFacts& facts) {
  Table table{"Nodes", "attempts/*/system-*.csv", {{"node"}}, {}};
  const std::vector<const NodeColumn*> columns = recorded_columns(facts);
  for (const NodeColumn* column : columns) table.columns.push_back({std::string(column->name), true});
  if (columns.empty()) return table;
  for (std::size_t i = 0; i < facts.nodes.size() && facts.nodes.size() <= kMostRows; ++i) {
    table.rows.push_back({name_of(facts.nodes[i])});
    for (const NodeColumn* column : columns)
      table.rows.back().push_back(column->text(column->value(facts.nodes[i])));
  }
  if (facts.nodes.size() < 2) return table;
  std::vector<std::vector<std::string>> rows = {{mean_title(facts)}, {"lowest"}, {"highest"}};
  for (const NodeColumn* column : columns) {
    auto cells = summary_of(*column, facts);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(std::move(cells[i]));
  }
  table.rows.insert(table.rows.end(), rows.begin(), rows.end());
  return table;
}

Table node_quantities_table(const RunFacts& facts) {
  constexpr std::size_t kMostNodes = 4;
  Table table{"Nodes", "attempts/*/system-*.csv", {{"what"}}, {}};
  const bool has_each = facts.nodes.size() <= kMostNodes;
  const bool has_summary = facts.nodes.size() > 1;
  for (std::size_t i = 0; has_each && i < facts.nodes.size(); ++i)
    table.columns.push_back({name_of(facts.nodes[i]), true});
  if (has_summary) {
    for (const std::string& title : {mean_title(facts), std::string("lowest"), std::string("highest")})
      table.columns.push_back({title, true});
  }
  for (const NodeColumn* column : recorded_columns(facts)) {
    table.rows.push_back({std::string(column->name)});
    for (std::size_t i = 0; has_each && i < facts.nodes.size(); ++i)
      table.rows.back().push_back(column->text(column->value(facts.nodes[i])));
    if (!has_summary) continue;
    for (std::string& cell : summary_of(*column, facts)) table.rows.back().push_back(std::move(cell));
  }
  return table;
}

Table efficiency_table(const RunFacts& facts) {
  Table table{"Efficiency",
              "attempts/*/system-*.csv, job.yaml",
              {{"resource"}, {"used", true}, {"requested", true}, {"share", true}},
              {}};
  const auto add = [&](std::vector<std::string> cells, const NextRequest& next) {
    cells.push_back(next.is_empty() ? "" : format("{} ({})", next.setting, next.option));
    table.rows.push_back(std::move(cells));
  };
  if (!facts.efficiency) return table;
  const Efficiency& use = *facts.efficiency;
  if (std::isfinite(use.cpu_used_s)) {
    add({"CPU time", seconds_text(use.cpu_used_s), seconds_text(use.cpu_reserved_s),
         percent(share_of(use.cpu_used_s, use.cpu_reserved_s))},
        next_cpus(facts));
  }
  if (std::isfinite(use.memory_peak)) {
    add({format("memory, peak on {}", use.memory_node), bytes_text(use.memory_peak),
         bytes_text(use.memory_asked) + (use.is_memory_limit && use.memory_asked > 0 ? " (available)" : ""),
         percent(share_of(use.memory_peak, use.memory_asked))},
        next_memory(facts));
  }
  if (std::isfinite(use.time_limit) && use.seconds > 0) {
    add({"time", seconds_text(use.seconds), seconds_text(use.time_limit),
         percent(share_of(use.seconds, use.time_limit))},
        next_time(facts));
  }
  if (use.gpus > 0) add({counted(use.gpus, "GPU") + ", busy", "", "", percent(use.gpu_busy_mean / 100)}, {});
  const bool has_advice =
      std::any_of(table.rows.begin(), table.rows.end(), [](const auto& row) { return !row.back().empty(); });
  if (has_advice) {
    table.columns.push_back({.name = "next request", .is_long = true});
  } else {
    for (auto& row : table.rows) row.pop_back();
  }
  return table;
}

Table energy_table(const RunFacts& facts) {
  Table table{"Energy",
              "attempts/*/system-*.csv",
              {{"part"},
               {"energy", true},
               {"mean power", true},
               {"nodes", true},
               {.name = "source", .is_long = true}},
              {}};
  struct Row {
    std::string_view name;
    std::string_view source;
    std::optional<double> observe::NodeEnergy::* part;
  };
  constexpr Row kRows[] = {{"whole nodes", "node:", &observe::NodeEnergy::node_j},
                           {"CPUs", "cpu:", &observe::NodeEnergy::cpu_j},
                           {"memory", "memory:", &observe::NodeEnergy::memory_j},
                           {"GPUs", "", &observe::NodeEnergy::gpu_j}};
  for (const Row& row : kRows) {
    double joules = 0;
    double seconds = 0;
    std::size_t nodes = 0;
    bool is_integrated = false;
    for (const NodeFacts& node : facts.nodes) {
      if (!(node.energy.*row.part)) continue;
      joules += *(node.energy.*row.part);
      seconds = std::max(seconds, node.seconds);
      is_integrated = is_integrated || node.energy.is_gpu_integrated;
      ++nodes;
    }
    if (nodes == 0) continue;
    const std::string source = !row.source.empty()
                                   ? source_of(facts, row.source) + ", with other jobs of the node"
                               : is_integrated ? "NVML, sampled power, integrated"
                                               : "NVML, energy counter";
    table.rows.push_back({std::string(row.name), energy_text(joules),
                          seconds > 0 ? format("{} W", significant(joules / seconds)) : "-",
                          std::to_string(nodes), source});
  }
  return table;
}

Table staging_table(const RunFacts& facts) {
  Table table{"Staged data",
              "attempts/*/events-*.jsonl",
              {{"attempt", true},
               {"nodes", true},
               {"from the source", true},
               {"from other nodes", true},
               {"in caches", true},
               {"not read at the source", true},
               {"time", true}},
              {}};
  for (const auto& [attempt, data] : facts.staging) {
    table.rows.push_back({std::to_string(attempt), std::to_string(data.nodes), rounded({data.read}),
                          rounded({data.received}), rounded({data.cached}),
                          format("{:.0f} %", 100 * data.hit_rate()), format("{:.1f} s", data.seconds)});
  }
  return table;
}

}  // namespace stoker::report
