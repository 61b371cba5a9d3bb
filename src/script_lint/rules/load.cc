// Rules for load on the scheduler, the nodes and the network.
#include <algorithm>
#include <array>

#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

constexpr std::uint64_t kManyProcesses = 100;
constexpr std::uint64_t kTooManyAtOnce = 1000;

void find_no_array_limit(const Script& script, FindingReport& report) {
  const Directive* array = script.request.find("--array");
  const std::uint64_t tasks = script.request.array_tasks();
  if (array == nullptr || tasks < kManyTasks || array->option.value.find('%') != std::string::npos) return;
  ScriptFinding& finding =
      report.replace({array->value.end, array->value.end},
                     // several, at least kManyTasks
                     message("{} tasks without a limit on concurrent tasks", tasks), "%20");
  if (tasks >= kTooManyAtOnce) finding.level = Level::time;
}

void find_submission_flood(const Script& script, FindingReport& report) {
  const auto time = script.request.time();
  const std::uint64_t tasks = script.request.array_tasks();
  if (tasks >= kManyTasks && time && *time <= kShortTask) {
    report
        .add(script.request.find("--array")->value,
             // several, at least kManyTasks
             message("{} jobs of at most {}: starting each one costs Slurm more than the work", tasks,
                     duration_text(*time)))
        .fix = message("run several tasks per job: a loop over a part of the list, and a smaller --array");
  }
  for (const ProgramCall& call : script.calls) {
    if (call.program != "sbatch" || call.context.loops == 0 || call.context.repeats < 20) continue;
    report
        .add(call.span,
             message("{} submissions from a loop: an array is one submission", call.context.repeats))
        .fix = format("sbatch --array=1-{}%20 SCRIPT", call.context.repeats);
  }
}

void find_many_processes(const Script& script, FindingReport& report) {
  const bool waits_inside =
      std::any_of(script.calls.begin(), script.calls.end(),
                  [](const ProgramCall& call) { return call.program == "wait" && call.context.loops > 0; });
  if (waits_inside) return;
  for (const ProgramCall& call : script.calls) {
    if (!call.context.is_background || call.context.repeats < kManyProcesses || call.context.launcher)
      continue;
    report
        .add(call.span,
             // several, at least kManyProcesses
             message("{} processes at once: they compete for memory and cores", call.context.repeats))
        .fix = message("xargs -n 1 -P \"$SLURM_CPUS_ON_NODE\" PROGRAM < LIST    (or an array)");
    return;
  }
}

void find_ssh_loop(const Script& script, FindingReport& report) {
  if (script.request.directives.empty()) return;
  for (const ProgramCall& call : script.calls) {
    const bool is_loop = call.program == "ssh" && call.context.loops > 0 && !call.context.is_substituted;
    if (!is_loop) continue;
    report
        .add(call.span, message("processes started by ssh are outside Slurm's control: no limits, no "
                                "accounting, and they may "
                                "outlive the job"))
        .fix = "srun --ntasks=$SLURM_NNODES --ntasks-per-node=1 PROGRAM";
    return;
  }
}

struct DebugSetting {
  std::string_view name;
  std::string_view value;
  Level level;
  std::string_view why;
};

constexpr DebugSetting kDebug[] = {
    {"NCCL_DEBUG", "INFO", Level::advice, "messages of every rank fill the log; WARN shows problems"},
    {"NCCL_DEBUG", "TRACE", Level::time, "messages of every collective fill the log; WARN shows problems"},
    {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", Level::time,
     "every collective is checked across ranks, which slows each step"},
    {"CUDA_LAUNCH_BLOCKING", "1", Level::time, "the CPU waits for every kernel, which slows each step"},
};

void find_debug(const Script& script, FindingReport& report) {
  for (const VariableSetting& setting : script.settings) {
    for (const DebugSetting& debug : kDebug) {
      if (setting.name != debug.name || setting.value != debug.value) continue;
      ScriptFinding& finding =
          report.add(setting.assignment->span,
                     message("{}={} is left on: {}", debug.name, debug.value, message(debug.why)));
      finding.level = debug.level;
      finding.fix = debug.name == "NCCL_DEBUG" ? "export NCCL_DEBUG=WARN" : format("unset {}", debug.name);
      if (debug.name == "NCCL_DEBUG")
        finding.edits = {{setting.assignment->value.span.begin, setting.assignment->value.span.end, "WARN"}};
    }
  }
}

