#include "observe/node/cpus.h"

#include <algorithm>
#include <unistd.h>

#include "base/file.h"

namespace stoker::observe {

namespace {

constexpr std::int64_t kMostCores = 8192;

/// Adds a line "cpu3 10 0 20 ...": user nice system idle iowait irq softirq steal; guest times are included
/// in user and nice.
void add_line(std::string_view line, CoreUse& sum) {
  constexpr std::size_t kColumns = 8;
  static const double ticks_per_s = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto words = words_of(line);
  double total = 0;
  double idle = 0;
  for (std::size_t i = 1; i < std::min(words.size(), kColumns + 1); ++i) {
    const double ticks = static_cast<double>(leading_number(words[i]).value_or(0));
    total += ticks;
    if (i == 4 || i == 5) idle += ticks;
  }
  sum.total_s += total / ticks_per_s;
  sum.busy_s += (total - idle) / ticks_per_s;
}

}  // namespace

std::set<int> parse_cpu_list(std::string_view text) {
  std::set<int> cores;
  for (std::string_view range : split(trim(text), ',')) {
    const std::size_t dash = range.find('-');
    std::int64_t first = 0;
    std::int64_t last = 0;
    if (!parse_number(range.substr(0, dash), &first)) continue;
    last = first;
    if (dash != std::string_view::npos && !parse_number(range.substr(dash + 1), &last)) continue;
    if (first < 0 || last >= kMostCores) continue;
    for (std::int64_t core = first; core <= last; ++core) cores.insert(static_cast<int>(core));
  }
  return cores;
}

std::set<int> allowed_cpus(const Path& proc, std::int64_t pid) {
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  const auto status = read_pseudo_file(proc / std::to_string(pid) / "status");
  if (!status.ok()) return {};
  for (std::string_view line : split(*status, '\n')) {
    if (line.starts_with(kKey)) return parse_cpu_list(line.substr(kKey.size()));
  }
  return {};
}

std::optional<CoreUse> core_use(std::string_view stat, const std::set<int>& cores) {
  std::optional<CoreUse> sum;
  for (std::string_view line : split(stat, '\n')) {
    if (!line.starts_with("cpu")) break;  // the lines of cores come first
    const std::string_view number = line.substr(3, std::min(line.find(' '), line.size()) - 3);
    std::int64_t core = -1;
    const bool is_whole = number.empty();
    if (!is_whole && !parse_number(number, &core)) continue;
    if (cores.empty() ? !is_whole : is_whole || !cores.contains(static_cast<int>(core))) continue;
    if (!sum) sum.emplace();
    add_line(line, *sum);
  }
  return sum;
}

}  // namespace stoker::observe
