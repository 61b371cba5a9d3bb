// `stoker explain RUN|JOBID|LOG...`: docs/commands/explain.md
#include <algorithm>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/explain/diagnose_run.h"
#include "cli/explain/explanation.h"
#include "cli/explain/language.h"
#include "cli/life/jobs.h"
#include "cli/remote/host.h"
#include "diagnose/run_facts.h"

namespace stoker::cli {
namespace {

using diagnose::FailureFacts;
using Json = nlohmann::ordered_json;

struct ExplainOptions {
  std::vector<std::string> what;
  std::string runs = "runs";
  std::int64_t attempt = 0;
  bool rules = false;
  std::string language = kLocaleLanguage;
  Translator words;  // of that language
  HostChoice host;
};

bool is_log_folder(const Path& path) { return folder_exists(path) && !path_exists(path / "run.json"); }

using diagnose::kStandardInput;

bool is_log(const std::string& word) {
  std::error_code error;
  return word == kStandardInput || std::filesystem::is_regular_file(word, error) || is_log_folder(word);
}

// `stoker explain < log`. A pipe needs the argument `-`, because a shell or service may start with any pipe
// as input.
bool is_stdin_log() {
  struct stat facts{};
  return ::fstat(STDIN_FILENO, &facts) == 0 && S_ISREG(facts.st_mode);
}

Result<Explanation> explain_logs(const std::vector<std::string>& files, const Translator& words) {
  STOKER_ASSIGN_OR_RETURN(facts, diagnose::facts_of_logs(files));
  Explanation explanation{.kind = "log",
                          .name = files.size() > 1             ? words.localize("{} logs", facts.logs.size())
                                  : files[0] == kStandardInput ? words.localize("standard input")
                                                               : untranslated(printable(files[0])),
                          .life = {},
                          .note = "",
                          .waiting = {},
                          .diagnosis = {}};
  explanation.diagnosis = explain_failure(facts);
  return explanation;
}

// The pending reason of a job; empty if Slurm does not answer.
std::optional<PendingReason> query_pending_reason(const std::string& job, const Translator& words,
                                                  slurm::SlurmCommands& scheduler) {
  const auto jobs = launch::query_job_lives(job, scheduler, Deadline::after(kSchedulerTimeout));
  if (!jobs.ok()) return std::nullopt;
  for (const launch::JobLife& each : *jobs) {
    if (each.life == launch::Life::queued) return pending_reason_of(each.facts, words);
  }
  return std::nullopt;
}

Result<Explanation> explain_run(const record::RunFolder& run, const ExplainOptions& o,
                                slurm::SlurmCommands& scheduler) {
  const launch::RunLife life = launch::query_life(run, scheduler, Deadline::after(kSchedulerTimeout));
  Explanation explanation{.kind = "run",
                          .name = o.words.localize("run {}", run.id()),
                          .life = life.life,
                          .note = life.note,
                          .waiting = {},
                          .diagnosis = {}};
  if (life.life == launch::Life::created) return explanation;
  if (life.life == launch::Life::queued && o.attempt == 0) {
    explanation.waiting = query_pending_reason(life.scheduler_job, o.words, scheduler);
    if (life.records.last_started == 0) return explanation;
  }
  STOKER_ASSIGN_OR_RETURN(found, diagnose_run(run, life, o.attempt));
  explanation.diagnosis = std::move(found.diagnosis);
  explanation.launches = std::move(found.launches);
  // For a requeued run: why its last attempt ended, if known.
  const bool waits = life.life == launch::Life::queued && o.attempt == 0;
  if (waits && explanation.diagnosis->certainty == diagnose::Certainty::unknown)
    explanation.diagnosis.reset();
  return explanation;
}

// The usual reason is a log in a folder that does not exist.
void add_launch_failure(const slurm::JobInfo& job, FailureFacts& facts) {
  if (job.exit_signal != slurm::kLaunchFailure && job.reason != "JobLaunchFailure") return;
  const Path folder = job.log.parent_path();
  if (!job.log.empty() && !folder_exists(folder)) {
    facts.records.push_back(
        {"Slurm",
         format("the job's log cannot be opened: its folder {} does not exist (exit code 0:53)", folder),
         -1});
    return;
  }
  facts.records.push_back({"Slurm", "Slurm could not start the script (exit code 0:53)", -1});
}

// The first array task that did not succeed, else the first task.
const launch::JobLife& first_unsuccessful(const std::vector<launch::JobLife>& jobs) {
  for (const launch::JobLife& job : jobs) {
    if (launch::is_over(job.life) && job.life != launch::Life::done) return job;
  }
  return jobs.front();
}

Result<Explanation> explain_job(const Target& target, const Translator& words,
                                slurm::SlurmCommands& scheduler) {
  STOKER_ASSIGN_OR_RETURN(jobs, query_jobs(target, scheduler));
  if (jobs.empty()) return not_found("job {}: unknown to Slurm", target.job);
  const launch::JobLife& job = first_unsuccessful(jobs);
  Explanation explanation{.kind = "job",
                          .name = words.localize("job {}", job.facts.id),
                          .life = job.life,
                          .note = job.note,
                          .waiting = {},
                          .diagnosis = {}};
  if (job.life == launch::Life::queued) {
    explanation.waiting = pending_reason_of(job.facts, words);
    return explanation;
  }
  FailureFacts facts;
  facts.job = job.facts.id;
  facts.started_as = diagnose::StartKind::script;
  facts.has_succeeded = job.life == launch::Life::done;
  if (!job.facts.log.empty() && path_exists(job.facts.log))
    facts.logs.push_back({.file = job.facts.log, .name = job.facts.log.filename().string(), .rank = -1});
  add_state_evidence(job.life, job.note, "Slurm", facts);
  add_launch_failure(job.facts, facts);
  for (const observe::SuspectLine& doubt : job.doubts) facts.also.push_back(diagnose::finding_of(doubt));
  explanation.diagnosis = explain_failure(facts);
  if (facts.logs.empty())
    explanation.diagnosis->notes.push_back(
        job.facts.log.empty()
            ? message("Slurm does not know the path of its log (any more): stoker explain LOG")
            : message("its log {} does not exist", job.facts.log));
  return explanation;
}

Result<Explanation> explain_target(const ExplainOptions& o) {
  const bool has_several = o.what.size() > 1;
  if (!o.what.empty() && (has_several || is_log(o.what[0]))) return explain_logs(o.what, o.words);
  if (o.what.empty() && o.attempt == 0 && is_stdin_log())
    return explain_logs({std::string(kStandardInput)}, o.words);
  auto scheduler = make_scheduler();
  const auto target = find_target({.run = o.what.empty() ? "last" : o.what[0], .runs = o.runs});
  if (!target.ok()) return target.error();
  return target->run ? explain_run(*target->run, o, scheduler) : explain_job(*target, o.words, scheduler);
}

int print_failure_rules(const Translator& words, Output& out) {
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const diagnose::FailureRuleText& rule : diagnose::failure_rule_texts()) {
    rows.push_back(
        {std::string(rule.name), std::string(rule.kind), std::string(words.translate(rule.cause))});
    list.push_back({{"rule", std::string(rule.name)},
                    {"kind", std::string(rule.kind)},
                    {"cause", std::string(words.translate(rule.cause))},
                    {"cure", std::string(words.translate(rule.cure))},
                    {"example", std::string(rule.example)},
                    {"origin", std::string(rule.origin)}});
  }
  out.table({"RULE", "KIND", "CAUSE"}, rows);
  if (out.is_json()) out.json(json_text(nlohmann::ordered_json{{"rules", list}}));
  return exit_code::kOk;
}

// Logs and runs are on the host; the language is the one of this machine.
int explain_on_host(const ExplainOptions& o, std::span<const std::string> words, Output& out) {
  const bool has_stdin_log = o.what.empty()
                                 ? o.attempt == 0 && !o.rules && is_stdin_log()
                                 : std::find(o.what.begin(), o.what.end(), kStandardInput) != o.what.end();
  if (has_stdin_log) {
    return out.fail(invalid("explain: a log on standard input is read on this machine; --host excludes it")
                        .cure("{}", o.what.empty() ? "stoker explain last --host " + shell_quote(o.host.host)
                                                   : "stoker explain -"));
  }
  const std::vector<std::string> language = {"--lang", resolve_language_code(o.language)};
  return run_on_host(o.host, "explain", with_options(words, language), "", out);
}

}  // namespace

