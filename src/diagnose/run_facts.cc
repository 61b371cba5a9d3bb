#include "diagnose/run_facts.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <set>
#include <unistd.h>
#include <utility>

#include <re2/re2.h>

#include "base/file.h"
#include "diagnose/torch_dumps.h"
#include "diagnose/use/usage.h"
#include "observe/gpu_health.h"
#include "observe/log_reader.h"
#include "record/beacon.h"
#include "record/run_events.h"
#include "record/trace/desync.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::diagnose {
namespace {

constexpr std::size_t kMaxLogs = 4096;
constexpr int kDeepest = 2;
constexpr std::size_t kMaxNodes = 4096;
// Shorter waits may just be slow ranks.
constexpr double kSilence = 60;
constexpr double kLongWait = 1;
constexpr std::size_t kMaxStacks = 8;
constexpr std::size_t kMaxEarly = 3;
constexpr std::size_t kMaxFaults = 16;

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
  if (path_exists(file) && facts.logs.size() < kMaxLogs)
    facts.logs.push_back({.file = file, .name = file.filename().string(), .rank = rank});
}

// Seconds since the latest beacon of any rank; 0 without beacons.
double seconds_since_beacon(const record::Attempt& attempt, const std::vector<int>& ranks, double now) {
  double latest = 0;
  for (const int rank : ranks) {
    const auto seen = record::read_beacon(attempt.beacon(rank));
    if (seen.ok()) latest = std::max(latest, seen->seen_unix_s);
  }
  return latest > 0 ? now - latest : 0;
}

// Reads the flight recorders; only some ranks have one.
std::vector<record::FlightDump> read_flights(const record::Attempt& attempt, const std::vector<int>& ranks) {
  std::vector<record::FlightDump> flights;
  for (const int rank : ranks) {
    auto flight = record::read_flight_dump(attempt.flight(rank));
    if (flight.ok()) flights.push_back(*std::move(flight));
  }
  return flights;
}

// Whether a rank waited in one collective for so long that its peers must be missing.
bool is_hung(const std::vector<record::FlightDump>& flights, double end) {
  return std::any_of(flights.begin(), flights.end(), [&](const record::FlightDump& flight) {
    if (flight.entries.empty()) return false;
    const record::FlightEntry& last = flight.entries.back();
    const double waited = last.has_ended() ? last.seconds : end - last.begun_unix_s;
    return waited > kSilence && end - last.begun_unix_s - waited < kSilence;
  });
}

std::vector<std::string> describe_waits(const std::vector<record::FlightDump>& flights) {
  std::vector<std::string> lines = record::describe_desync(flights);
  // Ranks that were resumed before they stopped show no difference any more: only the length of the wait
  // remains.
  if (lines.empty()) lines = {record::longest_wait(flights, kLongWait)};
  return lines;
}

// Torch writes them only after a timeout or an error of a collective.
std::map<int, Path> torch_dumps(const record::Attempt& attempt, const std::vector<int>& ranks) {
  std::map<int, Path> files;
  for (const int rank : ranks) {
    Path file = attempt.torch_flight_prefix().string() + std::to_string(rank);
    if (path_exists(file)) files.emplace(rank, std::move(file));
  }
  return files;
}

// The Slurm job of the attempt, "" without Slurm; empty if it never started.
std::optional<std::string> job_of(const record::EventLog& log) {
  std::optional<std::string> job;
  for (const record::Event& event : log.events) {
    if (const auto submitted = record::submitted(event)) job = submitted->scheduler_job;
    const auto started = record::attempt_started(event);
    if (started && (!job || !started->scheduler_job.empty())) job = started->scheduler_job;
  }
  return job;
}

// The nodes of the ranks.
std::map<int, std::string> hosts_of(const record::EventLog& log) {
  std::map<int, std::string> hosts;
  for (const record::Event& event : log.events) {
    if (const auto started = record::rank_started(event)) hosts[started->rank] = printable(started->host);
    const auto ended = record::rank_ended(event);
    if (ended && !ended->host.empty()) hosts[ended->rank] = printable(ended->host);
  }
  return hosts;
}

