#include "job/settings.h"

#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "job/learning_settings.h"
#include "job/profile_settings.h"
#include "job/queue_settings.h"
#include "job/train_settings.h"

namespace stoker::job {
namespace {

using config::bind;
using config::Setting;
using config::SettingReader;
using config::SettingWriter;
using config::Type;

// `run` is a list of words, or a map with `shell`.
void read_words(const SettingReader& reader, std::string_view key, std::string_view, Job& job) {
  if (const auto* words = reader.effective().find<std::vector<std::string>>(key))
    job.command = RunCommand{.arguments = *words, .is_shell = false};
}

void write_words(SettingWriter& writer, std::string_view key, std::string_view, const Job& job) {
  if (job.command && !job.command->is_shell) writer(key, job.command->arguments);
}

void read_shell(const SettingReader& reader, std::string_view key, std::string_view, Job& job) {
  if (const auto* text = reader.effective().find<std::string>(key))
    job.command = RunCommand{.arguments = {"/bin/sh", "-c", *text}, .is_shell = true};
}

void write_shell(SettingWriter& writer, std::string_view key, std::string_view, const Job& job) {
  if (job.command && job.command->is_shell) writer(key, job.command->arguments.back());
}

// A parameter that is a number is written as a number.
void write_param(SettingWriter& writer, std::string_view key, std::string_view name, const Job& job) {
  const std::string& text = job.params.at(std::string(name));
  double number = 0;
  if (parse_number(text, &number) && format("{}", number) == text) return writer(key, number);
  writer(key, text);
}

consteval JobSetting written_by(void (*write)(SettingWriter&, std::string_view, std::string_view, const Job&),
                                JobSetting bound) {
  bound.write = write;
  return bound;
}

// `Member` of the part of the job file with the helper's name.
template <auto Member>
consteval JobSetting resources(Setting setting) {
  return bind<&Job::resources, Member>(setting);
}
template <auto Member>
consteval JobSetting slurm(Setting setting) {
  return bind<&Job::slurm, Member>(setting);
}
template <auto Member>
consteval JobSetting environment(Setting setting) {
  return bind<&Job::environment, Member>(setting);
}
template <auto Member>
consteval JobSetting code(Setting setting) {
  return bind<&Job::code, Member>(setting);
}
template <auto Member>
consteval JobSetting stage(Setting setting) {
  return bind<&Job::stage, Member>(setting);
}
template <auto Member>
consteval JobSetting checkpoint(Setting setting) {
  return bind<&Job::checkpoint, Member>(setting);
}
template <auto Member>
consteval JobSetting record(Setting setting) {
  return bind<&Job::record, Member>(setting);
}
template <auto Member>
consteval JobSetting timeouts(Setting setting) {
  return bind<&Job::timeouts, Member>(setting);
}

constexpr std::array kCommand = {
    bind<&Job::name>({.key = "name",
                      .unset = "the name of the job file's folder",
                      .help = "Name of the runs: letters, digits, '.', '_' and '-', at most 64."}),
    bind<&Job::working_directory>({.key = "working_directory",
                                   .unset = "the job file's folder",
                                   .help = "Folder in which the ranks run."}),
    JobSetting{
        .setting = {.key = "run",
                    .type = Type::words,
                    .unset = "`train` is set",
                    .help =
                        "Command that every rank executes, split by shell quoting and run without a shell."},
        .read = &read_words,
        .write = &write_words},
    JobSetting{
        .setting = {.key = "run.shell", .help = "Command line for /bin/sh, in place of `run: COMMAND`."},
        .read = &read_shell,
        .write = &write_shell},
};

constexpr std::array kRun = {
    written_by(&write_param,
               bind<&Job::params>({.key = "params.*",
                                   .unset = "none",
                                   .help = "User-defined value, used elsewhere as ${params.NAME}."})),

    resources<&Resources::nodes>({.key = "resources.nodes",
                                  .fallback = "1",
                                  .at_least = 1,
                                  .at_most = 10000,
                                  .help = "Number of nodes; 1 outside an allocation."}),
    resources<&Resources::ranks_per_node>({.key = "resources.ranks_per_node",
                                           .fallback = "1",
                                           .at_least = 1,
                                           .at_most = 1024,
                                           .help = "Number of processes started on each node.",
                                           .note = "RANK, LOCAL_RANK and WORLD_SIZE are derived from it."}),
    resources<&Resources::ranks>(
        {.key = "resources.ranks",
         .unset = "nodes x ranks_per_node",
         .at_least = 1,
         .at_most = 1e6,
         .help = "Number of processes on all nodes together, for nodes with unequal numbers: 7 on 2 nodes "
                 "are 4 and 3, or as the allocation defines."}),
    resources<&Resources::cpus_per_rank>({.key = "resources.cpus_per_rank",
                                          .unset = "the available cores, divided evenly",
                                          .at_least = 1,
                                          .at_most = 4096,
                                          .help = "Number of cores each rank may use."}),
    resources<&Resources::gpus_per_rank>(
        {.key = "resources.gpus_per_rank",
         .fallback = "0",
         .at_least = 0,
         .at_most = 64,
         .help = "GPUs of each rank. Every rank sees the GPUs of its whole node, in order of LOCAL_RANK "
                 "(CUDA_VISIBLE_DEVICES); `stoker submit` requests as many.",
         .note = "0: any number is visible."}),
    resources<&Resources::ranks_per_gpu>(
        {.key = "resources.ranks_per_gpu",
         .fallback = "1",
         .at_least = 1,
         .at_most = 64,
         .help = "Number of ranks that share a GPU; above 1 every rank sees exactly one GPU "
                 "(CUDA_VISIBLE_DEVICES), and this number decides how many GPUs are requested."}),
    resources<&Resources::memory_per_node>({.key = "resources.memory_per_node",
                                            .unset = "the partition's default",
                                            .at_least = 1048576,
                                            .help = "Memory to request with `stoker submit`.",
                                            .note = "Used in the queue only."}),
    resources<&Resources::time>({.key = "resources.time",
                                 .unset = "no limit; in the queue the partition's default",
                                 .at_least = 1,
                                 .help = "Time limit of the run; in the queue, the job's time limit."}),

    bind<&Job::site>(
        {.key = "site",
         .fallback = "auto",
         .help = "Profile of the cluster (`stoker site list`) that a submitted job is checked against: "
                 "`auto` detects the current cluster, `none` skips the check."}),
    slurm<&SlurmOptions::account>({.key = "slurm.account",
                                   .unset = "your default account",
                                   .help = "Account that a submitted job is charged to."}),
    slurm<&SlurmOptions::partition>({.key = "slurm.partition",
                                     .unset = "the cluster's default partition",
                                     .help = "Partition of a submitted job; separate several with commas."}),
    slurm<&SlurmOptions::qos>(
        {.key = "slurm.qos", .unset = "your default", .help = "Quality of service of a submitted job."}),
    slurm<&SlurmOptions::reservation>(
        {.key = "slurm.reservation", .unset = "none", .help = "Reservation of a submitted job."}),
    slurm<&SlurmOptions::extra>(
        {.key = "slurm.extra",
         .unset = "none",
         .help = "Additional options for sbatch, one per entry: [--constraint=v100, --exclusive]."}),

    environment<&Environment::modules>(
        {.key = "environment.modules",
         .unset = "none",
         .help = "Modules to load with `module load` before the ranks start, locally or on the job's "
                 "first node: [python/3.11, cuda]."}),
    environment<&Environment::conda>(
        {.key = "environment.conda",
         .unset = "none",
         .help = "Conda environment to activate after the modules are loaded, by name or folder."}),
    environment<&Environment::venv>(
        {.key = "environment.venv",
         .unset = "none",
         .help = "Python virtual environment whose programs are found first, or a requirements file from "
                 "which every node builds an environment on its local disk."}),
    environment<&Environment::container>(
        {.key = "environment.container",
         .unset = "none",
         .help = "Charliecloud image to run the ranks in: a folder or a SquashFS file."}),
    environment<&Environment::wheelhouse>(
        {.key = "environment.wheelhouse",
         .unset = "pip's own configuration",
         .help = "Folder of wheels; packages of `venv` are installed only from here."}),
    environment<&Environment::variables>({.key = "environment.variables.*",
                                          .unset = "none",
                                          .help = "Environment variable for every rank.",
                                          .names = config::Names::as_written}),

    code<&CodeOptions::snapshot>(
        {.key = "code.snapshot",
         .fallback = "false",
         .help = "Run from a read-only copy of the repository's current files, including changed and new "
                 "ones; relative paths in the command refer to the copy."}),
    code<&CodeOptions::untracked_limit>(
        {.key = "code.untracked_limit",
         .fallback = "10MB",
         .at_least = 0,
         .help = "Leave files that git does not track out of the copy if they are larger than this."}),

    bind<&Job::data, &DataSource::source>(
        {.key = "data.*.source",
         .help = "Folder of a packed dataset; the ranks find it in STOKER_DATA_<NAME>."}),
    bind<&Job::data, &DataSource::split>(
        {.key = "data.*.split", .unset = "the dataset's only split", .help = "Split of the dataset to use."}),
    bind<&Job::data, &DataSource::place>(
        {.key = "data.*.place",
         .fallback = "shared",
         .help = "Where the ranks read it: shared (where it is), local (copied to the cache on the disk of "
                 "each node), memory (copied to a RAM disk), or auto (local if that pays)."}),
    bind<&Job::data, &DataSource::start>(
        {.key = "data.*.start",
         .fallback = "auto",
         .help = "When the ranks start, with `place`: complete (all shards are copied), first-shards (the "
                 "first are; Stoker's loaders read others at the source until their copy is there), or auto "
                 "(first-shards for `train`, else complete)."}),

    stage<&StageOptions::unpack>(
        {.key = "stage.unpack",
         .unset = "none",
         .help = "Archives (tar, tar.zst, tar.gz, zip) to unpack on every node's local disk before the "
                 "ranks start.",
         .note = "The ranks find the files in STOKER_STAGE_DIR."}),
    stage<&StageOptions::copy>(
        {.key = "stage.copy",
         .unset = "none",
         .help = "Files and folders to copy to every node's local disk before the ranks start."}),
    stage<&StageOptions::back>(
        {.key = "stage.back",
         .unset = "none",
         .help = "Files and folders in STOKER_STAGE_DIR to copy to the attempt's folder during the run and "
                 "after it, even if it failed."}),
    stage<&StageOptions::back_every>(
        {.key = "stage.back_every",
         .fallback = "1m",
         .help = "How often changed files of `stage.back` are copied while the ranks run; 0s: only at the "
                 "end."}),
    stage<&StageOptions::outside_links>(
        {.key = "stage.outside_links",
         .fallback = "false",
         .help =
             "Allow symbolic links in archives to point outside the folder that they are unpacked into."}),
    stage<&StageOptions::directory>({.key = "stage.directory",
                                     .unset = "SLURM_TMPDIR, TMPDIR or /tmp of each node",
                                     .help = "Folder on each node in which the run creates its own folder."}),
    stage<&StageOptions::timeout>({.key = "stage.timeout",
                                   .fallback = "30m",
                                   .at_least = 1,
                                   .help = "Time limit for staging before the ranks start."}),
    stage<&StageOptions::broadcast>(
        {.key = "stage.broadcast",
         .fallback = "true",
         .help =
             "Read each staged file and each shard of a dataset from its source once for all nodes, which "
             "send it to each other. Otherwise each node reads all of it."}),
    stage<&StageOptions::node_rate>(
        {.key = "stage.node_rate",
         .fallback = "0B",
         .help = "Bytes per second that a node sends to other nodes at most, and receives; 0B: no limit."}),

    checkpoint<&CheckpointOptions::directory>(
        {.key = "checkpoint.directory",
         .unset = "`checkpoints` in the run folder",
         .help = "Folder in which each run creates a folder with its name; the ranks find it in "
                 "STOKER_CHECKPOINT_DIR."}),
    checkpoint<&CheckpointOptions::local>(
        {.key = "checkpoint.local",
         .unset = "direct writes to shared storage",
         .help = "Folder on each node's local disk that `train` writes checkpoints to first; they are "
                 "copied to `directory` in the background.",
         .note = "A checkpoint counts as saved once it is in `directory`."}),
    checkpoint<&CheckpointOptions::every>(
        {.key = "checkpoint.every",
         .fallback = "1 epoch",
         .choices = "auto|steps|epochs",
         .at_least = 1,
         .help = "How often `train` saves (your own command decides for itself). `auto` chooses by Daly's "
                 "formula from the cost of a checkpoint and `mtbf`."}),
    checkpoint<&CheckpointOptions::mtbf>(
        {.key = "checkpoint.mtbf",
         .fallback = "1d",
         .at_least = 60,
         .help = "Mean time between failures of the whole job, used by `every: auto`."}),
    checkpoint<&CheckpointOptions::keep_last>({.key = "checkpoint.keep_last",
                                               .fallback = "3",
                                               .at_least = 1,
                                               .at_most = 1e6,
                                               .help = "Number of most recent checkpoints to keep."}),
    checkpoint<&CheckpointOptions::keep_every>(
        {.key = "checkpoint.keep_every",
         .fallback = "0s",
         .at_least = 0,
         .help = "Also keep the first checkpoint of each interval of this length: 6h; 0s keeps none."}),
    checkpoint<&CheckpointOptions::keep_best>(
        {.key = "checkpoint.keep_best",
         .fallback = "0",
         .at_least = 0,
         .at_most = 1e6,
         .help = "Number of checkpoints that are best by `metric` to keep as well; `train` then also "
                 "saves after each validation."}),
    checkpoint<&CheckpointOptions::metric>(
        {.key = "checkpoint.metric",
         .fallback = "val_top1",
         .choices = "val_top1|val_top5|val_loss",
         .help =
             "Metric for `keep_best`: the lowest value of a loss is best, the highest of any other metric."}),
    checkpoint<&CheckpointOptions::before_end>(
        {.key = "checkpoint.before_end",
         .fallback = "2m",
         .at_least = 0,
         .at_most = 86400,
         .help = "How long before the time limit of the run or of its allocation the ranks receive "
                 "SIGUSR1, the request to save and stop; at most a quarter of the limit, 0s for never.",
         .note = "Slurm may be a minute early or late."}),

    bind<&Job::launcher>(
        {.key = "launcher",
         .fallback = "srun",
         .help = "Within an allocation: srun starts one task per rank on all its nodes, single starts the "
                 "ranks on this node. torchrun: one torchrun per node starts that node's ranks, also "
                 "outside an allocation."}),
};

constexpr std::array kRecord = {
    record<&RecordOptions::directory>(
        {.key = "record.directory",
         .fallback = "runs",
         .help = "Folder in which run folders are created; a relative path starts at the current folder."}),
    record<&RecordOptions::metrics>({.key = "record.metrics",
                                     .fallback = "true",
                                     .help = "Record the metrics of every step and epoch of `train`."}),
    record<&RecordOptions::metrics_from>(
        {.key = "record.metrics_from",
         .unset = "auto",
         .help =
             "Where metrics of a `run` command come from, beside the calls of `stoker.log`: auto reads its "
             "output (progress bars, Hugging Face, Keras, JSON lines) and its TensorBoard, W&B, "
             "MLflow and Lightning files."}),
    record<&RecordOptions::metrics_regex>(
        {.key = "record.metrics_from.regex",
         .unset = "none",
         .help =
             "RE2 expression for the lines of the output, in place of `auto`: each named group is a metric, "
             "and the group `step` the step."}),
    record<&RecordOptions::receipts>({.key = "record.receipts",
                                      .fallback = "false",
                                      .help = "Record which samples each rank used in each step."}),
    record<&RecordOptions::trace>(
        {.key = "record.trace",
         .fallback = "0",
         .at_least = 0,
         .at_most = 10000,
         .help = "Number of first steps of each attempt of `train` to trace: phases and collectives of "
                 "each rank, for Perfetto."}),
    record<&RecordOptions::sample_every>(
        {.key = "record.sample_every",
         .fallback = "1s",
         .at_least = 0.1,
         .at_most = 3600,
         .help = "Interval between samples of each node: CPU, memory, I/O, network, GPUs, energy."}),

    record<&RecordOptions::mlflow>(
        {.key = "record.mlflow",
         .unset = "none",
         .help =
             "Address of an MLflow server, such as `http://host:5000`: `stoker track` sends the run to it "
             "while it runs."}),
    record<&RecordOptions::mlflow_experiment>({.key = "record.mlflow_experiment",
                                               .unset = "MLFLOW_EXPERIMENT_NAME, else the job's name",
                                               .help = "Experiment of the MLflow server."}),
    record<&RecordOptions::mlflow_register>(
        {.key = "record.mlflow_register",
         .unset = "none",
         .help =
             "Model of MLflow's registry: when the run is done, its newest checkpoint is stored as artifacts "
             "and becomes a version of this model."}),
    record<&RecordOptions::mlflow_register_path>(
        {.key = "record.mlflow_register_path",
         .unset = "the newest checkpoint",
         .help = "File or folder that is registered in place of a checkpoint; a relative path starts at the "
                 "working directory of the run."}),
    record<&RecordOptions::tensorboard>(
        {.key = "record.tensorboard",
         .fallback = "false",
         .help = "Write the points of the run to an event file for TensorBoard."}),
    record<&RecordOptions::wandb>(
        {.key = "record.wandb",
         .unset = "none",
         .help = "Project of Weights & Biases: write the run as an offline run for `wandb sync`."}),
    record<&RecordOptions::comet>(
        {.key = "record.comet",
         .unset = "none",
         .help = "Project of Comet: write the run as offline archives for `comet upload`."}),
    record<&RecordOptions::csv>({.key = "record.csv",
                                 .fallback = "false",
                                 .help = "Write the points of the run to one table, `track/points.csv`."}),

    timeouts<&Timeouts::start>({.key = "timeouts.start",
                                .fallback = "2m",
                                .at_least = 1,
                                .help = "Time limit until every rank has started."}),
    timeouts<&Timeouts::stall>({.key = "timeouts.stall",
                                .fallback = "10m",
                                .at_least = 1,
                                .help = "How long a rank may make no progress: no step and no CPU time."}),
    timeouts<&Timeouts::data>({.key = "timeouts.data",
                               .fallback = "5m",
                               .at_least = 1,
                               .help = "How long `train` waits for a batch of data."}),
    timeouts<&Timeouts::stopped>({.key = "timeouts.stopped",
                                  .fallback = "5s",
                                  .at_least = 1,
                                  .help = "How long a rank may be stopped by a signal."}),
    timeouts<&Timeouts::communication>(
        {.key = "timeouts.communication",
         .fallback = "10m",
         .at_least = 1,
         .help = "Time limit of one collective between the ranks of `train`."}),
    timeouts<&Timeouts::checkpoint>({.key = "timeouts.checkpoint",
                                     .fallback = "5m",
                                     .at_least = 1,
                                     .help = "How long a checkpoint waits for the other ranks' parts."}),
    timeouts<&Timeouts::grace>({.key = "timeouts.grace",
                                .fallback = "10s",
                                .at_least = 0,
                                .at_most = 3600,
                                .help = "Time between SIGTERM and SIGKILL when a run is stopped."}),
};

std::vector<JobSetting> joined(std::initializer_list<std::span<const JobSetting>> parts) {
  std::vector<JobSetting> all;
  for (std::span<const JobSetting> part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

std::span<const JobSetting> job_settings() {
  static const std::vector<JobSetting> kSettings =
      joined({kCommand, train_task_settings(), train_learning_settings(), train_computing_settings(), kRun,
              queue_settings(), profile_settings(), kRecord});
  return kSettings;
}

const config::Schema& schema() {
  static const std::vector<Setting> kSettings = config::declarations(job_settings());
  static const config::Schema kSchema(kSettings);
  return kSchema;
}

}  // namespace stoker::job

namespace stoker::config {

job::SaveInterval FieldType<job::SaveInterval>::read(const Value& value) {
  const auto& period = std::get<Period>(value);
  if (period.unit == "auto") return {.is_automatic = true};
  job::SaveInterval every{.time = period.time};
  (period.unit == "steps" ? every.steps : every.epochs) = static_cast<std::uint64_t>(period.count);
  return every;
}

Value FieldType<job::SaveInterval>::write(const job::SaveInterval& every) {
  if (every.is_automatic) return Period{.count = 0, .unit = "auto", .time = every.time};
  if (every.epochs > 0) return Period{static_cast<std::int64_t>(every.epochs), "epochs", Duration::zero()};
  if (every.steps > 0) return Period{static_cast<std::int64_t>(every.steps), "steps", Duration::zero()};
  return Period{.count = 0, .unit = "", .time = every.time};
}

DType FieldType<DType>::read(const Value& value) {
  for (const DType type : {DType::u8, DType::u32, DType::i32, DType::i64}) {
    if (to_lower(to_text(type)) == std::get<std::string>(value)) return type;
  }
  return DType::u16;
}

Value FieldType<DType>::write(DType field) { return to_lower(to_text(field)); }

}  // namespace stoker::config
