#include "diagnose/launches.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "job/job.h"
#include "record/run_events.h"
#include "script_lint/launches/launch_check.h"
#include "slurm/allocation.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::size_t kLongestLaunchLine = 200;
constexpr std::size_t kMaxLaunchEvidence = 3;

// Failures of processes that share a port, a GPU or a rank.
constexpr std::array<std::string_view, 4> kCollisions = {"port-in-use", "gpu-busy", "nccl-invalid-usage",
                                                         "duplicate-rank"};
// Ranks that wait for their peers: caused by a launcher only if the training never began.
constexpr std::array<std::string_view, 17> kWaits = {
    "rendezvous-timeout", "clients-missing",  "master-not-reached", "nccl-id-not-set",
    "store-key-missing",  "store-host-gone",  "gloo-full-mesh",     "gloo-timeout",
    "monitored-barrier",  "watchdog-timeout", "watchdog-stuck",     "jax-barrier-timeout",
    "rank-silent",        "time-limit",       "time-limit-reached", "batch-time-limit",
    "state-timeout"};
constexpr std::string_view kSeparateTrainings = "separate-trainings";

template <std::size_t N>
bool is_listed(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// When the attempt started, and with how many ranks.
struct AttemptStart {
  double time = 0;  // Unix seconds
  int ranks = 0;
};

std::optional<AttemptStart> start_of(const record::Attempt& attempt) {
  const auto log = record::read_attempt_events(attempt.folder());
  if (!log.ok()) return std::nullopt;
  for (const record::Event& event : log->events) {
    if (const auto started = record::attempt_started(event))
      return AttemptStart{event.time, started->world_size};
  }
  return std::nullopt;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return clipped(printable(trim(text)), kLongestLaunchLine);
}

std::string command_text(const job::RunCommand& command) {
  if (command.is_shell) return one_line("run: {shell: " + command.arguments.back() + "}");
  std::vector<std::string> words;
  for (const std::string& word : command.arguments) words.push_back(shell_quote(word));
  return one_line("run: " + join(words, " "));
}

RecordedLaunches launches_of_job(const record::RunFolder& run, const record::Attempt& attempt,
                                 const AttemptStart& start) {
  RecordedLaunches launches;
  const auto job = job::load(attempt.job());
  if (!job.ok() || !job->command) return launches;
  const auto ranks = static_cast<std::uint32_t>(start.ranks);
  if (!job->array.is_enabled() && job->resources.world_size() != ranks) return launches;
  const std::string& file = run.description().job_file;
  if (!file.empty()) launches.check = "stoker check " + shell_quote(file);
  for (script_lint::LaunchProblem& problem :
       script_lint::find_launch_problems(*job, slurm::process_environment(), start.time)) {
    launches.findings.push_back(
        {{.rule = std::string(problem.rule),
          .level = Level::job,
          .what = std::move(problem.text),
          .evidence = {{file.empty() ? "job.yaml" : printable(file), command_text(*job->command)}},
          .cure = std::move(problem.fix)},
         problem.copies});
  }
  return launches;
}

// The options that sbatch received, from the script and from the command line.
std::vector<std::string> options_of(const record::Attempt& attempt) {
  std::vector<std::string> options;
  const auto text = read_file(attempt.batch_script());
  if (!text.ok()) return options;
  constexpr std::string_view kMark = "#SBATCH ";
  for (const std::string_view line : split(*text, '\n')) {
    if (line.starts_with(kMark)) options.emplace_back(line.substr(kMark.size()));
  }
  return options;
}

RecordedLaunches launches_of_script(const record::RunFolder& run, const record::Attempt& attempt,
                                    const Path& script, const AttemptStart& start) {
  RecordedLaunches launches{.findings = {}, .logs = LogLayout::shared_log, .check = ""};
  const record::RunDescription& description = run.description();
  auto text = script_lint::load_script(script);
  if (!text.ok() || description.command.empty()) return launches;
  const std::string& name = description.command[0];
  launches.check = "stoker check " + shell_quote(name);
  const script_lint::LintResult lint = script_lint::lint_script(name, *std::move(text),
                                                                {.directory = description.working_directory,
                                                                 .environment = slurm::process_environment(),
                                                                 .options = options_of(attempt),
                                                                 .as_of = start.time});
  const std::vector<std::string_view> lines = split(lint.text, '\n');
  for (const script_lint::ScriptFinding& each : lint.findings) {
    if (!script_lint::is_launch_rule(each.rule)) continue;
    const std::string line(each.line <= lines.size() ? lines[each.line - 1] : std::string_view());
    launches.findings.push_back({{.rule = each.rule,
                                  .level = each.level,
                                  .what = each.text,
                                  .evidence = {{format("{}:{}", printable(name), each.line), one_line(line)}},
                                  .cure = each.fix},
                                 each.copies});
  }
  return launches;
}

// Whether copies of the launcher may be on one node.
bool shares_nodes(const LaunchFinding& launch) {
  const std::string& rule = launch.finding.rule;
  if (rule == kSeparateTrainings) return launch.copies.per_node > 1;
  return rule != "agent-on-first-node" && rule != "master-address";
}

bool is_nested(const LaunchFinding& launch) {
  return launch.finding.rule == "nested-launcher" || launch.finding.rule == "mpirun-per-task";
}

// The first collective: a later one shows that the ranks had connected.
bool is_first_collective(const Diagnosis& diagnosis) {
  return diagnosis.rule != "watchdog-timeout" ||
         std::any_of(diagnosis.evidence.begin(), diagnosis.evidence.end(), [](const Evidence& each) {
           return each.text.english().find("(SeqNum=1,") != std::string::npos;
         });
}

// Whether the launcher explains the failure.
bool is_cause(const LaunchFinding& launch, const RankLines& lines, AttemptEnd end,
              const Diagnosis& diagnosis) {
  if (end == AttemptEnd::done) return false;
  if (diagnosis.certainty == Certainty::unknown)
    return end == AttemptEnd::failed && lines.rank_zero.size() > 1;
  if (is_listed(diagnosis.rule, kCollisions)) return shares_nodes(launch);
  if (diagnosis.rule == "step-not-created") return is_nested(launch);
  return is_listed(diagnosis.rule, kWaits) && !lines.has_progress && is_first_collective(diagnosis);
}

// The failure so far: "rank 1: some nodes did not join torchrun's rendezvous (rank-0001.log:12)".
Message consequence_of(const Diagnosis& diagnosis) {
  if (diagnosis.certainty == Certainty::unknown || diagnosis.evidence.empty()) return diagnosis.consequences;
  Message who;
  if (diagnosis.rank) who = message("rank {}: ", *diagnosis.rank);
  return message("{}{} ({})", who, diagnosis.cause, diagnosis.evidence[0].where);
}

void set_cause(const LaunchFinding& launch, const RecordedLaunches& launches, const RankLines& lines,
               Diagnosis& diagnosis) {
  const bool is_proven = launch.finding.rule == kSeparateTrainings && lines.rank_zero.size() > 1 &&
                         launches.logs == LogLayout::log_per_process;
  std::vector<Evidence> evidence = launch.finding.evidence;
  if (lines.rank_zero.size() > 1)
    evidence.insert(evidence.end(), lines.rank_zero.begin(), lines.rank_zero.end());
  evidence.insert(evidence.end(), diagnosis.evidence.begin(), diagnosis.evidence.end());
  if (evidence.size() > kMaxLaunchEvidence) evidence.resize(kMaxLaunchEvidence);
  diagnosis.consequences = consequence_of(diagnosis);
  diagnosis.certainty = is_proven ? Certainty::known : Certainty::likely;
  diagnosis.rule = launch.finding.rule;
  diagnosis.cause = launch.finding.what;
  diagnosis.rank.reset();
  diagnosis.node.clear();
  diagnosis.evidence = std::move(evidence);
  diagnosis.cure = launch.finding.cure;
  diagnosis.confirm = launches.check;
}

Finding note_of(const LaunchFinding& launch, AttemptEnd end) {
  Finding note = launch.finding;
  if (end != AttemptEnd::none && launch.copies.count > 1)
    note.what = message("this run was {} separate trainings: {}", launch.copies.count, note.what);
  return note;
}

}  // namespace

RecordedLaunches read_recorded_launches(const record::RunFolder& run, const record::Attempt& attempt,
                                        const Path& script) {
  const auto start = start_of(attempt);
  if (!start) return {};
  return script.empty() ? launches_of_job(run, attempt, *start)
                        : launches_of_script(run, attempt, script, *start);
}

std::vector<Finding> join_launches(const RecordedLaunches& launches, const RankLines& lines, AttemptEnd end,
                                   Diagnosis& diagnosis) {
  const std::vector<LaunchFinding>& all = launches.findings;
  const auto cause = std::find_if(all.begin(), all.end(), [&](const LaunchFinding& launch) {
    return is_cause(launch, lines, end, diagnosis);
  });
  std::vector<Finding> notes;
  for (auto launch = all.begin(); launch != all.end(); ++launch) {
    if (launch != cause) notes.push_back(note_of(*launch, end));
  }
  if (cause != all.end()) set_cause(*cause, launches, lines, diagnosis);
  return notes;
}

}  // namespace stoker::diagnose