// The GPU errors of the attempt, each kind once.
void add_gpu_faults(const record::EventLog& log, FailureFacts& facts) {
  std::set<std::string> reported;
  for (const record::Event& event : log.events) {
    const auto fault = record::gpu_fault(event);
    if (!fault || reported.size() == kMaxFaults) continue;
    std::string text = observe::xid_text(fault->gpu, fault->host, fault->pci_bus_id, fault->code);
    if (!reported.insert(text).second) continue;
    facts.records.push_back({format("events-{}.jsonl", printable(event.writer)), std::move(text), -1});
  }
}

// What the run was started from, for cures.
void set_setting(const record::RunFolder& run, const record::Attempt& attempt, FailureFacts& facts) {
  const record::RunDescription& description = run.description();
  facts.run = run.id();
  const bool is_script = description.job_file.empty() && path_exists(attempt.batch_script());
  facts.started_as = is_script                          ? StartKind::script
                     : facts.job && !facts.job->empty() ? StartKind::job_file
                                                        : StartKind::local;
  if (!is_script) {
    facts.started_from = description.job_file;
  } else if (!description.command.empty()) {
    facts.started_from = description.command[0];
  }
}

// Ranks that exited with code 0 before the first failure. If the failed rank lost a peer, one of them is the
// cause. The supervisor observed all exits with one clock.
void add_early_exits(const record::EventLog& log, int first, FailureFacts& facts) {
  std::vector<std::pair<double, record::RankEnded>> early;
  for (const record::Event& event : log.events) {
    const auto ended = record::rank_ended(event);
    if (!ended) continue;
    if (ended->rank != first) {
      const bool is_ready = ended->exit_code == 0 && !ended->stopped_by_us;
      if (is_ready && early.size() < kMaxEarly) early.emplace_back(event.time, *ended);
      continue;
    }
    for (const auto& [time, rank] : early) {
      const auto before = std::chrono::duration_cast<Duration>(Seconds(event.time - time));
      facts.records.push_back({"records",
                               format("rank {} ({}) had ended with exit code 0, {} before rank {} failed",
                                      rank.rank, printable(rank.host), rounded_duration(before), first),
                               rank.rank});
    }
    return;
  }
}

// Where the ranks were when a hang ended them. A rank apart from its peers keeps them waiting.
void add_stacks(const record::EventLog& log, FailureFacts& facts) {
  std::map<std::string, std::vector<record::RankEnded>> places;
  std::size_t count = 0;
  for (const record::Event& event : log.events) {
    const auto ended = record::rank_ended(event);
    if (!ended || ended->stack.empty()) continue;
    places[printable(ended->stack)].push_back(*ended);
    ++count;
  }
  if (places.empty()) return;
  const auto most =
      std::ranges::max_element(places, {}, [](const auto& place) { return place.second.size(); });
  if (count > 1 && places.size() == 1) {
    facts.records.push_back({"records", format("all {} ranks were in {}", count, most->first), -1});
    return;
  }
  for (const auto& [place, ranks] : places) {
    if (count > 1 && (place == most->first || ranks.size() == most->second.size())) continue;
    for (const record::RankEnded& rank : ranks) {
      if (facts.records.size() >= kMaxStacks) return;
      const std::string others = count > 1 ? format(", most ranks in {}", most->first) : "";
      facts.records.push_back(
          {"records", format("rank {} ({}) was in {}{}", rank.rank, printable(rank.host), place, others),
           rank.rank});
    }
  }
}

