#include "script_lint/launches/task_layout.h"

#include <algorithm>

#include "script_lint/inner_command.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

constexpr std::uint64_t kMaxCount = 1'000'000;

std::optional<std::uint64_t> named_count(std::string_view name, const JobCounts& counts) {
  if (name == "SLURM_NNODES" || name == "SLURM_JOB_NUM_NODES") return counts.nodes;
  if (name == "SLURM_NTASKS" || name == "SLURM_NPROCS") return counts.tasks;
  if (name == "SLURM_NTASKS_PER_NODE" || name == "SLURM_TASKS_PER_NODE") return counts.tasks_per_node;
  if (name == "SLURM_GPUS_ON_NODE" || name == "SLURM_GPUS_PER_NODE") return counts.gpus_per_node;
  return std::nullopt;
}

// "$NAME", "${NAME}", "${NAME:-1}", "NAME" in arithmetic, or digits.
std::optional<std::uint64_t> single_value(std::string_view text, const JobCounts& counts) {
  std::uint64_t number = 0;
  if (parse_number(text, &number)) return number <= kMaxCount ? std::optional(number) : std::nullopt;
  if (text.starts_with('$')) text.remove_prefix(1);
  if (text.starts_with('{')) text = text.substr(1, text.find_first_of(":}") - 1);
  return named_count(text, counts);
}

// The options of a launcher, without its program.
std::vector<std::string> launcher_options(const ProgramCall& launcher) {
  std::vector<std::string> all = {launcher.program};
  all.insert(all.end(), launcher.words.begin(), launcher.words.end());
  const auto program = inner_command(launcher.program, all);
  if (program) all.resize(*program);
  all.erase(all.begin());
  return all;
}

bool names_one_host(const std::vector<std::string>& options) {
  const auto hosts = option_value(options, {"--nodelist", "-w"});
  return hosts && hosts->find_first_of(",[") == std::string::npos &&
         hosts->find("NODELIST") == std::string::npos;
}

TaskLayout layout_of_srun(const std::vector<std::string>& options, const JobCounts& counts) {
  TaskLayout layout{.tasks = std::nullopt, .nodes = counts.nodes, .starter = "srun"};
  const auto nodes = option_value(options, {"--nodes", "-N"});
  const auto tasks = option_value(options, {"--ntasks", "-n"});
  const auto per_node = option_value(options, {"--ntasks-per-node", "--tasks-per-node"});
  if (nodes) layout.nodes = count_value(*nodes, counts);
  if (!nodes && names_one_host(options)) layout.nodes = 1;
  if (tasks) {
    layout.tasks = count_value(*tasks, counts);
    if (layout.tasks && layout.nodes) layout.nodes = std::min(*layout.nodes, *layout.tasks);
  } else if (per_node || layout.nodes != counts.nodes) {
    const auto each = per_node ? count_value(*per_node, counts) : counts.tasks_per_node;
    if (each && layout.nodes) layout.tasks = *layout.nodes * *each;
  } else {
    layout.tasks = counts.tasks;
  }
  return layout;
}

TaskLayout layout_of_mpirun(const std::string& program, const std::vector<std::string>& options,
                            const JobCounts& counts) {
  TaskLayout layout{.tasks = counts.tasks, .nodes = counts.nodes, .starter = program};
  if (const auto tasks = option_value(options, {"-np", "--np", "-n"}))
    layout.tasks = count_value(*tasks, counts);
  auto per_node = option_value(options, {"-npernode", "--npernode", "-ppn", "--ppn", "-perhost"});
  const auto mapping = option_value(options, {"--map-by", "-map-by"});
  // "ppr:1:node"
  if (mapping && mapping->starts_with("ppr:") && mapping->find(":node") != std::string::npos)
    per_node = mapping->substr(4, mapping->find(':', 4) - 4);
  if (!per_node) {
    if (layout.tasks == 1) layout.nodes = 1;
    return layout;
  }
  const auto each = count_value(*per_node, counts);
  layout.nodes =
      each && *each > 0 && layout.tasks ? std::optional((*layout.tasks + *each - 1) / *each) : std::nullopt;
  return layout;
}

}  // namespace

JobCounts counts_of(const SlurmRequest& request) {
  JobCounts counts;
  const bool names_nodes = request.find("--nodes") != nullptr;
  const bool names_tasks = request.find("--ntasks") != nullptr;
  if (names_nodes) counts.nodes = request.nodes();
  if (names_nodes || names_tasks) counts.tasks = request.tasks();
  counts.tasks_per_node = request.tasks_per_node();
  counts.gpus_per_node = request.gpus_per_node();
  return counts;
}

std::optional<std::uint64_t> count_value(std::string_view text, const JobCounts& counts) {
  text = trim(text);
  if (!text.starts_with("$((")) return single_value(text, counts);
  if (!text.ends_with("))")) return std::nullopt;
  std::uint64_t product = 1;
  for (std::string_view factor : split(text.substr(3, text.size() - 5), '*')) {
    const auto value = single_value(trim(factor), counts);
    if (!value) return std::nullopt;
    product = std::min(product * *value, kMaxCount);
  }
  return product;
}

std::optional<std::uint64_t> TaskLayout::tasks_per_node() const {
  if (!tasks || !nodes || *nodes == 0) return std::nullopt;
  return (*tasks + *nodes - 1) / *nodes;
}

std::optional<std::string> option_value(const std::vector<std::string>& words,
                                        std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    const bool is_letter = name.size() == 2;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (word == name) return i + 1 < words.size() ? words[i + 1] : "";
      if (!word.starts_with(name)) continue;
      const std::string_view rest = std::string_view(word).substr(name.size());
      if (rest.starts_with('=')) return std::string(rest.substr(1));
      if (is_letter && (rest.front() == '$' || (rest.front() >= '0' && rest.front() <= '9')))
        return std::string(rest);
    }
  }
  return std::nullopt;
}

TaskLayout layout_of(const ProgramCall& launcher, const JobCounts& counts) {
  const std::vector<std::string> options = launcher_options(launcher);
  return launcher.program == "srun" ? layout_of_srun(options, counts)
                                    : layout_of_mpirun(launcher.program, options, counts);
}

}  // namespace stoker::script_lint