bool is_url(const std::string& word) {
  const bool is_one = word.find("http://") != std::string::npos ||
                      word.find("https://") != std::string::npos || word.starts_with("git@");
  return is_one && word.find("localhost") == std::string::npos && word.find("127.0.0.1") == std::string::npos;
}

// The part of the command that needs internet access; "" if none or unknown.
std::string network_use(const ProgramCall& call) {
  const bool installs = std::find(call.words.begin(), call.words.end(), "install") != call.words.end();
  const bool is_pip = call.program == "pip" || call.program == "pip3" ||
                      (is_python(call.program) && call.option("-m") == "pip");
  if (is_pip && installs && !call.has("--no-index") && !call.has("--find-links") && !call.has("-e"))
    return "pip install";
  const bool fetches = call.program == "wget" || call.program == "curl" || call.program == "git";
  if (fetches && std::any_of(call.words.begin(), call.words.end(), is_url)) return call.program;
  if (call.program == "conda" && !call.words.empty() &&
      (call.words[0] == "install" || call.words[0] == "create") && !call.has("--offline"))
    return "conda " + call.words[0];
  return "";
}

void find_network(const Script& script, FindingReport& report) {
  const job::Site* site = report.context().site;
  if (site == nullptr || site->has_internet.value_or(true)) return;
  for (const ProgramCall& call : script.calls) {
    const std::string use = network_use(call);
    if (use.empty() || call.context.is_condition) continue;
    const Message text = message("{}: the compute nodes of {} have no internet access", use, site->name);
    if (use != "pip install") {
      report.add(call.span, text).fix = message("run `{}` on a login node, before the job", use);
      continue;
    }
    const auto install = std::find_if(call.typed.begin(), call.typed.end(), [&](const bash::Word* word) {
      return script.at(word->span) == "install";
    });
    if (install == call.typed.end()) continue;
    report.replace({(*install)->span.end, (*install)->span.end}, text, " --no-index").level = Level::time;
  }
}

constexpr Rule kLoadRules[] = {
    {"no-array-limit", Level::advice,
     "a large array without %K can use your whole limit, and your other jobs wait",
     "#!/bin/bash\n#SBATCH --array=1-200\n", "#!/bin/bash\n#SBATCH --array=1-200%20\n", "sbatch(1), --array",
     find_no_array_limit},
    {"flood", Level::time, "thousands of small jobs slow down the scheduler for all users",
     "#!/bin/bash\nfor i in {1..500}; do\n  sbatch job.sh $i\ndone\n",
     "#!/bin/bash\nsbatch --array=1-500%20 job.sh\n",
     "sbatch(1), performance: \"Do not run ... sbatch ... from loops\"", find_submission_flood},
    {"many-processes", Level::time,
     "hundreds of concurrent processes on one node are slower than a few at a time",
     "#!/bin/bash\nfor i in {1..1000}; do\n  ./a $i &\ndone\nwait\n",
     "#!/bin/bash\nseq 1000 | xargs -P 8 -n 1 ./a\n", "sites' guides", find_many_processes},
    {"ssh-loop", Level::time, "srun starts on all nodes at once, and ends with the job",
     "#!/bin/bash\n#SBATCH -N 2\nfor h in $(scontrol show hostnames); do\n  ssh $h ./a\ndone\n",
     "#!/bin/bash\n#SBATCH -N 2\nsrun ./a\n", "sites' guides", find_ssh_loop},
    {"debug-left-on", Level::advice, "debug settings cost time and fill logs when nothing is wrong",
     "#!/bin/bash\nexport NCCL_DEBUG=INFO\n", "#!/bin/bash\nexport NCCL_DEBUG=WARN\n",
     "an HPC manual's example", find_debug},
    {"no-network", Level::job, "without internet access downloads fail after minutes", "", "",
     "sites' guides", find_network},
};

}  // namespace

std::span<const Rule> load_rules() { return kLoadRules; }

}  // namespace stoker::script_lint
