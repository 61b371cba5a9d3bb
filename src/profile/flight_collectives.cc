#include "profile/flight_collectives.h"

#include "profile/records.h"
#include "record/trace/flight.h"
#include "record/trace/torch_flight.h"

namespace stoker::profile {
namespace {

void add_dump(const record::FlightDump& dump, int ranks, CollectiveTable& collectives) {
  for (const record::FlightEntry& entry : dump.entries) {
    if (entry.outcome != record::CollectiveOutcome::done) continue;
    CollectiveKind kind;
    kind.operation = operation_name(entry.collective.operation);
    kind.element = entry.collective.element;
    kind.group = dump.group;
    kind.ranks = ranks;
    kind.bytes = collective_bytes(kind.operation, entry.collective.bytes, 1, ranks);
    std::optional<Nanos> duration;
    if (entry.seconds > 0 && entry.seconds < 1e9) duration = static_cast<Nanos>(1e9 * entry.seconds);
    collectives.add(std::move(kind), duration);
  }
}

}  // namespace

void add_flight_collectives(const record::Attempt& attempt, CollectiveTable& collectives, Profile& profile) {
  const auto own = files_by_rank(attempt.folder(), "flight-", ".bin");
  for (const auto& [rank, file] : own) {
    const auto dump = record::read_flight_dump(file);
    if (!dump.ok()) {
      profile.notes.push_back(std::string(dump.status().message()));
      continue;
    }
    add_dump(*dump, static_cast<int>(own.size()), collectives);
  }
  for (const auto& [rank, file] : files_by_rank(attempt.folder(), "torch-flight-", "")) {
    const auto flight = record::read_torch_flight(file, rank);
    if (!flight.ok()) {
      profile.notes.push_back(std::string(flight.status().message()));
      continue;
    }
    for (const record::TorchGroup& group : flight->groups)
      add_dump(group.flight, static_cast<int>(group.ranks.size()), collectives);
  }
}

}  // namespace stoker::profile
