// `stoker explain RUN|JOBID|LOG...`: docs/commands/explain.md
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/explain/answer.h"
#include "cli/explain/language.h"
#include "cli/life/jobs.h"
#include "explain/failure/run_facts.h"
#include "launch/array/task_record.h"

namespace stoker::cli {
namespace {

using explain::FailureFacts;
using Json = nlohmann::ordered_json;

struct ExplainOptions {
  std::vector<std::string> what;
  std::string runs = "runs";
  std::int64_t attempt = 0;
  bool rules = false;
  std::string language = kLanguageOfLocale;
  Words words;  // of that language
};

bool is_folder_of_logs(const Path& path) { return folder_exists(path) && !path_exists(path / "run.json"); }

constexpr std::string_view kStandardInput = "-";
constexpr std::size_t kMostTasks = 64;

bool is_log(const std::string& word) {
  std::error_code error;
  return word == kStandardInput || std::filesystem::is_regular_file(word, error) || is_folder_of_logs(word);
}

double now() { return unix_seconds(RealClock().wall()); }

// `stoker explain < log`. A pipe may be whatever a shell or a service was started with: it wants the word
// `-`.
bool is_log_given() {
  struct stat facts{};
  return ::fstat(STDIN_FILENO, &facts) == 0 && S_ISREG(facts.st_mode);
}

Result<Answer> explain_logs(const std::vector<std::string>& files, const Words& words) {
  FailureFacts facts;
  for (const std::string& word : files) {
    if (word == kStandardInput) {
      facts.logs.push_back({.file = {}, .name = "stdin", .rank = -1, .fd = STDIN_FILENO});
    } else if (folder_exists(word)) {
      OK_OR_RETURN(logs, explain::logs_in_folder(word));
      facts.logs.insert(facts.logs.end(), logs.begin(), logs.end());
    } else if (path_exists(word)) {
      facts.logs.push_back({.file = word,
                            .name = files.size() == 1 ? Path(word).filename().string() : word,
                            .rank = explain::rank_in_name(Path(word).filename().string())});
    } else {
      return not_found("explain: {}: no such log", printable(word));
    }
  }
  Answer answer{.kind = "log",
                .name = files.size() > 1             ? words.say("{} logs", facts.logs.size())
                        : files[0] == kStandardInput ? words.say("standard input")
                                                     : quoted(printable(files[0])),
                .life = {},
                .note = "",
                .waiting = {},
                .diagnosis = {}};
  answer.diagnosis = explain_failure(facts, words);
  return answer;
}

// A job that waits, as Slurm tells it; nothing where Slurm cannot be asked.
std::optional<Waiting> ask_why_it_waits(const std::string& job, const Words& words,
                                        slurm::SlurmCommands& scheduler) {
  const auto jobs = launch::look_at_job(job, scheduler, Deadline::after(kSchedulerPatience));
  if (!jobs.ok()) return std::nullopt;
  for (const launch::JobLife& each : *jobs) {
    if (each.life == launch::Life::queued) return waiting_of(each.facts, words);
  }
  return std::nullopt;
}

void tell_state(launch::Life life, const std::string& note, const std::string& where, FailureFacts& facts) {
  if (!launch::is_over(life) || life == launch::Life::done || life == launch::Life::failed) return;
  facts.words.push_back(
      {where,
       note.empty() ? format("state: {}", to_text(life)) : format("state: {} ({})", to_text(life), note),
       -1});
}

// Of an array the logs of tasks that failed, the first ones of many, each as one of its own.
void add_failed_tasks(const record::RunFolder& run, const launch::ArrayState& array, FailureFacts& facts) {
  for (const std::uint32_t task : array.failures) {
    if (facts.logs.size() >= kMostTasks) return;
    const Path log = launch::task_log(run, task);
    if (path_exists(log))
      facts.logs.push_back({.file = log, .name = "tasks/" + log.filename().string(), .rank = -1});
  }
}

Result<Answer> explain_run(const record::RunFolder& run, const ExplainOptions& o,
                           slurm::SlurmCommands& scheduler) {
  const launch::RunLife life = launch::look_at(run, scheduler, Deadline::after(kSchedulerPatience));
  Answer answer{.kind = "run",
                .name = o.words.say("run {}", run.id()),
                .life = life.life,
                .note = life.note,
                .waiting = {},
                .diagnosis = {}};
  if (life.life == launch::Life::created) return answer;
  if (life.life == launch::Life::queued && o.attempt == 0) {
    answer.waiting = ask_why_it_waits(life.scheduler_job, o.words, scheduler);
    if (life.records.last_started == 0) return answer;
  }
  OK_OR_RETURN(attempt, find_attempt(run, o.attempt));
  FailureFacts facts = explain::facts_of_run(run, attempt, life.records, now(), o.words);
  if (life.array) add_failed_tasks(run, *life.array, facts);
  if (attempt.number() == life.records.attempts || o.attempt == 0)
    tell_state(life.life, life.note, "records", facts);
  answer.diagnosis = explain_failure(facts, o.words);
  // Of one that waits to go on, why its last attempt ended, where that is known.
  const bool waits = life.life == launch::Life::queued && o.attempt == 0;
  if (waits && answer.diagnosis->certainty == explain::Certainty::unknown) answer.diagnosis.reset();
  return answer;
}

// Of an array the first task that did not end well, else its first.
const launch::JobLife& worth_a_look(const std::vector<launch::JobLife>& jobs) {
  for (const launch::JobLife& job : jobs) {
    if (launch::is_over(job.life) && job.life != launch::Life::done) return job;
  }
  return jobs.front();
}

Result<Answer> explain_job(const Target& target, const Words& words, slurm::SlurmCommands& scheduler) {
  OK_OR_RETURN(jobs, look_at(target, scheduler));
  if (jobs.empty()) return not_found("job {}: Slurm knows none", target.job);
  const launch::JobLife& job = worth_a_look(jobs);
  Answer answer{.kind = "job",
                .name = words.say("job {}", job.facts.id),
                .life = job.life,
                .note = job.note,
                .waiting = {},
                .diagnosis = {}};
  if (job.life == launch::Life::queued) {
    answer.waiting = waiting_of(job.facts, words);
    return answer;
  }
  FailureFacts facts;
  facts.job = job.facts.id;
  if (!job.facts.log.empty() && path_exists(job.facts.log))
    facts.logs.push_back({.file = job.facts.log, .name = job.facts.log.filename().string(), .rank = -1});
  tell_state(job.life, job.note, "Slurm", facts);
  for (const observe::Doubt& doubt : job.doubts) facts.also.push_back(explain::finding_of(doubt, words));
  answer.diagnosis = explain_failure(facts, words);
  if (facts.logs.empty())
    answer.diagnosis->notes.push_back(
        job.facts.log.empty()
            ? words.say("Slurm does not tell where its log is (any more): stoker explain LOG")
            : words.say("its log {} is not there", job.facts.log));
  return answer;
}

Result<Answer> answer_to(const ExplainOptions& o) {
  const bool has_several = o.what.size() > 1;
  if (!o.what.empty() && (has_several || is_log(o.what[0]))) return explain_logs(o.what, o.words);
  if (o.what.empty() && o.attempt == 0 && is_log_given())
    return explain_logs({std::string(kStandardInput)}, o.words);
  auto scheduler = make_scheduler();
  const auto target = find_target({.run = o.what.empty() ? "last" : o.what[0], .runs = o.runs});
  if (!target.ok()) return target.error();
  return target->run ? explain_run(*target->run, o, scheduler) : explain_job(*target, o.words, scheduler);
}

int print_failure_rules(const Words& words, Output& out) {
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const explain::FailureRuleText& rule : explain::failure_rule_texts()) {
    rows.push_back({std::string(rule.name), std::string(rule.kind), std::string(words.of(rule.cause))});
    list.push_back({{"rule", std::string(rule.name)},
                    {"kind", std::string(rule.kind)},
                    {"cause", std::string(words.of(rule.cause))},
                    {"cure", std::string(words.of(rule.cure))},
                    {"example", std::string(rule.example)},
                    {"origin", std::string(rule.origin)}});
  }
  out.table({"RULE", "KIND", "CAUSE"}, rows);
  if (out.is_json()) out.json(json_text(nlohmann::ordered_json{{"rules", list}}));
  return exit_code::kOk;
}

}  // namespace

