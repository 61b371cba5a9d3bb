#include "explain/preflight/preflight.h"

#include <algorithm>
#include <filesystem>
#include <sched.h>
#include <unistd.h>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/pack/dvc/dvc.h"
#include "explain/preflight/notes.h"
#include "format/manifest.h"

namespace stoker::explain {
namespace {

// For programs that are asked for quotas.
constexpr std::chrono::milliseconds kPatience{700};

using formats::Manifest;
using formats::SplitInfo;

class Checker {
 public:
  Checker(const job::Job& job, const Surroundings& around, const Words& words)
      : job_(job), around_(around), notes_(job, words) {}

  Preflight run() {
    check_data();
    check_ranks();
    check_program();
    check_command(job_, notes_);
    check_folders();
    const std::optional<record::RunFolder> last = last_run(job_);
    check_files(job_, notes_);
    check_storage(job_, last, classes_, Deadline::after(kPatience), notes_);
    check_history(job_, last, versions_, notes_);
    check_ports(job_, around_, notes_);
    check_limits(around_, notes_);
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
                   notes_.say("its classes are not those of data.{}.source", training));
    }
  }

  // The manifest when everything about this entry is good.
  std::optional<Manifest> check_dataset(const std::string& name, const job::DataSource& source,
                                        bool is_for_trainer) {
    const std::string key = format("data.{}.source", name);
    Result<Manifest> manifest = formats::read_manifest(source.source);
    if (!manifest) {
      notes_.found("no-dataset", key, manifest.error());
      return std::nullopt;
    }
    versions_[name] = manifest->version;
    check_dvc(key, source.source);
    std::uint64_t samples = manifest->samples();
    // A command of the user's own gets the folder; only the trainer has to choose a split.
    if (source.split || is_for_trainer) {
      const Result<const SplitInfo*> split = manifest->split(source.split.value_or(""));
      if (!split) {
        notes_.found("no-split", format("data.{}.split", name), split.error());
        return std::nullopt;
      }
      samples = (*split)->samples;
      if (samples == 0) {
        notes_.found("empty-split", Level::job, format("data.{}.split", name), notes_.say("has no samples"));
        return std::nullopt;
      }
    }
    const std::string split = source.split ? std::string(notes_.say(", split {}", *source.split)) : "";
    notes_.fact("data", notes_.say("{}: {} version {}{}, {} samples, dataset of {}", name,
                                   printable(source.source.string()), manifest->short_version(), split,
                                   grouped(samples), rounded(ByteCount{manifest->bytes()})));
    return std::optional<Manifest>(std::move(*manifest));
  }

  // Number and size of its files: `stoker data verify --full` compares their MD5.
  void check_dvc(const std::string& key, const Path& dataset) {
    const auto dvc = data::dvc_of(dataset);
    if (!dvc) return notes_.found("dvc", key, dvc.error());
    if (!*dvc) return;
    NoProgress quiet;
    const auto compared = data::compare_with_dvc(dataset, **dvc, data::DvcDepth::sizes, 1, quiet);
    if (!compared) return notes_.found("dvc", key, compared.error());
    if (!compared->difference.empty())
      notes_.found("other-version", Level::job, key,
                   notes_.say("is of another version: {}", compared->difference),
                   data::dvc_cure(dataset, **dvc));
  }

  // What keeps a dataset from being opened is found by what looks at its files.
  void check_labels(const std::string& name, const Manifest& manifest) {
    if (job_.train->model == job::Model::gpt || !manifest.schema.has_labels) return;
    const job::DataSource& source = job_.data.at(name);
    const auto dataset = data::Dataset::open(source.source, source.split.value_or(""));
    if (!dataset.ok()) return;
    if (const Status labels = dataset->check_labels(); !labels.ok())
      notes_.found("no-class", format("data.{}.source", name), labels);
  }

