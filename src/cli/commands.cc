#include "cli/commands.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/version.h"

namespace stoker::cli {

// Each command has its own file, a declaration here and a line in the table below.
int init(std::span<const std::string> words, Output& out);
int check(std::span<const std::string> words, Output& out);
int hello(std::span<const std::string> words, Output& out);
int data_pack(std::span<const std::string> words, Output& out);
int data_info(std::span<const std::string> words, Output& out);
int data_index(std::span<const std::string> words, Output& out);
int data_diff(std::span<const std::string> words, Output& out);
int data_sample(std::span<const std::string> words, Output& out);
int data_lint(std::span<const std::string> words, Output& out);
int data_convert(std::span<const std::string> words, Output& out);
int data_merge(std::span<const std::string> words, Output& out);
int data_verify(std::span<const std::string> words, Output& out);
int data_bench(std::span<const std::string> words, Output& out);
int data_push(std::span<const std::string> words, Output& out);
int data_pull(std::span<const std::string> words, Output& out);
int data_purge(std::span<const std::string> words, Output& out);
int cache_stage(std::span<const std::string> words, Output& out);
int cache_list(std::span<const std::string> words, Output& out);
int cache_verify(std::span<const std::string> words, Output& out);
int cache_purge(std::span<const std::string> words, Output& out);
int cache_why(std::span<const std::string> words, Output& out);
int checkpoint_list(std::span<const std::string> words, Output& out);
int checkpoint_convert(std::span<const std::string> words, Output& out);
int checkpoint_latest(std::span<const std::string> words, Output& out);
int checkpoint_verify(std::span<const std::string> words, Output& out);
int checkpoint_diff(std::span<const std::string> words, Output& out);
int checkpoint_prune(std::span<const std::string> words, Output& out);
int run(std::span<const std::string> words, Output& out);
int resume(std::span<const std::string> words, Output& out);
int rerun(std::span<const std::string> words, Output& out);
int top(std::span<const std::string> words, Output& out);
int submit(std::span<const std::string> words, Output& out);
int wait(std::span<const std::string> words, Output& out);
int cancel(std::span<const std::string> words, Output& out);
int fetch(std::span<const std::string> words, Output& out);
int remote(std::span<const std::string> words, Output& out);
int rank(std::span<const std::string> words, Output& out);
int stage(std::span<const std::string> words, Output& out);
int shell(std::span<const std::string> words, Output& out);
int jupyter(std::span<const std::string> words, Output& out);
int notebook(std::span<const std::string> words, Output& out);
int status(std::span<const std::string> words, Output& out);
int logs(std::span<const std::string> words, Output& out);
int explain_command(std::span<const std::string> words, Output& out);
int report(std::span<const std::string> words, Output& out);
int compare(std::span<const std::string> words, Output& out);
int profile_command(std::span<const std::string> words, Output& out);
int environment_run(std::span<const std::string> words, Output& out);
int site_list(std::span<const std::string> words, Output& out);
int site_show(std::span<const std::string> words, Output& out);
int site_detect(std::span<const std::string> words, Output& out);
int lab_up(std::span<const std::string> words, Output& out);
int lab_down(std::span<const std::string> words, Output& out);
int lab_status(std::span<const std::string> words, Output& out);
int lab_env(std::span<const std::string> words, Output& out);
int lab_shell(std::span<const std::string> words, Output& out);
int lab_logs(std::span<const std::string> words, Output& out);
int lab_fault(std::span<const std::string> words, Output& out);
int track_push(std::span<const std::string> words, Output& out);
int sweep(std::span<const std::string> words, Output& out);
int sweep_run(std::span<const std::string> words, Output& out);
int sweep_ask(std::span<const std::string> words, Output& out);
int sweep_tell(std::span<const std::string> words, Output& out);
int sweep_report(std::span<const std::string> words, Output& out);
int sweep_page(std::span<const std::string> words, Output& out);
int sweep_status(std::span<const std::string> words, Output& out);
int sweep_show(std::span<const std::string> words, Output& out);
int sweep_best(std::span<const std::string> words, Output& out);
int sweep_export(std::span<const std::string> words, Output& out);
int farm_tasks(std::span<const std::string> words, Output& out);
int build_trainer(std::span<const std::string> words, Output& out);
int completion(std::span<const std::string> words, Output& out);
int manual_page(std::span<const std::string> words, Output& out);
int json_schema(std::span<const std::string> words, Output& out);

std::span<const CommandEntry> commands() {
  static constexpr CommandEntry kCommands[] = {
      {"init", "Write a commented job file for this folder", init},
      {"check", "Validate a job file or a batch script", check},
      {"hello", "Test connectivity and bandwidth between ranks", hello},
      {"data pack", "Pack images into a dataset of shards", data_pack},
      {"data convert", "Convert a dataset to a different shard format", data_convert},
      {"data merge", "Merge the parts of a distributed packing", data_merge},
      {"data info", "Show the contents of a dataset or a file", data_info},
      {"data verify", "Verify a dataset against its index and checksums", data_verify},
      {"data bench", "Find the best loader settings for a dataset", data_bench},
      {"data lint", "Find problems in a source or a dataset", data_lint},
      {"data diff", "Compare two datasets", data_diff},
      {"data sample", "Show samples of a dataset on one page", data_sample},
      {"data index", "Index existing shards, or export an index", data_index},
      {"data push", "Copy a dataset to a host, and verify it there", data_push},
      {"data pull", "Copy a dataset from a host, verified", data_pull},
      {"data purge", "Remove copied datasets that are no longer used", data_purge},
      {"cache stage", "Copy a dataset to the node-local cache", cache_stage},
      {"cache list", "List the datasets of the node-local cache", cache_list},
      {"cache verify", "Compare every byte of the node-local cache", cache_verify},
      {"cache purge", "Remove datasets from the node-local cache", cache_purge},
      {"cache why", "Show whether a copy on the node-local disk pays", cache_why},
      {"run", "Run a job on this machine or in this allocation", run},
      {"submit", "Submit a job or a batch script to Slurm", submit},
      {"shell", "Open a shell in an allocation for a job", shell},
      {"jupyter", "Start a Jupyter server in an allocation for a job", jupyter},
      {"resume", "Resume a run from its last valid checkpoint", resume},
      {"rerun", "Run a job again from the start and list differences", rerun},
      {"status", "Show state, progress and speed of runs", status},
      {"top", "Show what each rank of a run is doing now", top},
      {"logs", "Show the output of the ranks of a run", logs},
      {"wait", "Wait until a run has ended", wait},
      {"cancel", "Cancel a run", cancel},
      {"explain", "Explain why a run or job failed, hangs or is pending", explain_command},
      {"fetch", "Copy a run from a remote machine", fetch},
      {"report", "Write a report: result, curves, time split", report},
      {"profile", "Show where the time of a step goes", profile_command},
      {"track push", "Send a run to MLflow, TensorBoard, W&B, Comet or a table", track_push},
      {"sweep", "Run the trials of a sweep file as jobs or here", sweep},
      {"sweep run", "Run a command as trials of a sweep", sweep_run},
      {"sweep ask", "Start a trial of a sweep and print its parameters", sweep_ask},
      {"sweep tell", "End a trial with its result", sweep_tell},
      {"sweep report", "Record a trial's metric: does the pruner stop it?", sweep_report},
      {"sweep status", "Show how a sweep proceeds", sweep_status},
      {"sweep show", "Show the trials of a sweep", sweep_show},
      {"sweep best", "Show the best trials of a sweep", sweep_best},
      {"sweep export", "Write the trials of a sweep as a table", sweep_export},
      {"sweep page", "Write a page about a sweep", sweep_page},
      {"farm", "Run many small tasks, here or in few allocations", farm_tasks},
      {"compare", "Compare runs: what differs, and whether the result does", compare},
      {"checkpoint list", "List the checkpoints of a run and their state", checkpoint_list},
      {"checkpoint latest", "Find the newest intact checkpoint of a folder", checkpoint_latest},
      {"checkpoint verify", "Verify every byte of a checkpoint", checkpoint_verify},
      {"checkpoint diff", "Compare two checkpoints tensor by tensor", checkpoint_diff},
      {"checkpoint convert", "Convert checkpoints to and from other formats", checkpoint_convert},
      {"checkpoint prune", "Remove old checkpoints", checkpoint_prune},
      {"site list", "List the known clusters and the current one", site_list},
      {"site show", "Show the profile of a cluster with its sources", site_show},
      {"site detect", "Write a profile for an unknown cluster", site_detect},
      {"lab up", "Start a Slurm cluster of several nodes on this machine", lab_up},
      {"lab status", "Show the labs, their nodes and jobs", lab_status},
      {"lab env", "Print shell lines that connect Slurm commands to a lab", lab_env},
      {"lab shell", "Open a shell or run a command on a node of a lab", lab_shell},
      {"lab logs", "Show the daemon logs of a lab", lab_logs},
      {"lab fault", "Inject a fault into a lab, or heal it", lab_fault},
      {"lab down", "Remove a lab", lab_down},
      {"build-trainer", "Build the trainer for the PyTorch of an environment", build_trainer},
      {"completion", "Print a completion script for bash, zsh or fish", completion},
      {"manual", "Print a man page, or write all man pages", manual_page},
      {"schema", "Print the JSON Schema of job files", json_schema},
      {"environment run", "Run a command in a node-local virtual environment (internal)", environment_run},
      {"stage", "Stage data on one node (internal)", stage},
      {"notebook", "Run the Jupyter server of `stoker jupyter` (internal)", notebook},
      {"remote", "Serve a remote `--host` command (internal)", remote},
      {"rank", "Run one rank of a job (internal)", rank},
  };
  return kCommands;
}

namespace {

// "data" of "data pack"; empty for a command without a group.
std::string_view group_of(const CommandEntry& entry) {
  const std::size_t space = entry.name.find(' ');
  return space == std::string_view::npos ? std::string_view{} : entry.name.substr(0, space);
}

bool is_group(std::string_view word) {
  return std::ranges::any_of(commands(), [&](const CommandEntry& entry) { return group_of(entry) == word; });
}

// All commands with their summaries, or the commands of a group.
std::string listing(std::string_view group = {}) {
  std::size_t widest = 0;
  for (const CommandEntry& entry : commands()) widest = std::max(widest, entry.name.size());
  std::string text;
  for (const CommandEntry& entry : commands()) {
    if (group.empty() || group_of(entry) == group)
      text += format("  {:<{}}  {}\n", entry.name, widest, entry.summary);
  }
  return text;
}

std::string overview() {
  return "Run training jobs on this machine or on a Slurm cluster.\n\nUsage: stoker COMMAND\n\n" + listing() +
         "\nRun `stoker COMMAND --help` for its options, `stoker --version` for the version.\n";
}

std::string group_overview(std::string_view group) {
  return format("Usage: stoker {} COMMAND\n\n{}\nRun `stoker {} COMMAND --help` for its options.\n", group,
                listing(group), group);
}

// Finds the command named by the first one or two arguments; `used` is their number.
const CommandEntry* find_command(std::span<const std::string> words, std::size_t* used) {
  for (std::size_t count : {2, 1}) {
    if (words.size() < count) continue;
    const std::string name = join(words.first(count), " ");
    for (const CommandEntry& entry : commands()) {
      if (entry.name == name) {
        *used = count;
        return &entry;
      }
    }
  }
  return nullptr;
}

Status unknown_command(std::span<const std::string> words) {
  const std::string& first = words[0];
  if (is_group(first)) {
    std::vector<std::string_view> verbs;
    for (const CommandEntry& entry : commands())
      if (group_of(entry) == first) verbs.push_back(entry.name.substr(first.size() + 1));
    return invalid("{}: unknown command '{}'{}", first, printable(words[1]), suggestion(words[1], verbs))
        .cure(format("stoker {} --help", first));
  }
  std::vector<std::string_view> starts;
  for (const CommandEntry& entry : commands()) starts.push_back(entry.name.substr(0, entry.name.find(' ')));
  return invalid("unknown command '{}'{}", printable(first), suggestion(first, starts)).cure("stoker --help");
}

bool is_help_flag(std::string_view word) { return word == "--help" || word == "-h" || word == "help"; }

// `stoker help run` is `stoker run --help`.
std::vector<std::string> normalize_help(std::span<const std::string> words) {
  if (words.size() < 2 || words[0] != "help") return {words.begin(), words.end()};
  std::vector<std::string> normalized(words.begin() + 1, words.end());
  normalized.emplace_back("--help");
  return normalized;
}

// Handles --help of the program and of a group; returns nothing for a command.
std::optional<int> print_overview(std::span<const std::string> words, Output& out) {
  if (words.empty() || is_help_flag(words[0])) {
    out.raw(overview());
    return words.empty() ? exit_code::kUsage : exit_code::kOk;
  }
  if (is_group(words[0]) && (words.size() == 1 || is_help_flag(words[1]))) {
    // A group may be a command itself.
    const std::span<const std::string> name = words.first(1);
    std::size_t used = 0;
    if (const CommandEntry* const entry = find_command(name, &used)) {
      const std::vector<std::string> help = {"--help"};
      (void)entry->run(help, out);
      out.raw("\n" + listing(words[0]));
      return words.size() == 1 ? exit_code::kUsage : exit_code::kOk;
    }
    out.raw(group_overview(words[0]));
    return words.size() == 1 ? exit_code::kUsage : exit_code::kOk;
  }
  return std::nullopt;
}

}  // namespace

manual::ProgramText program_text() {
  manual::ProgramText program{.version = std::string(version()), .commands = {}};
  for (const CommandEntry& entry : commands()) {
    manual::CommandText& command = program.commands.emplace_back();
    Output receiver(&command);
    entry.run({}, receiver);
    command.headline = entry.summary;
  }
  return program;
}

bool wants_json(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--json") return true;
  }
  return false;
}

int dispatch(std::span<const std::string> args, Output& out) {
  const std::vector<std::string> normalized = normalize_help(args);
  const std::span<const std::string> words = normalized;
  if (const std::optional<int> printed = print_overview(words, out)) return *printed;
  std::size_t used = 0;
  const CommandEntry* entry = find_command(words, &used);
  if (entry == nullptr) return out.fail(unknown_command(words));
  return entry->run(words.subspan(used), out);
}

}  // namespace stoker::cli
