#include "diagnose/cures.h"

#include <algorithm>
#include <array>

#include <re2/re2.h>

#include "diagnose/exception_cures.h"
#include "diagnose/log_line.h"
#include "diagnose/python_modules.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr CureVariants kCures[] = {
    {"request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "",
     "request more memory (for example `resources: {memory_per_node: 64GiB}`), or use fewer loader workers "
     "or a smaller batch",
     "use fewer loader workers or a smaller batch; increase the memory limit of the container or cgroup"},
    {"`num_workers=0` shows why; use fewer workers, or request more memory", "", "",
     "`num_workers=0` shows why; use fewer workers"},
    {"retry without that node: `--exclude={node}`", "retry without that node: `#SBATCH --exclude={node}`",
     "leave that node out (`slurm: {extra: [--exclude={node}]}`), then `stoker resume {run}`",
     "`stoker resume {run}`, without that machine"},
    {"leave that node out (`--exclude={node}`) and inform the administrators",
     "leave that node out (`#SBATCH --exclude={node}`) and inform the administrators",
     "leave that node out (`slurm: {extra: [--exclude={node}]}`) and inform the administrators",
     "use a different machine and inform its administrators"},
    {"leave that node out (`--exclude={node}`); `ibstat` there shows its ports", "", "",
     "`ibstat` shows the ports of that machine"},
    {"request more time, or save a checkpoint before the end: `#SBATCH --signal=B:USR1@120`, and a trap for "
     "it in the script",
     "",
     "increase `resources.time`, or use a chain of jobs that resume from checkpoints: `chain: {until: done, "
     "time_per_link: 20h}`",
     "increase `resources.time`"},
    {"increase `{2}`, or use a chain of jobs that resume from checkpoints: `chain: {until: done, "
     "time_per_link: 20h}`",
     "", "", "increase `{2}`, or save a checkpoint before the end"},
    {"use checkpoints and `#SBATCH --requeue`: the job restarts, and the program resumes from the last one",
     "", "save checkpoints: the run restarts from the last one, `restart: {preempted: 100}`",
     "save checkpoints, then `stoker resume {run}`"},
    {"load its module or activate its environment before that line", "",
     "name what provides it in the job file: `environment: {modules: [NAME]}`, `environment: {conda: NAME}` "
     "or `environment: {venv: FOLDER}`",
     "name what provides it in the job file: `environment: {modules: [NAME]}`, `environment: {conda: NAME}` "
     "or `environment: {venv: FOLDER}`"},
    {"load the module that provides it, or set `LD_LIBRARY_PATH`", "",
     "name the module that provides it, `environment: {modules: [NAME]}`, or its folder, `environment: "
     "{variables: {LD_LIBRARY_PATH: FOLDER}}`",
     "name the module that provides it, `environment: {modules: [NAME]}`, or its folder, `environment: "
     "{variables: {LD_LIBRARY_PATH: FOLDER}}`"},
    {"use its full path in the script, or load its module or environment", "",
     "use its full path, or name what provides it in the job file: `environment: {modules: [NAME]}`",
     "use its full path, or name what provides it in the job file: `environment: {modules: [NAME]}`"},
    {"use a path that exists on the compute node, not only on the login node", "", "",
     "check the path: relative paths start at `working_directory`"},
    {"use a path that all nodes see, or copy it to each node before the start", "",
     "use a path that all nodes see, or copy it to each node: `stage: {copy: [{1}{2}{3}{4}]}`",
     "check the path: relative paths start at `working_directory`"},
    {"check its name; a relative path starts at the working directory (`cd` in the script, or `--chdir`)", "",
     "set its folder in the job file: `working_directory: FOLDER`",
     "set its folder in the job file: `working_directory: FOLDER`"},
    {"request a GPU (`#SBATCH --gres=gpu:1`) on a node with GPUs, and install a torch built for CUDA", "",
     "request a GPU (`resources: {gpus_per_rank: 1}`) on a node with GPUs, and install a torch built for "
     "CUDA",
     "use a machine with a GPU, and install a torch built for CUDA"},
    {"derive the port from the job id: `export MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))`", "",
     "do not set `MASTER_PORT`: the run then uses a free one",
     "do not set `MASTER_PORT`: the run then uses a free one"},
    {"use the first node, `export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1)`, and "
     "read the log of rank 0",
     "", "do not set `MASTER_ADDR`: the run sets it; read the log of rank 0",
     "do not set `MASTER_ADDR`: the run sets it; read the log of rank 0"},
    {"copy the data to the local disks, `stage: {copy: [FOLDER]}`, or increase `timeouts.data`", "", "",
     "`stoker data bench DATASET` shows the bottleneck; or increase `timeouts.data`"},
    {"choose an account for `--account` from `sacctmgr show assoc user=$USER`", "",
     "choose `slurm.account` from `sacctmgr show assoc user=$USER`", ""},
    {"choose a partition for `--partition` from `sinfo -s`", "", "choose `slurm.partition` from `sinfo -s`",
     ""},
    {"choose a QOS for `--qos` from `sacctmgr show assoc format=qos`", "",
     "choose `slurm.qos` from `sacctmgr show assoc format=qos`", ""},
    {"use a shorter time limit (`--time`) or a different partition", "",
     "use a shorter `resources.time` or a different `slurm.partition`", ""},
    {"delete unneeded files, write checkpoints to a different disk, or keep fewer of them", "",
     "delete unneeded files, write checkpoints to a different disk (`checkpoint.directory`), or keep fewer "
     "of them (`checkpoint: {keep_last: 2}`)",
     "delete unneeded files, write checkpoints to a different disk (`checkpoint.directory`), or keep fewer "
     "of them (`checkpoint: {keep_last: 2}`)"},
};

