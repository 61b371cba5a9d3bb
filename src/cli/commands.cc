#include "cli/commands.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/version.h"

namespace stoker::cli {

// The commands, each in a file of its own: a declaration here and a line in the table below.
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

std::span<const CommandEntry> commands() {
  static constexpr CommandEntry kCommands[] = {
      {"init", "writes a commented job file for this folder", init},
      {"check", "whether a job file is right and what it needs is there", check},
      {"hello", "whether the ranks of a job reach each other, and how fast", hello},
      {"data pack", "images become a dataset of tar shards", data_pack},
      {"data convert", "a dataset into shards of another kind", data_convert},
      {"data merge", "ends a packing that several nodes shared", data_merge},
      {"data info", "what a dataset or a file holds", data_info},
      {"data verify", "whether a dataset is as it was packed", data_verify},
      {"data bench", "which loader settings are best for a dataset, and what limits them", data_bench},
      {"data lint", "what lies in a source or dataset, and what is wrong with it", data_lint},
      {"data diff", "what differs between two datasets", data_diff},
      {"data sample", "some samples of a dataset on one page", data_sample},
      {"data index", "an index for shards of other tools, and for other tools", data_index},
      {"run", "runs a job here", run},
      {"submit", "puts a job, or a batch script as it is, into the queue of a Slurm cluster", submit},
      {"shell", "a shell in an allocation, with a job's resources and environment", shell},
      {"jupyter", "a Jupyter server in an allocation, with a job's resources and environment", jupyter},
      {"resume", "goes on with a run from its last valid checkpoint", resume},
      {"rerun", "the job of a run once more from the start, and what differs now", rerun},
      {"status", "runs at a glance: state, progress, speed", status},
      {"top", "what each rank of a run does right now, and where its time goes", top},
      {"logs", "what the ranks of a run printed", logs},
      {"wait", "until a run is over", wait},
      {"cancel", "ends a run", cancel},
      {"explain", "why a run, a job or what wrote a log failed, hangs or waits", explain_command},
      {"fetch", "brings a run of another machine here", fetch},
      {"report", "what a run was: result, curves, where the time went", report},
      {"checkpoint list", "the checkpoints of a run, and whether each is whole", checkpoint_list},
      {"checkpoint latest", "the newest checkpoint of a folder that is whole, anybody's", checkpoint_latest},
      {"checkpoint verify", "whether every byte of a checkpoint is as it was written", checkpoint_verify},
      {"checkpoint diff", "what changed between two checkpoints, tensor by tensor", checkpoint_diff},
      {"checkpoint convert", "a checkpoint as other tools' files, or the reverse", checkpoint_convert},
      {"checkpoint prune", "removes checkpoints that are no longer wanted", checkpoint_prune},
      {"site list", "the clusters that Stoker knows, and which one this is", site_list},
      {"site show", "what is known of a cluster, and where that comes from", site_show},
      {"site detect", "describes a cluster that is not known", site_detect},
      {"lab up", "a real Slurm cluster of several nodes on this one machine", lab_up},
      {"lab status", "the labs that are up, their nodes and jobs", lab_status},
      {"lab env", "shell lines that make sbatch, srun and squeue speak to a lab", lab_env},
      {"lab shell", "a shell, or a command, on a node of a lab", lab_shell},
      {"lab logs", "what the daemons of a lab wrote", lab_logs},
      {"lab fault", "breaks something in a lab, and heals it again", lab_fault},
      {"lab down", "takes a lab away", lab_down},
      {"environment run", "a command in a virtual environment that this node makes; jobs start these",
       environment_run},
      {"stage", "one node's part of `stage:` in a job; `stoker run` starts these", stage},
      {"notebook", "the node's part of `stoker jupyter`, which starts it", notebook},
      {"remote", "does what a stoker elsewhere asks for; `--host` starts it through ssh", remote},
      {"rank", "one rank of a run; `stoker run` starts these", rank},
  };
  return kCommands;
}

namespace {

// "data" of "data pack"; empty for a command without a noun.
std::string_view noun_of(const CommandEntry& entry) {
  const std::size_t space = entry.name.find(' ');
  return space == std::string_view::npos ? std::string_view{} : entry.name.substr(0, space);
}

bool is_noun(std::string_view word) {
  return std::ranges::any_of(commands(), [&](const CommandEntry& entry) { return noun_of(entry) == word; });
}

// Every command with its summary, or only those of a noun.
std::string listing(std::string_view noun = {}) {
  std::size_t widest = 0;
  for (const CommandEntry& entry : commands()) widest = std::max(widest, entry.name.size());
  std::string text;
  for (const CommandEntry& entry : commands()) {
    if (noun.empty() || noun_of(entry) == noun)
      text += format("  {:<{}}  {}\n", entry.name, widest, entry.summary);
  }
  return text;
}

std::string overview() {
  return "Takes a training from a folder of files to a fast, reproducible run.\n\nUsage: stoker COMMAND\n\n" +
         listing() + "\n`stoker COMMAND --help` explains one; --version tells which stoker this is.\n";
}

std::string overview_of(std::string_view noun) {
  return format("Usage: stoker {} COMMAND\n\n{}\n`stoker {} COMMAND --help` explains one.\n", noun,
                listing(noun), noun);
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
  if (is_noun(first)) {
    std::vector<std::string_view> verbs;
    for (const CommandEntry& entry : commands())
      if (noun_of(entry) == first) verbs.push_back(entry.name.substr(first.size() + 1));
    return invalid("{}: unknown command '{}'{}", first, printable(words[1]), suggestion(words[1], verbs))
        .cure(format("stoker {} --help", first));
  }
  std::vector<std::string_view> starts;
  for (const CommandEntry& entry : commands()) starts.push_back(entry.name.substr(0, entry.name.find(' ')));
  return invalid("unknown command '{}'{}", printable(first), suggestion(first, starts)).cure("stoker --help");
}

bool asks_for_help(std::string_view word) { return word == "--help" || word == "-h" || word == "help"; }

// `stoker help run` is `stoker run --help`.
std::vector<std::string> help_last(std::span<const std::string> words) {
  if (words.size() < 2 || words[0] != "help") return {words.begin(), words.end()};
  std::vector<std::string> turned(words.begin() + 1, words.end());
  turned.emplace_back("--help");
  return turned;
}

// Answers what is asked of the program or of a noun rather than of a command; nothing when it is none of
// that.
std::optional<int> answer_overview(std::span<const std::string> words, Output& out) {
  if (words.empty() || asks_for_help(words[0])) {
    out.raw(overview());
    return words.empty() ? exit_code::kUsage : exit_code::kOk;
  }
  if (words[0] == "--version") {
    out.line("stoker {}", version());
    return exit_code::kOk;
  }
  if (is_noun(words[0]) && (words.size() == 1 || asks_for_help(words[1]))) {
    out.raw(overview_of(words[0]));
    return words.size() == 1 ? exit_code::kUsage : exit_code::kOk;
  }
  return std::nullopt;
}

}  // namespace

bool wants_json(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--json") return true;
  }
  return false;
}

int dispatch(std::span<const std::string> given, Output& out) {
  const std::vector<std::string> turned = help_last(given);
  const std::span<const std::string> words = turned;
  if (const std::optional<int> answered = answer_overview(words, out)) return *answered;
  std::size_t used = 0;
  const CommandEntry* entry = find_command(words, &used);
  if (entry == nullptr) return out.fail(unknown_command(words));
  return entry->run(words.subspan(used), out);
}

}  // namespace stoker::cli
