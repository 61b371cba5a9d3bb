#include "cli/commands.h"

#include <algorithm>
#include <vector>

#include "base/version.h"

namespace stoker::cli {

// The commands, each in a file of its own: a declaration here and a line in the table below.
int init(std::span<const std::string> words, Output& out);
int check(std::span<const std::string> words, Output& out);
int data_pack(std::span<const std::string> words, Output& out);
int data_info(std::span<const std::string> words, Output& out);
int data_index(std::span<const std::string> words, Output& out);
int data_diff(std::span<const std::string> words, Output& out);
int data_sample(std::span<const std::string> words, Output& out);
int data_lint(std::span<const std::string> words, Output& out);
int data_merge(std::span<const std::string> words, Output& out);
int data_verify(std::span<const std::string> words, Output& out);
int data_bench(std::span<const std::string> words, Output& out);
int checkpoint_list(std::span<const std::string> words, Output& out);
int checkpoint_verify(std::span<const std::string> words, Output& out);
int run(std::span<const std::string> words, Output& out);
int resume(std::span<const std::string> words, Output& out);
int submit(std::span<const std::string> words, Output& out);
int wait(std::span<const std::string> words, Output& out);
int cancel(std::span<const std::string> words, Output& out);
int rank(std::span<const std::string> words, Output& out);
int status(std::span<const std::string> words, Output& out);
int logs(std::span<const std::string> words, Output& out);
int report(std::span<const std::string> words, Output& out);
int lab_up(std::span<const std::string> words, Output& out);
int lab_down(std::span<const std::string> words, Output& out);
int lab_status(std::span<const std::string> words, Output& out);
int lab_env(std::span<const std::string> words, Output& out);
int lab_shell(std::span<const std::string> words, Output& out);
int lab_logs(std::span<const std::string> words, Output& out);
int lab_fault(std::span<const std::string> words, Output& out);

std::span<const CommandEntry> commands() {
  static constexpr CommandEntry kCommands[] = {
      {"init", "writes a commented job file for this folder", init},
      {"check", "whether a job file is right and what it needs is there", check},
      {"data pack", "images become a dataset of tar shards", data_pack},
      {"data merge", "ends a packing that several nodes shared", data_merge},
      {"data info", "what a dataset holds", data_info},
      {"data verify", "whether a dataset is as it was packed", data_verify},
      {"data bench", "which loader settings are best for a dataset, and what limits them", data_bench},
      {"data lint", "what lies in a source or dataset, and what is wrong with it", data_lint},
      {"data diff", "what differs between two datasets", data_diff},
      {"data sample", "some samples of a dataset on one page", data_sample},
      {"data index", "an index for shards of other tools, and for other tools", data_index},
      {"run", "runs a job here", run},
      {"submit", "puts a job into the queue of a Slurm cluster", submit},
      {"resume", "goes on with a run from its last valid checkpoint", resume},
      {"status", "runs at a glance: state, progress, speed", status},
      {"logs", "what the ranks of a run printed", logs},
      {"wait", "until a run is over", wait},
      {"cancel", "ends a run", cancel},
      {"report", "what a run was: result, curves, where the time went", report},
      {"checkpoint list", "the checkpoints of a run, and whether each is whole", checkpoint_list},
      {"checkpoint verify", "whether every byte of a checkpoint is as it was written", checkpoint_verify},
      {"lab up", "a real Slurm cluster of several nodes on this one machine", lab_up},
      {"lab status", "the labs that are up, their nodes and jobs", lab_status},
      {"lab env", "shell lines that make sbatch, srun and squeue speak to a lab", lab_env},
      {"lab shell", "a shell, or a command, on a node of a lab", lab_shell},
      {"lab logs", "what the daemons of a lab wrote", lab_logs},
      {"lab fault", "breaks something in a lab, and heals it again", lab_fault},
      {"lab down", "takes a lab away", lab_down},
      {"rank", "one rank of a run; `stoker run` starts these", rank},
  };
  return kCommands;
}

namespace {

std::string overview() {
  std::string text =
      "Takes a training from a folder of files to a fast, reproducible run.\n\nUsage: stoker COMMAND\n\n";
  std::size_t widest = 0;
  for (const CommandEntry& entry : commands()) widest = std::max(widest, entry.name.size());
  for (const CommandEntry& entry : commands())
    text += format("  {:<{}}  {}\n", entry.name, widest, entry.summary);
  return text + "\n`stoker COMMAND --help` explains one; --version tells which stoker this is.\n";
}

// The entry whose name the first one or two words are, and how many words that took.
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
  std::vector<std::string_view> verbs;
  std::vector<std::string_view> nouns;
  for (const CommandEntry& entry : commands()) {
    const std::size_t space = entry.name.find(' ');
    if (space != std::string_view::npos && entry.name.substr(0, space) == first) {
      verbs.push_back(entry.name.substr(space + 1));
    }
    nouns.push_back(entry.name.substr(0, space));
  }
  if (!verbs.empty() && words.size() > 1) {
    return invalid("{}: unknown command '{}'{}", first, printable(words[1]), suggestion(words[1], verbs))
        .cure("stoker --help");
  }
  if (!verbs.empty())
    return invalid("{}: which command?{}", first, suggestion("", verbs)).cure("stoker --help");
  return invalid("unknown command '{}'{}", printable(first), suggestion(first, nouns)).cure("stoker --help");
}

}  // namespace

bool wants_json(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--json") return true;
  }
  return false;
}

int dispatch(std::span<const std::string> words, Output& out) {
  if (words.empty()) {
    out.raw(overview());
    return exit_code::kUsage;
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    out.raw(overview());
    return exit_code::kOk;
  }
  if (words[0] == "--version") {
    out.line("stoker {}", version());
    return exit_code::kOk;
  }
  std::size_t used = 0;
  const CommandEntry* entry = find_command(words, &used);
  if (entry == nullptr) return out.fail(unknown_command(words));
  return entry->run(words.subspan(used), out);
}

}  // namespace stoker::cli