// French uses it before a colon.
constexpr std::string_view kHardBlank = "\u00a0";
// Placeholder for the job id in commands of rules.
constexpr std::string_view kJob = "-j JOB";
constexpr std::string_view kKernelLogCommand =
    "journalctl -k | grep -i 'killed process'; grep oom_kill /sys/fs/cgroup/memory.events";

constexpr std::size_t kGroups = 4;
constexpr std::array<std::string_view, 4> kNames = {"{frame}", "{run}", "{started_from}", "{node}"};

// Fills arguments into a text of a rule.
class TextFiller {
 public:
  // `arguments`: the groups of the match, then the values of kNames. `is_code`: the text begins as code.
  TextFiller(std::span<const FormatArg> arguments, bool is_code) : arguments_(arguments), is_code_(is_code) {}

  std::string fill(std::string_view pattern) {
    std::string text;
    while (!pattern.empty()) {
      if (const std::size_t end = pattern.find("]]"); pattern.starts_with("[[") && end != pattern.npos) {
        const std::string_view part = pattern.substr(2, end - 2);
        if (!has_empty_group(part)) text += fill(part);
        pattern.remove_prefix(end + 2);
        continue;
      }
      if (const auto [value, length] = placeholder(pattern); length > 0) {
        text += is_code_ && !value.empty() ? shell_quote(value) : std::string(value);
        pattern.remove_prefix(length);
        continue;
      }
      if (pattern.front() == '`') is_code_ = !is_code_;
      text += pattern.front();
      pattern.remove_prefix(1);
    }
    return text;
  }

 private:
  struct Placeholder {
    std::string_view value;
    std::size_t length = 0;
  };

  // The placeholder at the start of the text.
  Placeholder placeholder(std::string_view text) const {
    if (text.size() > 2 && text[0] == '{' && text[2] == '}' && text[1] >= '1' && text[1] <= '4')
      return {value_of(static_cast<std::size_t>(text[1] - '1')), 3};
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (text.starts_with(kNames[i])) return {value_of(kGroups + i), kNames[i].size()};
    }
    return {};
  }

  bool has_empty_group(std::string_view text) const {
    for (; !text.empty(); text.remove_prefix(1)) {
      const auto [value, length] = placeholder(text);
      if (length > 0 && value.empty()) return true;
    }
    return false;
  }

  std::string_view value_of(std::size_t i) const { return std::get<std::string_view>(arguments_[i].value()); }

  std::span<const FormatArg> arguments_;
  bool is_code_;
};

