#include "explain/failure/run_facts.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <re2/re2.h>

#include "base/file.h"
#include "base/text.h"
#include "observe/log_reader.h"
#include "record/beacon.h"
#include "record/flight.h"

namespace stoker::explain {
namespace {

constexpr std::size_t kMostLogs = 4096;
constexpr int kDeepest = 2;
constexpr std::size_t kMostNodes = 4096;
// Ranks that wait for each other for less may just be slow.
constexpr double kSilence = 60;

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

void tell_collectives(const record::Attempt& attempt, const std::vector<int>& ranks, FailureFacts& facts) {
  std::vector<record::Flight> flights;
  for (const int rank : ranks) {
    auto flight = record::read_flight(attempt.flight(rank));
    if (flight.ok()) flights.push_back(*std::move(flight));
  }
  for (const std::string& line : record::differences(flights))
    facts.words.push_back({"flight recorder", line, -1});
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
                          const record::RunState& records, double now) {
  FailureFacts facts;
  const auto found = observe::ranks_with_logs(attempt);
  const std::vector<int> ranks = found.ok() ? *found : std::vector<int>();
  for (const int rank : ranks) add_log(attempt.log(rank), rank, facts);
  for (std::size_t node = 0; node < kMostNodes && path_exists(attempt.torchrun_log(static_cast<int>(node)));
       ++node)
    add_log(attempt.torchrun_log(static_cast<int>(node)), -1, facts);
  add_log(attempt.batch_log(), -1, facts);
  const auto last = run.last_attempt();
  if (!last.ok() || last->number() != attempt.number()) return facts;
  facts.first_rank = records.first_rank;
  if (!records.reason.empty())
    facts.words.push_back({"records", records.reason, records.first_rank.value_or(-1)});
  const bool waited = records.reason.find("timeouts.") != std::string::npos;
  const bool waits = records.state == record::State::running && silence_of(attempt, ranks, now) > kSilence;
  if (waited || waits) tell_collectives(attempt, ranks, facts);
  return facts;
}

Result<std::vector<FailedLog>> logs_in_folder(const Path& folder) {
  std::vector<FailedLog> logs;
  RETURN_IF_ERROR(collect(folder, 0, logs, ""));
  if (logs.empty())
    return not_found("{}: no log in it (files like *.log, *.out, *.err, *.txt, packed or not)", folder);
  return logs;
}

}  // namespace stoker::explain
