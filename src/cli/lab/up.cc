// `stoker lab up`: docs/commands/lab-up.md
#include "lab/up.h"

#include <array>
#include <unistd.h>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "base/stopwatch.h"
#include "cli/commands.h"
#include "cli/lab/lab_name.h"

namespace stoker::cli {
namespace {

struct UpOptions {
  std::string name = "lab1";
  std::int64_t nodes = 4;
  std::int64_t cpus = 2;
  std::int64_t gpus = 2;
  std::int64_t max_array_size = 1001;
  std::string mode;
  std::optional<std::int64_t> owner;
  bool has_accounting = false;
  bool is_pinned = false;
};

// A value beyond int is clamped, and src/lab rejects it like the largest int.
int clamped(std::int64_t value) {
  return static_cast<int>(std::clamp<std::int64_t>(value, INT32_MIN, INT32_MAX));
}

Result<lab::Options> lab_options(const UpOptions& o) {
  lab::Options options;
  options.name = o.name;
  options.nodes = clamped(o.nodes);
  options.cpus = clamped(o.cpus);
  options.gpus = clamped(o.gpus);
  options.max_array_size = clamped(o.max_array_size);
  options.has_accounting = o.has_accounting;
  options.is_pinned = o.is_pinned;
  options.owner = clamped(o.owner.value_or(0));
  if (o.owner && *o.owner < 1) return invalid("lab: --owner {}: must be the id of a process", *o.owner);
  options.mode = ::geteuid() == 0 ? lab::LabMode::namespaces : lab::LabMode::processes;
  if (!o.mode.empty()) {
    STOKER_ASSIGN_OR_RETURN(mode, lab::parse_mode(o.mode));
    options.mode = mode;
  }
  return options;
}

// "n1-n4, 10.77.1.1-4"; in processes mode "n1-n4 on 127.0.0.1".
std::string where(const lab::Lab& lab) {
  const lab::LabNode& first = lab.nodes.front();
  const lab::LabNode& last = lab.nodes.back();
  const bool is_one = lab.nodes.size() == 1;
  const std::string names = is_one ? first.name : format("{}-{}", first.name, last.name);
  if (lab.mode == lab::LabMode::processes) return format("{} on this host's address", names);
  if (is_one) return format("{}, {}", names, first.address);
  return format("{}, {}-{}", names, first.address, last.address.substr(last.address.rfind('.') + 1));
}

std::string to_json(const lab::Lab& lab, double seconds) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const lab::LabNode& node : lab.nodes)
    nodes.push_back({{"name", node.name}, {"address", node.address}});
  const nlohmann::ordered_json json = {{"name", lab.name},
                                       {"folder", lab.folder.string()},
                                       {"mode", lab::to_text(lab.mode)},
                                       {"slurm", lab.slurm_version},
                                       {"slurm_conf", lab.slurm_conf().string()},
                                       {"accounting", lab.has_accounting},
                                       {"nodes", nodes},
                                       {"seconds", seconds}};
  return json_text(json);
}

}  // namespace

int lab_up(std::span<const std::string> words, Output& out) {
  UpOptions o;
  Arguments arguments("lab up", "Start a real Slurm cluster of several nodes on this machine.");
  add_lab_name(arguments, &o.name);
  arguments.option("--nodes", &o.nodes, "N", "Set the number of nodes, up to 64");
  arguments.option("--cpus", &o.cpus, "N", "Set the CPUs per node in Slurm");
  arguments.option("--gpus", &o.gpus, "N", "Set the simulated GPUs per node");
  arguments.option("--mode", &o.mode, "MODE",
                   "namespaces: each node has its own address and name (default for root); processes: all "
                   "nodes share this host's");
  arguments.choices(std::array{to_text(lab::LabMode::namespaces), to_text(lab::LabMode::processes)});
  arguments.option("--max-array-size", &o.max_array_size, "N", "Set Slurm's MaxArraySize");
  arguments.flag("--accounting", &o.has_accounting, "Start slurmdbd with a private MariaDB, for sacct");
  arguments.flag("--pin", &o.is_pinned, "Pin each node to one core, so that two nodes are faster than one");
  arguments.option("--owner", &o.owner, "PID", "Remove the lab when this process exits");
  arguments.example("stoker lab up --nodes 4");
  arguments.example("stoker lab up --name acct --accounting --owner $$");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto options = lab_options(o);
  if (!options) return out.fail(options.error());
  install_stop_signals();
  const Stopwatch watch;
  const auto progress = out.progress(format("{}: starting Slurm", printable(o.name)));
  const auto lab = lab::up(*options, *progress);
  if (!lab) return out.fail(lab.error());
  const double seconds = watch.seconds();
  const std::string name = o.name == "lab1" ? "" : " --name " + o.name;
  out.line("{}: {} ({}), Slurm {}, up in {:.1f} s", lab->name, counted(lab->nodes.size(), "node"),
           where(*lab), lab->slurm_version, seconds);
  out.line("  eval \"$(stoker lab env{})\"       then sbatch, srun, squeue work as on any cluster", name);
  out.json(to_json(*lab, seconds));
  return exit_code::kOk;
}

}  // namespace stoker::cli
