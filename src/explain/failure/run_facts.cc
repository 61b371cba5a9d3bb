#include "explain/failure/run_facts.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <utility>

#include <re2/re2.h>

#include "base/file.h"
#include "base/text.h"
#include "base/time.h"
#include "explain/use/use.h"
#include "observe/log_reader.h"
#include "record/beacon.h"
#include "record/run_events.h"
#include "record/trace/flight.h"

namespace stoker::explain {
namespace {

constexpr std::size_t kMostLogs = 4096;
constexpr int kDeepest = 2;
constexpr std::size_t kMostNodes = 4096;
// Ranks that wait for each other for less may just be slow.
constexpr double kSilence = 60;
constexpr double kLongWait = 1;
constexpr std::size_t kMostEarly = 3;

bool looks_like_log(std::string_view name) {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  }
  for (const std::string_view end : {".log", ".out", ".err", ".txt", ".stdout", ".stderr"}) {
    if (name.ends_with(end)) return true;
  }
  return name == "stdout" || name == "stderr";
}

void add_log(const Path& file, int rank, FailureFacts& facts) {
  if (path_exists(file) && facts.logs.size() < kMostLogs)
    facts.logs.push_back({.file = file, .name = file.filename().string(), .rank = rank});
}

// Seconds since the last sign of any rank that has a beacon; 0 where none has.
double silence_of(const record::Attempt& attempt, const std::vector<int>& ranks, double now) {
  double latest = 0;
  for (const int rank : ranks) {
    const auto seen = record::read_beacon(attempt.beacon(rank));
    if (seen.ok()) latest = std::max(latest, seen->seen_unix_s);
  }
  return latest > 0 ? now - latest : 0;
}

// Where the ranks' collectives stand; only ranks that record them have some.
std::vector<record::Flight> read_flights(const record::Attempt& attempt, const std::vector<int>& ranks) {
  std::vector<record::Flight> flights;
  for (const int rank : ranks) {
    auto flight = record::read_flight(attempt.flight(rank));
    if (flight.ok()) flights.push_back(*std::move(flight));
  }
  return flights;
}

// Whether a rank was in one collective for so long when it ended, or is, that the others are what it waits
// for.
bool hung_at(const std::vector<record::Flight>& flights, double end) {
  return std::any_of(flights.begin(), flights.end(), [&](const record::Flight& flight) {
    if (flight.entries.empty()) return false;
    const record::FlightEntry& last = flight.entries.back();
    const bool is_over =
        last.outcome == record::CollectiveOutcome::done || last.outcome == record::CollectiveOutcome::failed;
    const double waited = is_over ? last.seconds : end - last.begun_unix_s;
    return waited > kSilence && end - last.begun_unix_s - waited < kSilence;
  });
}

void tell_collectives(const std::vector<record::Flight>& flights, FailureFacts& facts) {
  static const RE2 kMissing(
      R"(^rank (\d+) \(pid \d+ on .*\) (?:has not come to|has begun none|is in|came to) )");
  std::vector<std::string> lines = record::differences(flights);
  // Ranks that were thawed, and asked to stop, went on together: what is left is how long they had waited.
  if (lines.empty()) lines = {record::longest_wait(flights, kLongWait)};
  std::erase(lines, "");
  for (const std::string& line : lines) {
    int rank = -1;
    (void)RE2::PartialMatch(line, kMissing, &rank);
    facts.words.push_back({std::string(kFlightRecorder), line, rank});
  }
}

// The job of Slurm that an attempt ran in, "" for none; nothing where it never began.
std::optional<std::string> job_of(const record::EventLog& log) {
  std::optional<std::string> job;
  for (const record::Event& event : log.events) {
    if (const auto submitted = record::submitted(event)) job = submitted->scheduler_job;
    const auto started = record::attempt_started(event);
    if (started && (!job || !started->scheduler_job.empty())) job = started->scheduler_job;
  }
  return job;
}

// Ranks that ended as if all was well before the one that failed first: where that one lost a peer, one of
// them is it. The supervisor saw all of them end, by one clock.
void tell_early_ends(const record::EventLog& log, int first, FailureFacts& facts) {
  std::vector<std::pair<double, record::RankEnded>> early;
  for (const record::Event& event : log.events) {
    const auto ended = record::rank_ended(event);
    if (!ended) continue;
    if (ended->rank != first) {
      const bool is_well = ended->exit_code == 0 && !ended->stopped_by_us;
      if (is_well && early.size() < kMostEarly) early.emplace_back(event.time, *ended);
      continue;
    }
    for (const auto& [time, rank] : early) {
      const auto before = std::chrono::duration_cast<Duration>(Seconds(event.time - time));
      facts.words.push_back({"records",
                             format("rank {} ({}) had ended with exit code 0, {} before rank {} failed",
                                    rank.rank, printable(rank.host), rounded_duration(before), first),
                             rank.rank});
    }
    return;
  }
}

Status collect(const Path& folder, int depth, std::vector<FailedLog>& logs, const std::string& prefix) {
  OK_OR_RETURN(names, list_directory(folder));
  for (const std::string& name : names) {
    if (logs.size() >= kMostLogs) return {};
    const Path path = folder / name;
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      if (depth < kDeepest) RETURN_IF_ERROR(collect(path, depth + 1, logs, prefix + name + "/"));
      continue;
    }
    if (!std::filesystem::is_regular_file(path, error) || !looks_like_log(name)) continue;
    int rank = rank_in_name(name);
    // torchrun --log-dir: <attempt>/<local rank>/stderr.log; on one node the local rank is the rank.
    std::int64_t number = -1;
    const std::string parent = folder.filename().string();
    if (rank < 0 && depth > 0 && parse_number(parent, &number) && number >= 0 && number < 1'000'000)
      rank = static_cast<int>(number);
    logs.push_back({.file = path, .name = prefix + name, .rank = rank});
  }
  return {};
}

}  // namespace