  void check_training(const Manifest& manifest) {
    const job::TrainOptions& train = *job_.train;
    const std::string key = format("data.{}.source", train.training_data);
    const auto& components = manifest.schema.components;
    if (train.model == job::Model::gpt) return;  // takes any tokens, and its sequences are no samples
    const bool wants_images = train.model != job::Model::mlp;
    if (!wants_images && std::ranges::all_of(components, [](const auto& c) { return c.is_image; }))
      notes_.found("no-numbers", Level::job, key,
                   notes_.say("has only images, and train.model: mlp takes numbers"));
    if (wants_images &&
        std::none_of(components.begin(), components.end(), [](const auto& c) { return c.is_image; })) {
      notes_.found("no-images", Level::job, key, notes_.say("has no images, and train needs them"));
    }
    if (!manifest.schema.has_labels)
      notes_.found("no-labels", Level::job, key, notes_.say("has no labels, and train needs them"));
    const std::size_t classes = manifest.schema.classes.size();
    if (train.classes && *train.classes < classes) {
      notes_.found("too-few-classes", Level::job, "train.classes",
                   notes_.say("{} outputs for {} classes", *train.classes, classes),
                   notes_.say("leave train.classes out"));
    }
    const std::uint64_t step = std::uint64_t{train.batch} * job_.resources.world_size();
    const Result<const SplitInfo*> split =
        manifest.split(job_.data.at(train.training_data).split.value_or(""));
    if (split.ok() && (*split)->samples < step) {
      notes_.found("large-batch", Level::advice, "train.batch",
                   notes_.say("one step takes {} samples, and an epoch has {}", grouped(step),
                              grouped((*split)->samples)));
    }
  }

  void check_ranks() {
    const job::Resources& resources = job_.resources;
    const std::uint64_t asked = std::uint64_t{resources.ranks_per_node} * resources.cpus_per_rank.value_or(1);
    const std::uint32_t per_rank =
        resources.cpus_per_rank.value_or(std::max(1u, around_.cores / resources.ranks_per_node));
    const bool is_for_queue = around_.has_queue && !around_.allocation;
    if (is_for_queue) {
      // Judged by the site's profile.
    } else if (!around_.allocation && resources.nodes > 1) {
      notes_.found(
          "no-allocation", Level::job, "resources.nodes",
          notes_.say("{} nodes need an allocation, and this is one machine", resources.nodes),
          format("salloc --nodes {} --ntasks-per-node {}", resources.nodes, resources.ranks_per_node));
    } else if (around_.allocation && resources.nodes > around_.allocation->nodes.size()) {
      notes_.found("small-allocation", Level::job, "resources.nodes",
                   notes_.say("{} nodes, and allocation {} has {}", resources.nodes,
                              around_.allocation->job_id, around_.allocation->nodes.size()));
    } else if (!around_.allocation && asked > around_.cores) {
      notes_.found("few-cores", Level::time,
                   resources.cpus_per_rank ? "resources.cpus_per_rank" : "resources.ranks_per_node",
                   notes_.say("{} x {} cores asked for, and {} are at hand", resources.ranks_per_node,
                              resources.cpus_per_rank.value_or(1), around_.cores));
    }
    const std::string cores = per_rank == 1 ? notes_.say("1 core") : notes_.say("{} cores", per_rank);
    const std::string trained = job_.train ? std::string(notes_.say(", training on CPU over gloo")) : "";
    const std::string queued =
        is_for_queue && resources.nodes > 1 ? std::string(notes_.say(", by stoker submit")) : "";
    notes_.fact("ranks", format("{} x {} x {}{}{}", resources.nodes, resources.ranks_per_node, cores, trained,
                                queued));
  }

  void check_program() {
    const std::optional<Path>& venv = job_.environment.venv;
    // A file holds the requirements of one that is made when the job runs.
    const bool is_made = venv && path_exists(*venv) && !folder_exists(*venv);
    if (is_made) {
      notes_.fact("venv", notes_.say("made on every node of {}", printable(venv->string())));
    } else if (venv && !path_exists(*venv / "bin" / "python")) {
      notes_.found("no-venv", Level::job, "environment.venv",
                   notes_.say("{}: is no virtual environment: it has no bin/python",
                              printable(job_.environment.venv->string())),
                   format("python3 -m venv {}", shell_quote(job_.environment.venv->string())));
    }
    if (job_.train) {
      const Path trainer = around_.program_folder / "stoker-train";
      if (!is_program(trainer)) {
        notes_.found("no-trainer", Level::job, "train.model",
                     notes_.say("{}: is not there; this stoker was built without libtorch",
                                printable(trainer.string())));
      }
      return;
    }
    if (!job_.command || job_.command->is_shell) return;
    const std::vector<std::string>& words = job_.command->arguments;
    const std::optional<Path> program = find_program(words.front());
    if (!program) {
      notes_.found("no-program", Level::job, "run", why_no_program(words.front()));
      return;
    }
    notes_.fact("program", printable(program->string()));
    // An image has interpreters of its own.
    const Status first_line = job_.environment.container
                                  ? Status()
                                  : check_first_line(program->lexically_normal(), printable(words.front()));
    if (!first_line.ok()) notes_.found("no-interpreter", "run", first_line);
    const bool is_script =
        program->filename().string().starts_with("python") && words.size() > 1 && words[1].ends_with(".py");
    if (is_script && !path_exists(job_.working_directory / words[1])) {
      notes_.found("no-script", Level::job, "run",
                   notes_.say("{}: no such file in {}", printable(words[1]),
                              printable(job_.working_directory.string())));
    }
  }

