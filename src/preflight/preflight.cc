#include "preflight/preflight.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sched.h>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "base/process.h"
#include "dataset/manifest.h"
#include "job/profile_settings.h"
#include "pack/dvc/dvc.h"
#include "pack/verify.h"
#include "preflight/chunks.h"
#include "preflight/command.h"
#include "preflight/files.h"
#include "preflight/gpus.h"
#include "preflight/last_run.h"
#include "preflight/notes.h"
#include "preflight/placement.h"
#include "preflight/python_dependencies.h"
#include "preflight/saving.h"
#include "preflight/shape.h"
#include "preflight/shell.h"
#include "preflight/storage.h"
#include "stoker/bytes.h"
#include "stoker/dataset.h"
#include "stoker/text.h"
#include "stoker/time.h"
#include "trainers/find.h"

namespace stoker::preflight {
namespace {

// For quota programs.
constexpr std::chrono::milliseconds kQuotaTimeout{700};
constexpr std::chrono::seconds kFindTorchTimeout{30};

using dataset::Manifest;
using dataset::SplitInfo;

class Checker {
 public:
  Checker(const job::Job& job, const HostContext& host) : job_(job), host_(host), notes_(job) {}

  Preflight run() {
    check_data();
    check_ranks();
    check_gpus(job_, host_, notes_);
    check_program();
    check_command(job_, notes_);
    check_launchers(job_, notes_);
    check_shape(job_, notes_);
    check_saving(job_, notes_);
    check_folders();
    const std::optional<record::RunFolder> last = last_run(job_);
    check_files(job_, notes_);
    if (host_.has_forecasts && notes_.is_ready()) {
      check_placement(job_, host_, notes_);
      check_staged_files(job_, notes_);
    }
    check_storage(job_, last, classes_, Deadline::after(kQuotaTimeout), notes_);
    check_data_version(job_, last, versions_, notes_);
    check_ports(job_, host_, notes_);
    check_limits(host_, notes_);
    return notes_.take();
  }

 private:
  void check_data() {
    const std::string training = job_.train ? job_.train->training_data : "";
    const std::string validation = job_.train ? job_.train->validation_data.value_or("") : "";
    std::optional<Manifest> trained;
    std::optional<Manifest> validated;
    for (const auto& [name, source] : job_.data) {
      std::optional<Manifest> manifest = check_dataset(name, source, name == training || name == validation);
      if (manifest && name == training) trained = manifest;
      if (manifest && name == validation) validated = std::move(manifest);
    }
    if (trained) {
      classes_ = trained->schema.classes.size();
      check_training(*trained);
      check_chunks(job_, *trained, notes_);
    }
    if (trained) check_labels(training, *trained);
    if (validated) check_labels(validation, *validated);
    if (trained && validated && trained->schema.classes != validated->schema.classes) {
      notes_.found("other-classes", Level::job, format("data.{}.source", validation),
                   message("its classes differ from data.{}.source", training));
    }
    // A dataset that does not suit the job has a different cure.
    if (!notes_.has_findings())
      for (const auto& [name, source] : job_.data) open_dataset(name, source);
  }

  // As every rank will, and the sizes of all shards.
  void open_dataset(const std::string& name, const job::DataSource& source) {
    const std::string key = format("data.{}.source", name);
    NoProgress quiet;
    const auto opened = pack::verify_dataset(source.source, pack::VerifyDepth::sizes, 1, quiet);
    if (!opened) return notes_.found("damaged-dataset", key, opened.error());
    if (opened->damages == 0) return;
    const pack::Damage& first = opened->damaged.front();
    notes_.found("damaged-dataset", Level::job, key,
                 opened->damages == 1
                     ? message("{}: expected {}, found {}", first.shard, first.expected, first.found)
                     : message("{} of its shards are missing or damaged: {}: expected {}, found {}",
                               opened->damages, first.shard, first.expected, first.found),
                 message("stoker data verify {}", shell_quote(source.source.string())));
  }

