#include "job/check.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "slurm/script/batch_script.h"

namespace stoker::job {
namespace {

using config::Effective;
using config::Mistakes;
using config::Origin;

// Set for every rank by Stoker itself (docs/environment.md). MASTER_PORT is no part of it: it is a wish.
constexpr std::array<std::string_view, 6> kContract = {
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR"};

// `run` is a value, or a map of its own.
bool has_run(const Effective& effective) {
  return effective.has_group("run") || effective.entries().contains("run");
}

void check_what_runs(const Effective& effective, const Origin& file, Mistakes& mistakes) {
  if (!has_run(effective) && !effective.has_group("train"))
    mistakes.add(file, "neither 'run' nor 'train' says what to run");
}

void check_names(const Effective& effective, const Job& job, Mistakes& mistakes) {
  const bool is_good = !job.name.empty() && job.name.size() <= 64 && job.name.front() != '.' &&
                       std::all_of(job.name.begin(), job.name.end(), is_name_character);
  if (!is_good && effective.entries().contains("name")) {
    mistakes.add(
        effective.origin("name"),
        format("name: '{}' does not fit: letters, digits, '.', '_' and '-', at most 64, no '.' first",
               printable(job.name)));
  }
  for (const auto& [name, source] : job.data) {
    const bool is_lower = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!is_lower) {
      mistakes.add(effective.origin(format("data.{}", name)),
                   format("data.{}: lower-case letters, digits and '_' only, for STOKER_DATA_{}", name,
                          config::variable_name(name)));
    }
    if (source.split && (source.split->empty() ||
                         !std::all_of(source.split->begin(), source.split->end(), is_name_character))) {
      mistakes.add(effective.origin(format("data.{}.split", name)),
                   format("data.{}.split: '{}' is no split's name", name, printable(*source.split)));
    }
  }
  for (const auto& [name, value] : job.environment.variables) {
    const std::string key = format("environment.variables.{}", name);
    if (name.find('-') != std::string::npos) {
      mistakes.add(effective.origin(key), format("{}: a variable's name has no '-'", key));
    } else if (name.starts_with("STOKER_") ||
               std::find(kContract.begin(), kContract.end(), name) != kContract.end()) {
      mistakes.add(effective.origin(key), format("{}: is set by Stoker for every rank", key));
    } else if (name == "MASTER_PORT" && !is_port(value)) {
      mistakes.add(effective.origin(key), format("{}: '{}' is not a port", key, printable(value)));
    }
  }
}

void check_command(const Effective& effective, const Job& job, Mistakes& mistakes) {
  if (!job.command) return;
  const std::string& program = job.command->arguments.front();
  const std::size_t equals = program.find('=');
  if (job.command->is_shell) {
    if (trim(job.command->arguments.back()).empty())
      mistakes.add(effective.origin("run.shell"), "run.shell: is empty");
  } else if (equals != std::string::npos && config::is_name(program.substr(0, equals))) {
    mistakes.add(
        effective.origin("run"),
        format("run: '{}' is no program; write environment: {{variables: {{{}: {}}}}}", printable(program),
               program.substr(0, equals), config::yaml_scalar(program.substr(equals + 1))));
  }
}

// How many ranks there are, and where. `ranks` alone decides the most of a node.
void complete_and_check_ranks(const Effective& effective, Resources& resources, Mistakes& mistakes) {
  if (resources.ranks_per_gpu > 1 && resources.gpus_per_rank > 1) {
    mistakes.add(
        effective.origin("resources.ranks_per_gpu"),
        format("resources.ranks_per_gpu: {} ranks share a GPU, and resources.gpus_per_rank gives each {}",
               resources.ranks_per_gpu, resources.gpus_per_rank));
  }
  if (!resources.ranks) return;
  const std::uint32_t ranks = *resources.ranks;
  const Origin origin = effective.origin("resources.ranks");
  if (effective.origin("resources.ranks_per_node").layer() == config::Layer::built_in) {
    resources.ranks_per_node = (ranks + resources.nodes - 1) / resources.nodes;
  }
  if (ranks < resources.nodes) {
    mistakes.add(origin,
                 format("resources.ranks: {} leave one of {} nodes without a rank", ranks, resources.nodes));
  } else if (ranks > resources.nodes * resources.ranks_per_node) {
    mistakes.add(origin, format("resources.ranks: {} are more than {} nodes x {} ranks_per_node", ranks,
                                resources.nodes, resources.ranks_per_node));
  }
}

// Names that reach a command line of `module` or conda, where a dash would begin an option.
void check_environment(const Effective& effective, const job::Environment& environment, Mistakes& mistakes) {
  const auto is_name = [](const std::string& name) {
    return !name.empty() && name.size() <= 256 && name.front() != '-' &&
           std::all_of(name.begin(), name.end(),
                       [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; });
  };
  for (const std::string& module : environment.modules) {
    if (!is_name(module))
      mistakes.add(effective.origin("environment.modules"),
                   format("environment.modules: '{}' is no module's name", printable(module)));
  }
  if (environment.conda && !is_name(*environment.conda)) {
    mistakes.add(effective.origin("environment.conda"),
                 format("environment.conda: '{}' is no environment's name", printable(*environment.conda)));
  }
  if (environment.container && environment.venv) {
    mistakes.add(effective.origin("environment.container"),
                 "environment.container: has its own Python; leave `venv` out");
  }
  if (environment.wheelhouse && !environment.venv) {
    mistakes.add(effective.origin("environment.wheelhouse"),
                 "environment.wheelhouse: nothing is made from it without `venv`");
  }
}

// What goes into a batch script is quoted there; here is only refused what can mean nothing.
void check_slurm(const Effective& effective, const job::SlurmOptions& slurm, Mistakes& mistakes) {
  const auto check_word = [&](std::string_view key, const std::optional<std::string>& word) {
    if (!word) return;
    const bool is_word = !word->empty() && word->size() <= 256 && word->front() != '-' &&
                         std::all_of(word->begin(), word->end(), [](char c) {
                           return static_cast<unsigned char>(c) > 0x20 && c != 0x7f;
                         });
    if (!is_word) mistakes.add(effective.origin(key), format("{}: '{}' is no name", key, printable(*word)));
  };
  check_word("slurm.account", slurm.account);
  check_word("slurm.partition", slurm.partition);
  check_word("slurm.qos", slurm.qos);
  check_word("slurm.reservation", slurm.reservation);
  for (const std::string& option : slurm.extra) {
    const Status status = slurm::check_extra(option);
    if (!status.ok())
      mistakes.add(effective.origin("slurm.extra"), format("slurm.extra: {}", status.message()));
  }
}

// What cannot be among the jobs of one run.
void check_many_jobs(const Effective& effective, const Job& job, Mistakes& mistakes) {
  if (job.chain.is_on() && job.array.is_on() && job.array.bundle.value_or(1) > 1) {
    mistakes.add(effective.origin("array.bundle"),
                 format("array.bundle: {}, but tasks that are chains share no job (chain, {})",
                        *job.array.bundle, effective.origin("chain").where()));
  }
  const bool is_short =
      job.chain.time_per_link && job.resources.time && *job.resources.time < *job.chain.time_per_link;
  if (is_short) {
    mistakes.add(
        effective.origin("chain.time_per_link"),
        format("chain.time_per_link: {} is more than resources.time, the time of all links together ({}, {})",
               duration_text(*job.chain.time_per_link), duration_text(*job.resources.time),
               effective.origin("resources.time").where()));
  }
  for (const std::string& option : job.slurm.extra) {
    if (!job.after.empty() && (option.starts_with("--dep") || option.starts_with("-d")))
      mistakes.add(effective.origin("after"),
                   format("after: beside '{}' of slurm.extra ({})", printable(option),
                          effective.origin("slurm.extra").where()));
  }
  for (const std::string& entry : job.after) {
    if (trim(entry).empty() || entry.size() > 4096)
      mistakes.add(effective.origin("after"),
                   format("after: '{}' is no job file and no run", printable(entry.substr(0, 40))));
  }
}

// What is wanted back lies below the folder on the node.
void check_stage(const Effective& effective, const job::StageOptions& stage, Mistakes& mistakes) {
  for (const std::string& name : stage.back) {
    const Path path = Path(name).lexically_normal();
    const bool is_inside =
        !name.empty() && path.is_relative() && path != "." && !path.string().starts_with("..");
    if (!is_inside) {
      mistakes.add(
          effective.origin("stage.back"),
          format("stage.back: '{}' is no name below STOKER_STAGE_DIR (as in results)", printable(name)));
    }
  }
}

}  // namespace

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

bool is_port(std::string_view text) {
  std::int64_t port = 0;
  return parse_number(text, &port) && port >= 1 && port <= 65535;
}

bool runs_one_thing(const Effective& effective, Mistakes& mistakes) {
  if (!has_run(effective) || !effective.has_group("train")) return true;
  mistakes.add(effective.origin("train"),
               format("'train' beside 'run' ({}): a job has one of them", effective.origin("run").where()));
  return false;
}

void complete_and_check(const Effective& effective, const Origin& file, Job& job, Mistakes& mistakes) {
  const bool is_readable = mistakes.empty();
  check_names(effective, job, mistakes);
  check_slurm(effective, job.slurm, mistakes);
  check_environment(effective, job.environment, mistakes);
  check_stage(effective, job.stage, mistakes);
  if (!is_readable) return;
  check_what_runs(effective, file, mistakes);
  check_command(effective, job, mistakes);
  complete_and_check_ranks(effective, job.resources, mistakes);
  check_many_jobs(effective, job, mistakes);
  if (job.train && mistakes.empty()) complete_and_check_train(effective, job, mistakes);
}

}  // namespace stoker::job