int rank_in_name(std::string_view name) {
  static const RE2 kRank(R"((?:^|[^A-Za-z])rank[-_.]?(\d{1,6})(?:\D|$))");
  int rank = -1;
  return RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), kRank, &rank) ? rank : -1;
}

FailureFacts facts_of_run(const record::RunFolder& run, const record::Attempt& attempt,
                          const record::RunState& records, double now, const Words& words) {
  FailureFacts facts;
  const auto found = observe::ranks_with_logs(attempt);
  const std::vector<int> ranks = found.ok() ? *found : std::vector<int>();
  for (const int rank : ranks) add_log(attempt.log(rank), rank, facts);
  for (std::size_t node = 0; node < kMostNodes && path_exists(attempt.torchrun_log(static_cast<int>(node)));
       ++node)
    add_log(attempt.torchrun_log(static_cast<int>(node)), -1, facts);
  add_log(attempt.batch_log(), -1, facts);
  facts.also = findings_of_use(attempt, words);
  const auto log = record::read_attempt_events(attempt.folder());
  if (log.ok()) facts.job = job_of(*log);
  const auto last = run.last_attempt();
  if (!last.ok() || last->number() != attempt.number()) return facts;
  if (records.state == record::State::done) {
    for (const observe::Doubt& doubt : observe::doubts_of(attempt))
      facts.also.push_back(finding_of(doubt, words));
  }
  facts.first_rank = records.first_rank;
  if (!records.reason.empty())
    facts.words.push_back({"records", records.reason, records.first_rank.value_or(-1)});
  if (log.ok() && records.first_rank) tell_early_ends(*log, *records.first_rank, facts);
  const bool waited = records.reason.find("timeouts.") != std::string::npos;
  const bool waits = records.state == record::State::running && silence_of(attempt, ranks, now) > kSilence;
  if (records.state == record::State::done) return facts;
  const std::vector<record::Flight> flights = read_flights(attempt, ranks);
  if (waited || waits || hung_at(flights, records.ended > 0 ? records.ended : now))
    tell_collectives(flights, facts);
  return facts;
}

Finding finding_of(const observe::Doubt& doubt, const Words& words) {
  return {.rule = "failed-line",
          .level = Level::job,
          .what = words.say("it ended well, but a line tells of a failure: {}", doubt.text),
          .evidence = {{format("{}:{}", printable(doubt.file.filename().string()), doubt.line), doubt.text}},
          .cure = words.say("set -e -o pipefail at the beginning of the script, so that a failure ends it")};
}

Result<std::vector<FailedLog>> logs_in_folder(const Path& folder) {
  std::vector<FailedLog> logs;
  RETURN_IF_ERROR(collect(folder, 0, logs, ""));
  if (logs.empty())
    return not_found("{}: no log in it (files like *.log, *.out, *.err, *.txt, packed or not)", folder);
  return logs;
}

}  // namespace stoker::explain