  Said why_no_program(const std::string& name) const {
    if (name.find('/') == std::string::npos) return notes_.say("'{}' is not found in PATH", printable(name));
    return folder_exists(job_.working_directory / name)
               ? notes_.say("'{}' is a folder, not a program", printable(name))
               : notes_.say("'{}' is not an executable file", printable(name));
  }

  void check_folders() {
    if (!folder_exists(job_.working_directory)) {
      notes_.found("no-working-directory", Level::job, "working_directory",
                   notes_.say("{}: no such folder", printable(job_.working_directory.string())));
    }
    check_writable("record.directory", job_.record.directory);
    if (job_.checkpoint.directory) check_writable("checkpoint.directory", *job_.checkpoint.directory);
  }

  // The folder itself, or the nearest one above it in which it would be made.
  void check_writable(std::string_view key, const Path& folder) {
    const Path at = standing(folder);
    if (!folder_exists(at)) {
      notes_.found("no-folder", Level::job, key, notes_.say("{}: is not a folder", printable(at.string())));
    } else if (::access(at.c_str(), W_OK | X_OK) != 0) {
      notes_.found("not-writable", Level::job, key,
                   notes_.say("{}: may not be written to by you", printable(at.string())));
    } else if (key == "record.directory") {
      notes_.fact("runs", printable(folder.string()));
    } else {
      notes_.fact("checkpoint", printable(folder.string()));
    }
  }

  static bool is_program(const Path& path) {
    return ::access(path.c_str(), X_OK) == 0 && !folder_exists(path);
  }

  // As the rank will find it: the virtual environment first, relative names from the working directory.
  std::optional<Path> find_program(const std::string& name) const {
    if (name.find('/') != std::string::npos) {
      const Path path = job_.working_directory / name;
      return is_program(path) ? std::optional(path) : std::nullopt;
    }
    std::vector<Path> folders;
    if (job_.environment.venv) folders.push_back(*job_.environment.venv / "bin");
    for (std::string_view folder : split(around_.search_path, ':'))
      folders.push_back(job_.working_directory / folder);
    for (const Path& folder : folders) {
      if (is_program(folder / name)) return folder / name;
    }
    return std::nullopt;
  }

  const job::Job& job_;
  const Surroundings& around_;
  Notes notes_;
  std::uint64_t classes_ = 0;                    // of the training data
  std::map<std::string, std::string> versions_;  // of the data
};

}  // namespace

void Notes::found(std::string_view rule, Level level, std::string_view key, const Said& what,
                  std::string cure) {
  const std::string where = job_.origins.where(key);
  result_.findings.push_back({.rule = std::string(rule),
                              .level = level,
                              .what = format("{}: {}", key, what.text()),
                              .evidence = {{.where = where == "default" ? "by default" : where, .text = ""}},
                              .cure = std::move(cure)});
}

void Notes::found(std::string_view rule, std::string_view key, const Status& status) {
  found(rule, Level::job, key, quoted(std::string(status.message())), std::string(status.cure()));
}

void Notes::found_here(std::string_view rule, Level level, std::string subject, const Said& what,
                       std::string cure) {
  result_.findings.push_back({.rule = std::string(rule),
                              .level = level,
                              .what = format("{}: {}", subject, what.text()),
                              .evidence = {{.where = "here", .text = ""}},
                              .cure = std::move(cure)});
}

Path standing(const Path& folder) {
  Path at = folder;
  while (!path_exists(at) && at.has_relative_path()) at = at.parent_path();
  return at;
}

Result<Surroundings> look_around() {
  Surroundings around;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const bool knows = ::sched_getaffinity(0, sizeof(mask), &mask) == 0;
  around.cores = knows ? static_cast<std::uint32_t>(CPU_COUNT(&mask)) : 1;
  around.search_path = environment_value("PATH").value_or("/usr/bin:/bin");
  std::error_code error;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return posix_error("/proc/self/exe", error.value());
  around.program_folder = program.parent_path();
  OK_OR_RETURN(allocation, slurm::current_allocation(slurm::process_environment()));
  around.allocation = std::move(allocation);
  return around;
}

bool Preflight::is_ready() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& f) { return f.level == Level::job; });
}

Preflight preflight(const job::Job& job, const Surroundings& around, const Words& words) {
  return Checker(job, around, words).run();
}

}  // namespace stoker::explain
