#include "profile/flight_collectives.h"

#include "base/file.h"
#include "profile/records.h"
#include "record/trace/flight.h"
#include "record/trace/torch_flight.h"

namespace stoker::profile {
namespace {

constexpr std::string_view kTrainerMagic = "STKFLGHT";
constexpr std::string_view kPickleMagic = "\x80";  // of protocol 2 and later

struct Durations {
  std::uint64_t known = 0;
  std::uint64_t unknown = 0;
};

// When torch finds that a collective has ended depends on how often it looks, so only its timed ones count.
void add_dump(const record::FlightDump& dump, FlightKind kind_of_file, int ranks,
              CollectiveTable& collectives, Durations& durations) {
  for (const record::FlightEntry& entry : dump.entries) {
    if (entry.outcome != record::CollectiveOutcome::done) continue;
    CollectiveKind kind;
    kind.operation = operation_name(entry.collective.operation);
    kind.element = entry.collective.element;
    kind.group = dump.group.empty() ? "all ranks" : dump.group;
    kind.ranks = ranks;
    kind.bytes = collective_bytes(kind.operation, entry.collective.bytes, 1, ranks);
    const double seconds = kind_of_file == FlightKind::torch ? entry.measured_s : entry.seconds;
    std::optional<Nanos> duration;
    if (seconds > 0 && seconds < 1e9) duration = static_cast<Nanos>(1e9 * seconds);
    ++(duration ? durations.known : durations.unknown);
    collectives.add(std::move(kind), duration);
  }
}

Status add_trainer_flight(const Path& file, int ranks, CollectiveTable& collectives, Durations& durations) {
  STOKER_ASSIGN_OR_RETURN(dump, record::read_flight_dump(file));
  add_dump(dump, FlightKind::trainer, ranks, collectives, durations);
  return {};
}

Status add_torch_flight(const Path& file, int rank, CollectiveTable& collectives, Durations& durations) {
  STOKER_ASSIGN_OR_RETURN(flight, record::read_torch_flight(file, rank));
  for (const record::TorchGroup& group : flight.groups)
    add_dump(group.flight, FlightKind::torch, static_cast<int>(group.ranks.size()), collectives, durations);
  return {};
}

}  // namespace

void add_flight_collectives(const record::Attempt& attempt, CollectiveTable& collectives, Profile& profile) {
  const Path folder = attempt.folder();
  add_flight_files(files_by_rank(folder, "flight-", ".bin"), FlightKind::trainer, collectives, profile);
  add_flight_files(files_by_rank(folder, "torch-flight-", ""), FlightKind::torch, collectives, profile);
}

FlightKind flight_kind(const Path& path) {
  const auto file = File::open_regular(path);
  if (!file.ok()) return FlightKind::none;
  const auto begin = file->read_available(0, kTrainerMagic.size());
  if (!begin.ok()) return FlightKind::none;
  if (*begin == kTrainerMagic) return FlightKind::trainer;
  return begin->starts_with(kPickleMagic) ? FlightKind::torch : FlightKind::none;
}

void add_flight_files(const FlightFiles& files, FlightKind kind, CollectiveTable& collectives,
                      Profile& profile) {
  Durations durations;
  for (const auto& [rank, file] : files) {
    const Status status =
        kind == FlightKind::trainer
            ? add_trainer_flight(file, static_cast<int>(files.size()), collectives, durations)
            : add_torch_flight(file, rank, collectives, durations);
    if (!status.ok()) profile.notes.push_back(std::string(status.message()));
  }
  if (kind == FlightKind::torch && durations.unknown > 0 && durations.known == 0)
    profile.notes.push_back(
        message("torch's flight recorder has durations only with TORCH_NCCL_ENABLE_TIMING=1"));
}

}  // namespace stoker::profile
