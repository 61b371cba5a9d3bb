#include "checkpoint/foreign/latest.h"

#include <algorithm>
#include <fnmatch.h>
#include <functional>
#include <sys/stat.h>
#include <tuple>

#include "base/file.h"
#include "checkpoint/foreign/file_check.h"
#include "checkpoint/foreign/hugging_face.h"
#include "checkpoint/layout.h"
#include "checkpoint/read/catalog.h"

namespace stoker::checkpoint {

namespace {

// One thing that may be a checkpoint, and how to look whether it is a whole one.
struct CheckpointCandidate {
  Path path;
  std::string kind;
  std::optional<std::int64_t> step;
  std::int64_t changed = 0;  // nanoseconds of Unix time
  std::function<Status()> check;
};

// Detects an active writer: size and modification time of a file, or of all files of a folder.
struct WriteFingerprint {
  std::uint64_t bytes = 0;
  std::int64_t changed = 0;
  std::uint64_t files = 0;
  bool operator==(const WriteFingerprint&) const = default;
};

void add_to(WriteFingerprint& fingerprint, const Path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return;
  fingerprint.bytes += S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
  fingerprint.changed =
      std::max(fingerprint.changed, std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec);
  ++fingerprint.files;
}

WriteFingerprint fingerprint_of(const Path& path) {
  WriteFingerprint fingerprint;
  add_to(fingerprint, path);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return fingerprint;
  for (std::filesystem::recursive_directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    add_to(fingerprint, at->path());
  }
  return fingerprint;
}

bool matches(const std::string& name, const LatestOptions& options) {
  return options.match.empty() || ::fnmatch(options.match.c_str(), name.c_str(), FNM_PERIOD) == 0;
}

// Names under which tools keep what is not finished.
bool is_temporary(const std::string& name) {
  const auto ends = [&](std::string_view suffix) { return name.ends_with(suffix); };
  return name.starts_with('.') || name.starts_with("tmp-") || ends(".tmp") || ends(".part") ||
         ends(".incomplete");
}

// "checkpoint-500": 500.
std::optional<std::int64_t> number_after(std::string_view name, std::string_view prefix) {
  std::int64_t number = 0;
  if (!name.starts_with(prefix) || !parse_number(name.substr(prefix.size()), &number) || number < 0)
    return std::nullopt;
  return number;
}

// Lightning's "epoch=3-step=1200.ckpt": 1200.
std::optional<std::int64_t> step_in(std::string_view name) {
  constexpr std::string_view kWord = "step=";
  const std::size_t at = name.rfind(kWord);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view digits = name.substr(at + kWord.size());
  digits = digits.substr(0, std::min(digits.size(), digits.find_first_not_of("0123456789")));
  std::int64_t step = 0;
  return parse_number(digits, &step) ? std::optional(step) : std::nullopt;
}

// torch renames .metadata into place after all ranks have synced their files.
Status check_dcp(const Path& folder) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(folder / ".metadata", error);
  if (error) return corrupt("{}: has no .metadata, which is written last", printable(folder.string()));
  if (size == 0) return corrupt("{}: .metadata is empty", printable(folder.string()));
  return {};
}

bool is_dcp(const Path& folder) {
  const auto names = list_directory(folder);
  if (!names.ok()) return false;
  return std::ranges::any_of(*names, [](const std::string& name) { return name.ends_with(".distcp"); });
}

std::optional<CheckpointCandidate> candidate_of(const Path& folder, const std::string& name) {
  const Path path = folder / name;
  if (const auto kind = file_kind(name); kind && !folder_exists(path)) {
    return CheckpointCandidate{path, std::string(to_text(*kind)), step_in(name), fingerprint_of(path).changed,
                               [path, kind] { return check_complete(path, *kind); }};
  }
  if (!folder_exists(path) || !is_dcp(path)) return std::nullopt;
  return CheckpointCandidate{path, "dcp", step_in(name), fingerprint_of(path).changed,
                             [path] { return check_dcp(path); }};
}

std::vector<CheckpointCandidate> other_candidates(const Path& folder, const std::vector<std::string>& names) {
  std::vector<CheckpointCandidate> numbered;
  for (const std::string& name : names) {
    const auto number = number_after(name, "checkpoint-");
    const Path path = folder / name;
    if (number && folder_exists(path))
      numbered.push_back(
          {path, "hugging face", number, *number, [path] { return check_hugging_face(path); }});
  }
  std::vector<CheckpointCandidate>& all = numbered;
  if (numbered.empty()) {
    for (const std::string& name : names) {
      if (auto candidate = candidate_of(folder, name)) all.push_back(std::move(*candidate));
    }
  }
  std::ranges::sort(all, [](const CheckpointCandidate& a, const CheckpointCandidate& b) {
    return std::tie(a.changed, a.path) > std::tie(b.changed, b.path);
  });
  return all;
}

// Waits until a recently changed candidate has been unchanged for the settle time.
Status wait_until_stable(const CheckpointCandidate& candidate, const WriteFingerprint& before,
                         const LatestOptions& options, Clock& clock, Progress& progress) {
  constexpr auto kPollInterval = std::chrono::milliseconds(50);
  const auto is_same = [&] { return fingerprint_of(candidate.path) == before; };
  const Status changes = invalid("{}: changed while being checked: it is still being written",
                                 printable(candidate.path.string()));
  const std::int64_t age = clock.wall().time_since_epoch().count() - before.changed;
  // A time in the future comes from another machine's clock.
  Duration left = options.settle - Duration(std::clamp<std::int64_t>(age, 0, options.settle.count()));
  for (; left > Duration::zero() && is_same(); left -= kPollInterval) {
    if (progress.stop_requested()) return cancelled("checkpoint latest: stopped");
    clock.sleep(std::min<Duration>(left, kPollInterval));
  }
  return is_same() ? Status() : changes;
}

std::string without_folder(const Path& folder, const Status& error) {
  std::string text(error.message());
  const std::string prefix = printable(folder.string()) + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

Result<Latest> latest_step(const Path& folder, std::vector<Step> steps, const LatestOptions& options,
                           Progress& progress) {
  Latest latest;
  std::ranges::reverse(steps);
  for (const Step step : steps) {
    const Path path = folder / step_folder_name(step);
    if (!matches(path.filename().string(), options)) continue;
    STOKER_ASSIGN_OR_RETURN(info, inspect_step(folder, step, Depth::bytes, progress));
    if (info.state != StepState::valid) {
      latest.skipped.push_back({path, info.why});
      continue;
    }
    latest.path = path;
    latest.kind = "stoker";
    latest.step = step.value;
    break;
  }
  return latest;
}

}  // namespace

Result<std::vector<ForeignCheckpoint>> list_foreign(const Path& folder) {
  std::vector<ForeignCheckpoint> all;
  auto names = list_directory(folder);
  if (!names.ok() && names.error().code() == Code::not_found) return all;
  if (!names.ok()) return std::move(names).error();
  std::erase_if(*names, is_temporary);
  for (const CheckpointCandidate& candidate : other_candidates(folder, *names)) {
    const WriteFingerprint found = fingerprint_of(candidate.path);
    const Status status = candidate.check();
    all.push_back({.path = candidate.path,
                   .kind = candidate.kind,
                   .step = candidate.step,
                   .bytes = found.bytes,
                   .written = 1e-9 * static_cast<double>(found.changed),
                   .why = status.ok() ? "" : without_folder(candidate.path, status)});
  }
  return all;
}

Result<Latest> find_latest(const Path& folder, const LatestOptions& options, Clock& clock,
                           Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(steps, step_folders(folder));
  if (!steps.empty()) return latest_step(folder, std::move(steps), options, progress);
  Latest latest;
  auto names = list_directory(folder);
  if (!names.ok()) {
    if (names.error().code() == Code::not_found) return latest;
    return std::move(names).error();
  }
  std::erase_if(*names,
                [&](const std::string& name) { return is_temporary(name) || !matches(name, options); });
  for (CheckpointCandidate& candidate : other_candidates(folder, *names)) {
    const WriteFingerprint before = fingerprint_of(candidate.path);
    Status status = candidate.check();
    if (status.ok()) status = wait_until_stable(candidate, before, options, clock, progress);
    if (status.code() == Code::cancelled) return status;
    if (!status.ok()) {
      latest.skipped.push_back({candidate.path, without_folder(candidate.path, status)});
      continue;
    }
    latest.path = candidate.path;
    latest.kind = candidate.kind;
    latest.step = candidate.step;
    break;
  }
  return latest;
}

}  // namespace stoker::checkpoint