  // The manifest of a valid entry.
  std::optional<Manifest> check_dataset(const std::string& name, const job::DataSource& source,
                                        bool is_for_trainer) {
    const std::string key = format("data.{}.source", name);
    Result<Manifest> manifest = dataset::read_manifest(source.source);
    if (!manifest) {
      notes_.found("no-dataset", key, manifest.error());
      return std::nullopt;
    }
    versions_[name] = manifest->version;
    check_dvc(key, source.source);
    std::uint64_t samples = manifest->samples();
    // A user command gets the folder; only the trainer needs a split.
    if (source.split || is_for_trainer) {
      const Result<const SplitInfo*> split = manifest->split(source.split.value_or(""));
      if (!split) {
        notes_.found("no-split", format("data.{}.split", name), split.error());
        return std::nullopt;
      }
      samples = (*split)->samples;
      if (samples == 0) {
        notes_.found("empty-split", Level::job, format("data.{}.split", name), message("has no samples"));
        return std::nullopt;
      }
    }
    const Message split = source.split ? message(", split {}", *source.split) : "";
    const Message count = samples == 1 ? message("1 sample") : message("{} samples", grouped(samples));
    notes_.fact("data",
                message("{}: {} version {}{}, {}, dataset of {}", name, printable(source.source.string()),
                        manifest->short_version(), split, count, rounded(ByteCount{manifest->bytes()})));
    return std::optional<Manifest>(std::move(*manifest));
  }

  // Number and size of its files: `stoker data verify --full` compares their MD5.
  void check_dvc(const std::string& key, const Path& dataset) {
    const auto dvc = pack::find_dvc_file(dataset);
    if (!dvc) return notes_.found("dvc", key, dvc.error());
    if (!*dvc) return;
    NoProgress quiet;
    const auto compared = pack::compare_with_dvc(dataset, **dvc, pack::DvcDepth::sizes, 1, quiet);
    if (!compared) return notes_.found("dvc", key, compared.error());
    if (!compared->difference.empty())
      notes_.found("other-version", Level::job, key,
                   message("has a different version: {}", compared->difference),
                   pack::dvc_cure(dataset, **dvc));
  }

  // Other checks report datasets that cannot be opened.
  void check_labels(const std::string& name, const Manifest& manifest) {
    if (job_.train->model == job::ModelKind::gpt || !manifest.schema.has_labels) return;
    const job::DataSource& source = job_.data.at(name);
    const auto dataset = dataset::Dataset::open(source.source, source.split.value_or(""));
    if (!dataset.ok()) return;
    if (const Status labels = dataset->check_labels(); !labels.ok())
      notes_.found("no-class", format("data.{}.source", name), labels);
  }

  void check_training(const Manifest& manifest) {
    const job::TrainOptions& train = *job_.train;
    const std::string key = format("data.{}.source", train.training_data);
    const auto& components = manifest.schema.components;
    if (train.model == job::ModelKind::gpt) return;  // accepts any tokens; its sequences are not samples
    const bool wants_images = train.model != job::ModelKind::mlp;
    if (!wants_images && std::ranges::all_of(components, [](const auto& c) { return c.is_image; }))
      notes_.found("no-numbers", Level::job, key,
                   message("has only images, but train.model: mlp needs numbers"));
    if (wants_images &&
        std::none_of(components.begin(), components.end(), [](const auto& c) { return c.is_image; })) {
      notes_.found("no-images", Level::job, key, message("has no images, but train needs them"));
    }
    if (!manifest.schema.has_labels)
      notes_.found("no-labels", Level::job, key, message("has no labels, but train needs them"));
    const std::size_t classes = manifest.schema.classes.size();
    if (train.classes && *train.classes < classes) {
      notes_.found("too-few-classes", Level::job, "train.classes",
                   // several classes, more than outputs
                   message("{} outputs for {} classes", *train.classes, classes),
                   message("omit train.classes"));
    }
    const std::uint64_t step = std::uint64_t{train.batch} * job_.resources.world_size();
    const Result<const SplitInfo*> split =
        manifest.split(job_.data.at(train.training_data).split.value_or(""));
    if (split.ok() && (*split)->samples < step) {
      notes_.found(
          "large-batch", Level::advice, "train.batch",
          // several samples, more than there are
          message("one step needs {} samples, an epoch has {}", grouped(step), grouped((*split)->samples)));
    }
  }