Status collect(const Path& folder, int depth, std::vector<FailedLog>& logs, const std::string& prefix) {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(folder));
  for (const std::string& name : names) {
    if (logs.size() >= kMaxLogs) return {};
    const Path path = folder / name;
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      if (depth < kDeepest) STOKER_RETURN_IF_ERROR(collect(path, depth + 1, logs, prefix + name + "/"));
      continue;
    }
    if (!std::filesystem::is_regular_file(path, error) || !looks_like_log(name)) continue;
    int rank = rank_in_name(name);
    // torchrun --log-dir: <attempt>/<local rank>/stderr.log; with one node the local rank is the rank.
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
                          const record::RunState& records, double now) {
  FailureFacts facts;
  const auto found = observe::ranks_with_logs(attempt);
  const std::vector<int> ranks = found.ok() ? *found : std::vector<int>();
  for (const int rank : ranks) add_log(attempt.log(rank), rank, facts);
  for (std::size_t node = 0; node < kMaxNodes && path_exists(attempt.torchrun_log(static_cast<int>(node)));
       ++node)
    add_log(attempt.torchrun_log(static_cast<int>(node)), -1, facts);
  add_log(attempt.batch_log(), -1, facts);
  facts.also = usage_findings(attempt);
  const auto log = record::read_attempt_events(attempt.folder());
  if (log.ok()) {
    facts.job = job_of(*log);
    facts.hosts = hosts_of(*log);
    add_gpu_faults(*log, facts);
  }
  set_setting(run, attempt, facts);
  const auto last = run.last_attempt();
  if (!last.ok() || last->number() != attempt.number()) return facts;
  facts.has_succeeded = records.state == record::State::done;
  if (facts.has_succeeded) {
    for (const observe::SuspectLine& doubt : observe::attempt_suspect_lines(attempt))
      facts.also.push_back(finding_of(doubt));
  }
  facts.first_rank = records.first_rank;
  if (!records.reason.empty())
    facts.records.push_back({"records", records.reason, records.first_rank.value_or(-1)});
  if (log.ok() && records.first_rank) add_early_exits(*log, *records.first_rank, facts);
  const bool waited = records.reason.find("timeouts.") != std::string::npos;
  const bool waits =
      records.state == record::State::running && seconds_since_beacon(attempt, ranks, now) > kSilence;
  if (records.state == record::State::done) return facts;
  const std::vector<record::FlightDump> flights = read_flights(attempt, ranks);
  if (waited || waits || is_hung(flights, records.ended > 0 ? records.ended : now))
    add_collective_records(describe_waits(flights), facts);
  if (facts.records.empty() || facts.records.back().where != kFlightRecorder)
    add_torch_dumps(torch_dumps(attempt, ranks), facts);
  if (log.ok() && flights.empty()) add_stacks(*log, facts);
  return facts;
}

Result<FailureFacts> facts_of_logs(const std::vector<std::string>& names) {
  FailureFacts facts;
  for (const std::string& name : names) {
    if (name == kStandardInput) {
      facts.logs.push_back({.file = {}, .name = "stdin", .rank = -1, .fd = STDIN_FILENO});
      continue;
    }
    const bool has_dumps = find_torch_dumps(name, facts);
    const std::string last = Path(name).filename().string();
    if (folder_exists(name)) {
      auto logs = logs_in_folder(name);
      if (!logs.ok() && !has_dumps) return logs.status();
      if (logs.ok()) facts.logs.insert(facts.logs.end(), logs->begin(), logs->end());
    } else if (!path_exists(name)) {
      return not_found("explain: {}: no such log", printable(name));
    } else if (!has_dumps) {
      facts.logs.push_back(
          {.file = name, .name = names.size() == 1 ? last : name, .rank = rank_in_name(last)});
    }
  }
  return facts;
}

Finding finding_of(const observe::SuspectLine& doubt) {
  return {.rule = "failed-line",
          .level = Level::job,
          .what = message("the run succeeded, but a line shows a failure: {}", doubt.text),
          .evidence = {{format("{}:{}", printable(doubt.file.filename().string()), doubt.line), doubt.text}},
          .cure = message("`set -e -o pipefail` at the beginning of the script, so that a failure ends it")};
}

Result<std::vector<FailedLog>> logs_in_folder(const Path& folder) {
  std::vector<FailedLog> logs;
  STOKER_RETURN_IF_ERROR(collect(folder, 0, logs, ""));
  if (logs.empty())
    return not_found("{}: no logs in this folder (*.log, *.out, *.err, *.txt, also compressed)", folder);
  return logs;
}

}  // namespace stoker::diagnose