int explain_command(std::span<const std::string> words, Output& out) {
  ExplainOptions o;
  Arguments arguments(
      "explain",
      "Explain why a run, a job or the program of a log failed, hangs or is pending: cause, evidence, cure.");
  arguments.positional_list("RUN|JOBID|LOG", &o.what,
                            "Run id or prefix, 'last' [last]; id of any Slurm job; log files or folders, "
                            "also .gz and .zst; '-': standard input");
  arguments.option("--runs", &o.runs, "DIR", "Folder with the runs (the job's record.directory)");
  arguments.option("--attempt", &o.attempt, "N", "Explain this attempt of a run [the last]");
  arguments.flag("--rules", &o.rules, "List the rules and exit");
  add_language_option(arguments, &o.language);
  add_host_choice(arguments, &o.host);
  arguments.example("stoker explain last");
  arguments.example("stoker explain slurm-812345.out");
  arguments.example("kubectl logs trainer | stoker explain -");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto language = parse_language(o.language);
  if (!language.ok()) return out.fail(language.error());
  if (o.host.is_remote()) return explain_on_host(o, words, out);
  o.words = *language;
  if (o.rules) return print_failure_rules(o.words, out);
  const auto explanation = explain_target(o);
  if (!explanation.ok()) return out.fail(explanation.error());
  return print_explanation(*explanation, o.words, out);
}

}  // namespace stoker::cli
