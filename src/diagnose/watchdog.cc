#include "diagnose/watchdog.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/language/counted.h"
#include "diagnose/rule.h"
#include "record/trace/desync.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

// Group of all ranks.
constexpr std::string_view kAllRanks = "0";

// The latest position that a rank printed for a process group.
struct Position {
  std::int64_t enqueued = -1;
  std::int64_t completed = -1;
};

// A collective that timed out.
struct Timeout {
  std::int64_t number = 0;
  std::string operation;
  std::int64_t elements = -1;
};

struct RankReport {
  std::map<std::string, Position> positions;  ///< by the id of the process group
  std::vector<Timeout> timeouts;
};

std::int64_t number_in(const std::string& text) {
  std::int64_t number = -1;
  return parse_number(text, &number) ? number : -1;
}

// "all-reduce" of ALLREDUCE, "all-gather" of _ALLGATHER_BASE.
std::string operation_of(std::string_view type) {
  constexpr std::string_view kNames[][2] = {
      {"ALLREDUCE", "all-reduce"}, {"ALLGATHER", "all-gather"}, {"REDUCE_SCATTER", "reduce-scatter"},
      {"ALLTOALL", "all-to-all"},  {"BROADCAST", "broadcast"},  {"BARRIER", "barrier"},
      {"REDUCE", "reduce"}};
  for (const auto& [name, ours] : kNames) {
    if (type.find(name) != type.npos) return std::string(ours);
  }
  return std::string(type);
}

std::map<int, RankReport> reports_of(const std::vector<LogScan>& logs) {
  std::map<int, RankReport> reports;
  for (const LogScan& log : logs) {
    for (const Hit& hit : log.result.hits) {
      const int rank = Suspect{&log, &hit}.rank();
      if (rank < 0 || log.is_record) continue;
      if (hit.rule->name == kWatchdogTimeout) {
        // A rank repeats the line when it ends.
        const Timeout timeout{number_in(hit.groups[0]), operation_of(hit.groups[1]),
                              number_in(hit.groups[2])};
        auto& timeouts = reports[rank].timeouts;
        const bool is_known = std::any_of(timeouts.begin(), timeouts.end(),
                                          [&](const Timeout& each) { return each.number == timeout.number; });
        if (!is_known) timeouts.push_back(timeout);
      } else if (hit.rule->name == kWatchdogPosition) {
        const std::string group = hit.groups[0].empty() ? std::string(kAllRanks) : hit.groups[0];
        reports[rank].positions[group] = {number_in(hit.groups[1]), number_in(hit.groups[2])};
      }
    }
  }
  return reports;
}

// The process group that a timeout belongs to: its line does not name it.
std::string group_of(const RankReport& report, const Timeout& timeout) {
  for (const auto& [group, position] : report.positions) {
    if (position.completed < timeout.number && timeout.number <= position.enqueued) return group;
  }
  return std::string(kAllRanks);
}

record::FlightEntry entry_of(const Timeout& timeout) {
  record::FlightEntry entry{.number = static_cast<std::uint64_t>(timeout.number),
                            .collective = {.operation = timeout.operation, .element = ""}};
  // A coalesced collective prints -1 as an unsigned number.
  if (timeout.elements >= 0 && timeout.operation != "barrier")
    entry.collective.element = counted(static_cast<std::uint64_t>(timeout.elements), "element");
  return entry;
}

record::FlightEntry entry_of(const Position& position) {
  record::FlightEntry entry{
      .number = static_cast<std::uint64_t>(std::max<std::int64_t>(0, position.enqueued)), .collective = {}};
  if (position.completed >= position.enqueued) entry.outcome = record::CollectiveOutcome::done;
  return entry;
}

// The state of one rank in a group whose first timeout is `first`; nothing if the rank did not report.
std::optional<record::FlightDump> flight_of(int rank, const RankReport& report, const std::string& group,
                                            const Timeout& first) {
  record::FlightDump flight{.rank = rank, .host = "", .entries = {}};
  if (group != kAllRanks) flight.group = group;
  for (const Timeout& timeout : report.timeouts) {
    if (group_of(report, timeout) != group) continue;
    flight.entries.push_back(entry_of(timeout));
    return flight;
  }
  const auto position = report.positions.find(group);
  if (position == report.positions.end()) return std::nullopt;
  // A rank that has it too just did not wait long enough to time out.
  if (position->second.enqueued >= first.number) {
    flight.entries.push_back(entry_of(first));
  } else if (position->second.enqueued > 0) {
    flight.entries.push_back(entry_of(position->second));
  }
  return flight;
}

void add_desync(const std::map<int, RankReport>& reports, const std::string& group, const Timeout& first,
                std::vector<FailureRecord>& records) {
  std::vector<record::FlightDump> flights;
  for (const auto& [rank, report] : reports) {
    if (auto flight = flight_of(rank, report, group, first)) flights.push_back(*std::move(flight));
  }
  for (std::string& line : record::describe_desync(flights)) {
    // The group may have more ranks.
    std::int64_t rank = -1;
    if (!line.starts_with("rank ") || !parse_number(line.substr(5, line.find(' ', 5) - 5), &rank)) continue;
    records.push_back({std::string(kWatchdogSource), std::move(line), static_cast<int>(rank)});
  }
}

}  // namespace

std::vector<FailureRecord> watchdog_records(const std::vector<LogScan>& logs) {
  const std::map<int, RankReport> reports = reports_of(logs);
  // The first timeout of each group.
  std::map<std::string, Timeout> first;
  for (const auto& [rank, report] : reports) {
    for (const Timeout& timeout : report.timeouts) {
      const auto [found, is_new] = first.emplace(group_of(report, timeout), timeout);
      if (!is_new && timeout.number < found->second.number) found->second = timeout;
    }
  }
  std::vector<FailureRecord> records;
  for (const auto& [group, timeout] : first) add_desync(reports, group, timeout, records);
  if (!records.empty() || !first.contains(std::string(kAllRanks))) return records;
  // Ranks whose logs have no line of a watchdog at all.
  for (const LogScan& log : logs) {
    if (log.is_record || log.rank < 0 || reports.contains(log.rank)) continue;
    records.push_back({std::string(kWatchdogSource),
                       format("rank {} has reported no timeout; its peers wait in {}", log.rank,
                              entry_of(first.at(std::string(kAllRanks))).describe()),
                       log.rank});
  }
  return records;
}

}  // namespace stoker::diagnose
