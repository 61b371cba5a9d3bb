#include "diagnose/torch_dumps.h"

#include <filesystem>
#include <utility>

#include <re2/re2.h>

#include "base/file.h"
#include "record/trace/torch_flight.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::size_t kMaxFiles = 4096;

// The pickle of a dictionary, with or without a frame. Other files whose names end in a number rarely begin
// so.
bool looks_like_dump(const Path& file) {
  constexpr std::size_t kFrameBytes = 9;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  const auto opened = File::open_read(file);
  char begin[3 + kFrameBytes] = {};
  if (!opened.ok() || !opened->read_at(0, std::as_writable_bytes(std::span(begin, 3))).ok()) return false;
  if (begin[0] != '\x80') return false;
  if (begin[2] != '\x95') return begin[2] == '}';
  return opened->read_at(0, std::as_writable_bytes(std::span(begin))).ok() && begin[2 + kFrameBytes] == '}';
}

// The name without its final number, and the number; -1 without one.
std::pair<std::string, int> split_name(const std::string& name) {
  const std::size_t end = name.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  std::int64_t rank = -1;
  const bool has_rank = end < name.size() && name.size() - end <= 6 && parse_number(name.substr(end), &rank);
  return {name.substr(0, end), has_rank ? static_cast<int>(rank) : -1};
}

}  // namespace

void add_collective_records(const std::vector<std::string>& lines, FailureFacts& facts) {
  static const RE2 kMissing(
      R"(^rank (\d+) (?:\(.*\) )?(?:has not reached|has started no collective|has left no dump|is in|reached) )");
  for (const std::string& line : lines) {
    int rank = -1;
    (void)RE2::PartialMatch(line, kMissing, &rank);
    if (!line.empty()) facts.records.push_back({std::string(kFlightRecorder), line, rank});
  }
}

void add_torch_dumps(const std::map<int, Path>& files, FailureFacts& facts) {
  std::vector<record::TorchFlight> flights;
  for (const auto& [rank, file] : files) {
    auto flight = record::read_torch_flight(file, rank);
    if (!flight.ok()) {
      facts.unreadable.emplace_back(flight.status().message());
      continue;
    }
    const auto host = facts.hosts.find(rank);
    for (record::TorchGroup& group : flight->groups) {
      if (host != facts.hosts.end()) group.flight.host = host->second;
    }
    flights.push_back(*std::move(flight));
  }
  add_collective_records(record::describe_torch_desync(flights), facts);
}

bool find_torch_dumps(const Path& path, FailureFacts& facts) {
  const bool is_folder = folder_exists(path);
  const Path folder = is_folder ? path : path.parent_path().empty() ? Path(".") : path.parent_path();
  const std::string prefix = is_folder ? "" : split_name(path.filename().string()).first;
  if (!is_folder && !looks_like_dump(path)) return false;
  const auto names = list_directory(folder);
  if (!names.ok()) return false;
  // A folder may have the dumps of several programs: by prefix.
  std::map<std::string, std::map<int, Path>> dumps;
  std::size_t count = 0;
  for (const std::string& name : *names) {
    const auto [begin, rank] = split_name(name);
    if (rank < 0 || (!is_folder && begin != prefix) || count == kMaxFiles) continue;
    if (!looks_like_dump(folder / name)) continue;
    dumps[begin].emplace(rank, folder / name);
    ++count;
  }
  for (const auto& [begin, files] : dumps) add_torch_dumps(files, facts);
  return count > 0;
}

}  // namespace stoker::diagnose