  void check_ranks() {
    const job::Resources& resources = job_.resources;
    const std::uint64_t asked = std::uint64_t{resources.ranks_per_node} * resources.cpus_per_rank.value_or(1);
    const bool is_for_queue = host_.has_queue && !host_.allocation;
    const std::uint32_t available = std::max(1u, host_.cores / resources.ranks_per_node);
    // The cores of this machine do not count for a job that only the queue can run.
    const bool has_slurm_default = is_for_queue && resources.nodes > 1 && !resources.cpus_per_rank;
    const std::uint32_t per_rank = has_slurm_default ? 1 : resources.cpus_per_rank.value_or(available);
    if (is_for_queue && !resources.cpus_per_rank && job_.launcher != job::Launcher::torchrun)
      check_default_cores(available);
    if (is_for_queue) {
      // The site profile has the limits of the queue.
    } else if (!host_.allocation && resources.nodes > 1) {
      notes_.found(
          "no-allocation", Level::job, "resources.nodes",
          message("{} nodes need an allocation, this is one machine", resources.nodes),
          format("salloc --nodes {} --ntasks-per-node {}", resources.nodes, resources.ranks_per_node));
    } else if (host_.allocation && resources.nodes > host_.allocation->nodes.size()) {
      notes_.found("small-allocation", Level::job, "resources.nodes",
                   // several, more than the allocation's
                   message("{} nodes, but allocation {} has {}", resources.nodes, host_.allocation->job_id,
                           host_.allocation->nodes.size()));
    } else if (!host_.allocation && asked > host_.cores) {
      notes_.found("few-cores", Level::time,
                   resources.cpus_per_rank ? "resources.cpus_per_rank" : "resources.ranks_per_node",
                   message("{} x {} cores requested, {} available", resources.ranks_per_node,
                           resources.cpus_per_rank.value_or(1), host_.cores));
    }
    const Message cores = has_slurm_default ? message("1 core, Slurm's default")
                          : per_rank == 1   ? message("1 core")
                                            : message("{} cores", per_rank);
    const Message trained = job_.train ? message(", training on CPU over gloo") : "";
    const Message queued = is_for_queue && resources.nodes > 1 ? message(", with stoker submit") : "";
    notes_.fact("ranks", message("{} x {} x {}{}{}", resources.nodes, resources.ranks_per_node, cores,
                                 trained, queued));
  }

  // sbatch gives a task without --cpus-per-task one core.
  void check_default_cores(std::uint32_t available) {
    std::uint64_t share = 0;
    for (const auto& [name, node] : host_.site ? host_.site->nodes : std::map<std::string, job::SiteNode>()) {
      const bool has_gpus = job_.resources.gpus_per_node() > 0;
      if (has_gpus && node.cores_per_gpu)
        share =
            std::max<std::uint64_t>(share, *node.cores_per_gpu * std::max(1u, job_.resources.gpus_per_rank));
    }
    if (share == 0) share = std::max(2u, available);
    notes_.found("default-cores", Level::time, "resources.cpus_per_rank",
                 message("not set, and a submitted job gets 1 core per rank, Slurm's default"),
                 format("resources: {{cpus_per_rank: {}}}", share));
  }

  void check_program() {
    const std::optional<Path>& venv = job_.environment.venv;
    if (creates_venv(job_.environment)) {
      notes_.fact("venv", message("created on every node from {}", printable(venv->string())));
    } else if (venv && !path_exists(*venv / "bin" / "python")) {
      notes_.found("no-venv", Level::job, "environment.venv",
                   message("{}: is not a virtual environment: bin/python is missing",
                           printable(job_.environment.venv->string())),
                   format("python3 -m venv {}", shell_quote(job_.environment.venv->string())));
    }
    if (job_.train) {
      const auto trainer = trainers::find_trainer({host_.program_folder, venv, current_environment()},
                                                  Deadline::after(kFindTorchTimeout));
      // Modules and conda environments have their own torch, visible after they are loaded.
      const bool is_known = job_.environment.modules.empty() && !job_.environment.conda;
      if (!trainer.ok() && is_known) notes_.found("no-trainer", "train.model", trainer.error());
      return;
    }
    // An image has its own programs.
    if (!job_.command || job_.command->is_shell || job_.environment.container) return;
    const auto [tool, words] = job::split_profile_tool(job_.command->arguments);
    if (words.empty()) return;
    check_profile_tool(tool);
    const std::optional<Path> program = find_program(words.front());
    // python and the commands of the requirements exist only on the nodes.
    const bool is_created = creates_venv(job_.environment) && words.front().find('/') == std::string::npos;
    if (!program && !is_created) {
      notes_.found("no-program", Level::job, "run", program_error(words.front()));
      return;
    }
    if (program) {
      notes_.fact("program", printable(program->string()));
      const Status first_line = check_shebang(program->lexically_normal(), printable(words.front()));
      if (!first_line.ok()) notes_.found("no-interpreter", "run", first_line);
    }
    const std::string script = python_script(words);
    if (!script.empty() && !path_exists(job_.working_directory / script)) {
      notes_.found(
          "no-script", Level::job, "run",
          message("{}: no such file in {}", printable(script), printable(job_.working_directory.string())));
    }
  }

  // Modules and environments of Python may have it on the nodes.
  void check_profile_tool(const std::string& tool) {
    const job::Environment& environment = job_.environment;
    const bool is_known = environment.modules.empty() && !environment.conda && !environment.venv;
    if (tool.empty() || tool == "torch" || !is_known || find_program(tool)) return;
    const bool is_for_queue = host_.has_queue && !host_.allocation;
    notes_.found("no-tool", is_for_queue ? Level::advice : Level::job, "profile.tool",
                 message("'{}' was not found in PATH", printable(tool)));
  }

