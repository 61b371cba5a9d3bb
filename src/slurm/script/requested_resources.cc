#include "slurm/script/requested_resources.h"

#include <algorithm>
#include <set>

#include "slurm/script/task_range.h"
#include "slurm/script/user_script.h"
#include "stoker/text.h"

namespace stoker::slurm {
namespace {

constexpr std::size_t kMaxTasks = 1'000'000;

// "gpu:v100:4", "gpu:2", "gpu" of --gres; "v100:4", "4" of --gpus-per-node.
RequestedGpus gpus_of(std::string_view option, std::string_view value, bool names_kind) {
  std::vector<std::string_view> pieces = split(value.substr(0, value.find('(')), ':');
  if (names_kind) pieces.erase(pieces.begin());
  RequestedGpus asked{.option = option, .type = "", .count = "1"};
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

std::optional<std::uint64_t> RequestedResources::number(std::string_view name) const {
  const auto value = value_(name);
  std::uint64_t number = 0;
  if (!value || !parse_number(std::string_view(*value).substr(0, value->find('-')), &number))
    return std::nullopt;
  return number;
}

std::uint64_t RequestedResources::nodes() const {
  return std::max<std::uint64_t>(number("--nodes").value_or(1), 1);
}

std::optional<std::uint64_t> RequestedResources::tasks_per_node() const {
  if (const auto given = number("--ntasks-per-node")) return given;
  if (const auto given = number("--tasks-per-node")) return given;
  const auto all = number("--ntasks");
  const bool names_nodes = value_("--nodes").has_value();
  if (all && names_nodes && *all % nodes() == 0) return *all / nodes();
  return all || !names_nodes ? std::nullopt : std::optional<std::uint64_t>(1);
}

std::uint64_t RequestedResources::tasks() const {
  if (const auto given = number("--ntasks")) return *given;
  return tasks_per_node().value_or(1) * nodes();
}

std::vector<RequestedGpus> RequestedResources::gpus() const {
  std::vector<RequestedGpus> found;
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

std::optional<std::uint64_t> RequestedResources::gpus_per_node() const {
  std::optional<std::uint64_t> sum;  // over several GPU types
  for (const RequestedGpus& asked : gpus()) {
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

std::optional<ByteCount> RequestedResources::memory_per_node() const {
  const auto value = value_("--mem");
  const auto memory = value ? parse_slurm_memory(*value) : std::nullopt;
  return memory && memory->value > 0 ? memory : std::nullopt;
}

std::optional<Duration> RequestedResources::time() const {
  const auto value = value_("--time");
  return value ? parse_slurm_limit(*value) : std::nullopt;
}

std::uint64_t RequestedResources::array_tasks() const {
  const auto value = value_("--array");
  return value ? count_tasks(*value) : 0;
}

std::optional<std::uint32_t> max_array_index(std::string_view array) {
  std::uint32_t largest = 0;
  for (std::string_view piece : split(array.substr(0, array.find('%')), ',')) {
    const auto range = read_task_range(piece);
    if (!range) return std::nullopt;
    largest = std::max(largest, static_cast<std::uint32_t>(range->last));
  }
  return largest;
}

std::vector<std::uint32_t> array_indices(std::string_view array) {
  std::set<std::uint32_t> tasks;
  for (std::string_view piece : split(array.substr(0, array.find('%')), ',')) {
    const auto range = read_task_range(piece);
    if (!range) continue;
    for (std::uint64_t task = range->first; task <= range->last && tasks.size() < kMaxTasks;
         task += range->step)
      tasks.insert(static_cast<std::uint32_t>(task));
  }
  return {tasks.begin(), tasks.end()};
}

}  // namespace stoker::slurm
