#include "slurm/script/asked.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "slurm/script/own_script.h"
#include "slurm/script/task_range.h"

namespace stoker::slurm {
namespace {

constexpr std::size_t kMostTasks = 1'000'000;

// "gpu:v100:4", "gpu:2", "gpu" of --gres; "v100:4", "4" of --gpus-per-node.
AskedGpus gpus_of(std::string_view option, std::string_view value, bool names_kind) {
  std::vector<std::string_view> pieces = split(value.substr(0, value.find('(')), ':');
  if (names_kind) pieces.erase(pieces.begin());
  AskedGpus asked{.option = option, .type = "", .count = "1"};
  if (pieces.size() >= 2) {
    asked.type = pieces[0];
    asked.count = pieces[1];
  } else if (pieces.size() == 1) {
    const bool is_type = names_kind && !pieces[0].empty() && (pieces[0][0] < '0' || pieces[0][0] > '9');
    (is_type ? asked.type : asked.count) = pieces[0];
  }
  return asked;
}

}  // namespace

std::optional<std::uint64_t> Asked::number(std::string_view name) const {
  const auto value = value_(name);
  std::uint64_t number = 0;
  if (!value || !parse_number(std::string_view(*value).substr(0, value->find('-')), &number))
    return std::nullopt;
  return number;
}

std::uint64_t Asked::nodes() const { return std::max<std::uint64_t>(number("--nodes").value_or(1), 1); }

std::optional<std::uint64_t> Asked::tasks_per_node() const {
  if (const auto given = number("--ntasks-per-node")) return given;
  if (const auto given = number("--tasks-per-node")) return given;
  const auto all = number("--ntasks");
  const bool names_nodes = value_("--nodes").has_value();
  if (all && names_nodes && *all % nodes() == 0) return *all / nodes();
  return all || !names_nodes ? std::nullopt : std::optional<std::uint64_t>(1);
}

std::uint64_t Asked::tasks() const {
  if (const auto given = number("--ntasks")) return *given;
  return tasks_per_node().value_or(1) * nodes();
}

std::vector<AskedGpus> Asked::gpus() const {
  std::vector<AskedGpus> found;
  for (const char* name : {"--gpus-per-node", "--gpus-per-task", "--gpus"}) {
    if (const auto value = value_(name)) found.push_back(gpus_of(name, *value, false));
  }
  if (const auto gres = value_("--gres")) {
    for (std::string_view each : split(*gres, ',')) {
      if (each == "gpu" || each.starts_with("gpu:")) found.push_back(gpus_of("--gres", each, true));
    }
  }
  return found;
}

std::optional<std::uint64_t> Asked::gpus_per_node() const {
  std::optional<std::uint64_t> sum;  // of several types
  for (const AskedGpus& asked : gpus()) {
    std::uint64_t count = 0;
    if (!parse_number(asked.count, &count)) return std::nullopt;
    if (asked.option == "--gpus-per-task") {
      const auto tasks = tasks_per_node();
      if (!tasks && nodes() > 1) return std::nullopt;
      count *= tasks.value_or(1);
    } else if (asked.option == "--gpus") {
      if (count % nodes() != 0) return std::nullopt;
      count /= nodes();
    }
    if (asked.option != "--gres") return count;
    sum = sum.value_or(0) + count;
  }
  return sum;
}

std::optional<ByteCount> Asked::memory_per_node() const {
  const auto value = value_("--mem");
  const auto memory = value ? parse_slurm_memory(*value) : std::nullopt;
  return memory && memory->value > 0 ? memory : std::nullopt;
}

std::optional<Duration> Asked::time() const {
  const auto value = value_("--time");
  return value ? parse_slurm_limit(*value) : std::nullopt;
}

std::uint64_t Asked::array_tasks() const {
  const auto value = value_("--array");
  return value ? count_tasks(*value) : 0;
}

std::optional<std::uint32_t> largest_task(std::string_view array) {
  std::uint32_t largest = 0;
  for (std::string_view piece : split(array.substr(0, array.find('%')), ',')) {
    const auto range = read_task_range(piece);
    if (!range) return std::nullopt;
    largest = std::max(largest, static_cast<std::uint32_t>(range->last));
  }
  return largest;
}

std::vector<std::uint32_t> tasks_of_array(std::string_view array) {
  std::set<std::uint32_t> tasks;
  for (std::string_view piece : split(array.substr(0, array.find('%')), ',')) {
    const auto range = read_task_range(piece);
    if (!range) continue;
    for (std::uint64_t task = range->first; task <= range->last && tasks.size() < kMostTasks;
         task += range->step)
      tasks.insert(static_cast<std::uint32_t>(task));
  }
  return {tasks.begin(), tasks.end()};
}

}  // namespace stoker::slurm