int explain_command(std::span<const std::string> words, Output& out) {
  ExplainOptions o;
  Arguments arguments("explain",
                      "Says why a run, a job or what wrote a log failed, hangs or waits: one cause, the "
                      "evidence, the cure.");
  arguments.positional_list("RUN|JOBID|LOG", &o.what,
                            "run id, a prefix of one, 'last' [last]; the id of any job of Slurm; or logs of "
                            "anybody, folders of them too, also .gz and .zst; '-': standard input");
  arguments.option("--runs", &o.runs, "DIR", "folder that holds the runs (the job's record.directory)");
  arguments.option("--attempt", &o.attempt, "N", "of a run: this attempt [the last]");
  arguments.flag("--rules", &o.rules, "lists what is looked for, and does nothing else");
  add_language_option(arguments, &o.language);
  arguments.example("stoker explain last");
  arguments.example("stoker explain slurm-812345.out");
  arguments.example("kubectl logs trainer | stoker explain -");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto spoken = words_named(o.language);
  if (!spoken.ok()) return out.fail(spoken.error());
  o.words = *spoken;
  if (o.rules) return print_failure_rules(o.words, out);
  const auto answer = answer_to(o);
  if (!answer.ok()) return out.fail(answer.error());
  return print_answer(*answer, o.words, out);
}

}  // namespace stoker::cli
