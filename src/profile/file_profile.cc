#include "profile/file_profile.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "profile/advice.h"
#include "profile/flight_collectives.h"
#include "profile/nccl/nccl_log.h"
#include "profile/nccl/nccl_notes.h"
#include "profile/trace/trace_profile.h"

namespace stoker::profile {
namespace {

constexpr std::size_t kMostFiles = 4096;

struct ProfileInputs {
  std::vector<Path> traces;
  std::map<int, Path> records;
  FlightFiles flights;
  FlightFiles torch_flights;
  NcclLines nccl;
  CollectiveTable collectives;
};

// The number at the end of the name, before ".csv" or ".bin".
int rank_of_file(const Path& file, std::size_t place) {
  const std::string stem = file.stem().string();
  const std::size_t end = stem.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  std::int64_t rank = 0;
  return parse_number(std::string_view(stem).substr(end), &rank) && rank < 10'000'000
             ? static_cast<int>(rank)
             : static_cast<int>(place);
}

// False if it is none of the known kinds.
bool sort_in(const Path& file, ProfileInputs& inputs) {
  if (looks_like_trace(file) && !looks_like_inspector(file)) {
    inputs.traces.push_back(file);
    return true;
  }
  if (const FlightKind kind = flight_kind(file); kind != FlightKind::none) {
    FlightFiles& flights = kind == FlightKind::trainer ? inputs.flights : inputs.torch_flights;
    int rank = rank_of_file(file, flights.size());
    while (flights.contains(rank)) ++rank;
    flights.emplace(rank, file);
    return true;
  }
  if (file.extension() != ".csv") {
    const NcclLines found = read_nccl_log(file, inputs.collectives);
    inputs.nccl += found;
    return found.lines > 0;
  }
  return inputs.records.emplace(rank_of_file(file, inputs.records.size()), file).second;
}

Status sort_in_folder(const Path& folder, ProfileInputs& inputs) {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(folder));
  std::size_t count = 0;
  for (const std::string& name : names) {
    std::error_code error;
    const Path file = folder / name;
    const bool is_candidate = name.ends_with(".json") || name.ends_with(".json.gz") ||
                              name.ends_with(".csv") || name.ends_with(".log") || name.starts_with("nccl") ||
                              name.starts_with("flight-") || name.starts_with("torch-flight-");
    if (!is_candidate || !std::filesystem::is_regular_file(file, error)) continue;
    if (sort_in(file, inputs) && ++count == kMostFiles) break;
  }
  if (count == 0)
    return not_found("{}: no trace, no records of steps, no NCCL log and no flight recorder in this folder",
                     printable(folder.string()));
  return {};
}

Result<ProfileInputs> sort_paths(std::span<const std::string> paths) {
  ProfileInputs inputs;
  for (const std::string& path : paths) {
    if (folder_exists(path)) {
      STOKER_RETURN_IF_ERROR(sort_in_folder(path, inputs));
    } else if (!path_exists(path)) {
      return not_found("{}: does not exist", printable(path));
    } else if (!sort_in(path, inputs)) {
      return invalid(
          "{}: is no trace (JSON), no records of steps (CSV), no log of NCCL and no flight recorder",
          printable(path));
    }
  }
  return inputs;
}

}  // namespace

Result<Profile> profile_files(std::span<const std::string> paths, const StepSelection& selection) {
  STOKER_ASSIGN_OR_RETURN(inputs, sort_paths(paths));
  if (!inputs.traces.empty() && !inputs.records.empty())
    return invalid("profile: traces and records of steps do not add up ({} and {})",
                   printable(inputs.traces.front().string()),
                   printable(inputs.records.begin()->second.string()));
  Profile profile;
  profile.subject = paths.size() == 1 ? paths.front() : format("{} files", paths.size());
  if (!inputs.records.empty())
    STOKER_RETURN_IF_ERROR(read_records(inputs.records, TimeSource::program, selection, profile));
  if (!inputs.traces.empty())
    STOKER_RETURN_IF_ERROR(read_traces(inputs.traces, selection, inputs.collectives, profile));
  add_flight_files(inputs.flights, FlightKind::trainer, inputs.collectives, profile);
  add_flight_files(inputs.torch_flights, FlightKind::torch, inputs.collectives, profile);
  note_nccl_lines(inputs.nccl, profile);
  profile.collectives = inputs.collectives.rows();
  const bool has_flights = !inputs.flights.empty() || !inputs.torch_flights.empty();
  if (has_flights && profile.ranks.empty() && profile.collectives.empty()) {
    return not_found("{}: no collective that ended{}", printable(profile.subject),
                     profile.notes.empty() ? "" : ": " + std::string(profile.notes.front().english()));
  }
  advise({}, profile);
  return profile;
}

}  // namespace stoker::profile