  Message program_error(const std::string& name) const {
    if (name.find('/') == std::string::npos) return message("'{}' was not found in PATH", printable(name));
    return folder_exists(job_.working_directory / name)
               ? message("'{}' is a folder, not a program", printable(name))
               : message("'{}' is not an executable file", printable(name));
  }

  void check_folders() {
    if (!folder_exists(job_.working_directory)) {
      notes_.found("no-working-directory", Level::job, "working_directory",
                   message("{}: no such folder", printable(job_.working_directory.string())));
    }
    check_writable("record.directory", job_.record.directory);
    if (job_.checkpoint.directory) check_writable("checkpoint.directory", *job_.checkpoint.directory);
  }

  // The folder, or its nearest existing parent.
  void check_writable(std::string_view key, const Path& folder) {
    const Path at = nearest_existing(folder);
    if (!folder_exists(at)) {
      notes_.found("no-folder", Level::job, key, message("{}: is not a folder", printable(at.string())));
    } else if (::access(at.c_str(), W_OK | X_OK) != 0) {
      notes_.found("not-writable", Level::job, key,
                   message("{}: no permission to write", printable(at.string())));
    } else if (key == "record.directory") {
      notes_.fact("runs", printable(folder.string()));
    } else {
      notes_.fact("checkpoint", printable(folder.string()));
    }
  }

  static bool is_program(const Path& path) {
    return ::access(path.c_str(), X_OK) == 0 && !folder_exists(path);
  }

  // Searches like the rank: the virtual environment first, relative names from the working directory.
  std::optional<Path> find_program(const std::string& name) const {
    if (name.find('/') != std::string::npos) {
      const Path path = job_.working_directory / name;
      return is_program(path) ? std::optional(path) : std::nullopt;
    }
    std::vector<Path> folders;
    if (job_.environment.venv) folders.push_back(*job_.environment.venv / "bin");
    for (std::string_view folder : split(host_.search_path, ':'))
      folders.push_back(job_.working_directory / folder);
    for (const Path& folder : folders) {
      if (is_program(folder / name)) return folder / name;
    }
    return std::nullopt;
  }

  const job::Job& job_;
  const HostContext& host_;
  Notes notes_;
  std::uint64_t classes_ = 0;                    // of the training data
  std::map<std::string, std::string> versions_;  // by dataset
};

}  // namespace

void Notes::found(std::string_view rule, Level level, std::string_view key, const Message& what,
                  Message cure) {
  const std::string where = job_.origins.where(key);
  result_.findings.push_back({.rule = std::string(rule),
                              .level = level,
                              .what = message("{}: {}", key, what),
                              .evidence = {{.where = where == "default" ? "by default" : where, .text = ""}},
                              .cure = std::move(cure)});
}

void Notes::found(std::string_view rule, std::string_view key, const Status& status) {
  found(rule, Level::job, key, std::string(status.message()), std::string(status.cure()));
}

void Notes::found_here(std::string_view rule, Level level, std::string subject, const Message& what,
                       Message cure) {
  result_.findings.push_back({.rule = std::string(rule),
                              .level = level,
                              .what = message("{}: {}", subject, what),
                              .evidence = {{.where = "here", .text = ""}},
                              .cure = std::move(cure)});
}

Path nearest_existing(const Path& folder) {
  Path at = folder;
  while (!path_exists(at) && at.has_relative_path()) at = at.parent_path();
  return at;
}

Result<HostContext> inspect_host() {
  HostContext host;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const bool knows = ::sched_getaffinity(0, sizeof(mask), &mask) == 0;
  host.cores = knows ? static_cast<std::uint32_t>(CPU_COUNT(&mask)) : 1;
  host.gpus = observe::GpuReader::open().devices();
  host.visible_gpus = environment_value("CUDA_VISIBLE_DEVICES");
  host.search_path = environment_value("PATH").value_or("/usr/bin:/bin");
  std::error_code error;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return posix_error("/proc/self/exe", error.value());
  host.program_folder = program.parent_path();
  STOKER_ASSIGN_OR_RETURN(allocation, slurm::current_allocation(slurm::process_environment()));
  host.allocation = std::move(allocation);
  return host;
}

bool Preflight::is_ready() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& f) { return f.level == Level::job; });
}

Preflight run_preflight(const job::Job& job, const HostContext& host) { return Checker(job, host).run(); }

}  // namespace stoker::preflight