// Removes blanks and colons around empty arguments.
std::string without_gaps(std::string_view text) {
  std::string clean;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool takes_no_blank = text[at] == ':' || text.substr(at).starts_with(kHardBlank);
    if (text[at] == ' ' && clean.ends_with(' ')) continue;
    if (takes_no_blank && clean.ends_with(' ')) clean.pop_back();
    clean += text[at];
  }
  for (std::size_t end = clean.size() + 1; end != clean.size();) {
    end = clean.size();
    if (clean.ends_with(' ') || clean.ends_with(':')) clean.pop_back();
    if (clean.ends_with(kHardBlank)) clean.resize(clean.size() - kHardBlank.size());
  }
  return clean;
}

std::string fill_prose(std::string_view pattern, std::span<const FormatArg> arguments) {
  return without_gaps(TextFiller(arguments, false).fill(pattern));
}

std::string fill_command(std::string_view pattern, std::span<const FormatArg> arguments) {
  return without_gaps(TextFiller(arguments, true).fill(pattern));
}

// The node of a failure: named in the line, or by its rank.
std::string node_of(const Hit& hit, const FailureFacts& facts) {
  static const RE2 kRecord(R"((?:^rank \d+ \(|\bNode failure on )([\w.-]+))");
  std::string node = node_named_in(hit.text).node;
  if (node.empty()) (void)RE2::PartialMatch(hit.text, kRecord, &node);
  const auto host = facts.hosts.find(hit.rank);
  if (node.empty() && host != facts.hosts.end()) node = host->second;
  return node.empty() ? "NODE" : node;
}

Message filled(Message::Formatter formatter, std::string_view text, const Hit& hit,
               const FailureFacts& facts) {
  const auto& groups = hit.groups;
  const std::string& frame = hit.frame.empty() ? hit.outer_frame : hit.frame;
  return Message::of(formatter, text, groups[0], groups[1], groups[2], groups[3],
                     frame.empty() ? std::string() : format("({})", frame),
                     facts.run.empty() ? std::string("last") : facts.run, facts.started_from,
                     node_of(hit, facts));
}

// The cure in the terms of what was started.
std::string_view in_terms_of(StartKind start, std::string_view cure) {
  const auto* found = std::find_if(std::begin(kCures), std::end(kCures),
                                   [&](const CureVariants& variants) { return variants.cure == cure; });
  if (found == std::end(kCures)) return cure;
  const std::string_view text = start == StartKind::script     ? found->script
                                : start == StartKind::job_file ? found->job_file
                                : start == StartKind::local    ? found->local
                                                               : std::string_view();
  return text.empty() ? cure : text;
}

bool mentions(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

}  // namespace

std::span<const CureVariants> cure_table() { return kCures; }

Message rule_text(std::string_view text, const Hit& hit, const FailureFacts& facts) {
  return text.empty() ? Message() : filled(fill_prose, text, hit, facts);
}

Message cure_of(const Hit& hit, const FailureFacts& facts) {
  if (hit.rule->name == kModuleMissing) return module_cure(hit.groups[0], facts.started_as);
  if (hit.rule->name == kOwnError) return rule_text(cure_of_verdict(hit.groups[0]), hit, facts);
  if (hit.rule->cure.empty()) return rule_text(cure_of_exception(hit.text), hit, facts);
  return rule_text(in_terms_of(facts.started_as, hit.rule->cure), hit, facts);
}

std::string confirmation_of(const Hit& hit, const FailureFacts& facts) {
  std::string_view command = hit.rule->confirm;
  const bool has_run = !facts.run.empty();
  const bool has_job_file = !facts.started_from.empty() && facts.started_as != StartKind::script;
  if (mentions(command, "{run}") && !has_run) return "";
  if (mentions(command, "{started_from}")) {
    const bool is_possible = mentions(command, "stoker check") ? !facts.started_from.empty() : has_job_file;
    if (!is_possible) return "";
  }
  if (facts.started_as == StartKind::local) {
    if (mentions(command, "MaxRSS")) return std::string(kKernelLogCommand);
    for (const std::string_view program : {"sacct", "scontrol", "sinfo", "srun"}) {
      if (command.starts_with(program)) return "";
    }
  }
  std::string text = command.empty() ? "" : filled(fill_command, command, hit, facts).english();
  if (const std::size_t at = text.find(kJob); facts.job && !facts.job->empty() && at != std::string::npos)
    text.replace(at, kJob.size(), "-j " + *facts.job);
  return text;
}

}  // namespace stoker::diagnose
