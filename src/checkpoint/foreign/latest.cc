#include "checkpoint/foreign/latest.h"

#include <algorithm>
#include <fnmatch.h>
#include <functional>
#include <sys/stat.h>
#include <tuple>

#include "base/file.h"
#include "checkpoint/catalog.h"
#include "checkpoint/foreign/hugging_face.h"
#include "checkpoint/foreign/whole_file.h"
#include "checkpoint/layout.h"

namespace stoker::checkpoint {

namespace {

// One thing that may be a checkpoint, and how to look whether it is a whole one.
struct Candidate {
  Path path;
  std::string kind;
  std::optional<std::int64_t> step;
  std::int64_t changed = 0;  // nanoseconds of Unix time
  std::function<Status()> check;
};

// What tells that somebody still writes: size and time of a file, or of all files of a folder.
struct Trace {
  std::uint64_t bytes = 0;
  std::int64_t changed = 0;
  std::uint64_t files = 0;
  bool operator==(const Trace&) const = default;
};

void add_to(Trace& trace, const Path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return;
  trace.bytes += S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
  trace.changed =
      std::max(trace.changed, std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec);
  ++trace.files;
}

Trace trace_of(const Path& path) {
  Trace trace;
  add_to(trace, path);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return trace;
  for (std::filesystem::recursive_directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    add_to(trace, at->path());
  }
  return trace;
}

bool fits(const std::string& name, const LatestOptions& options) {
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

// torch renames .metadata into place when all ranks have synced their files.
Status check_dcp(const Path& folder) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(folder / ".metadata", error);
  if (error) return corrupt("{}: has no .metadata, which is written last", printable(folder.string()));
  if (size == 0) return corrupt("{}: its .metadata is empty", printable(folder.string()));
  return {};
}

bool is_dcp(const Path& folder) {
  const auto names = list_directory(folder);
  if (!names.ok()) return false;
  return std::ranges::any_of(*names, [](const std::string& name) { return name.ends_with(".distcp"); });
}

std::optional<Candidate> candidate_of(const Path& folder, const std::string& name) {
  const Path path = folder / name;
  if (const auto kind = kind_of_file(name); kind && !folder_exists(path)) {
    return Candidate{path, std::string(to_text(*kind)), step_in(name), trace_of(path).changed,
                     [path, kind] { return check_whole(path, *kind); }};
  }
  if (!folder_exists(path) || !is_dcp(path)) return std::nullopt;
  return Candidate{path, "dcp", step_in(name), trace_of(path).changed, [path] { return check_dcp(path); }};
}

std::vector<Candidate> other_candidates(const Path& folder, const std::vector<std::string>& names) {
  std::vector<Candidate> numbered;
  for (const std::string& name : names) {
    const auto number = number_after(name, "checkpoint-");
    const Path path = folder / name;
    if (number && folder_exists(path))
      numbered.push_back(
          {path, "hugging face", number, *number, [path] { return check_hugging_face(path); }});
  }
  std::vector<Candidate>& all = numbered;
  if (numbered.empty()) {
    for (const std::string& name : names) {
      if (auto candidate = candidate_of(folder, name)) all.push_back(std::move(*candidate));
    }
  }
  std::ranges::sort(all, [](const Candidate& a, const Candidate& b) {
    return std::tie(a.changed, a.path) > std::tie(b.changed, b.path);
  });
  return all;
}

// Watches what changed a short time ago until it has held still for long enough.
Status hold_still(const Candidate& candidate, const Trace& before, const LatestOptions& options, Clock& clock,
                  Progress& progress) {
  constexpr auto kGlance = std::chrono::milliseconds(50);
  const auto is_same = [&] { return trace_of(candidate.path) == before; };
  const Status changes = invalid("{}: changed while it was looked at: it is still being written",
                                 printable(candidate.path.string()));
  const std::int64_t age = clock.wall().time_since_epoch().count() - before.changed;
  // A time in the future is another machine's clock.
  Duration left = options.settle - Duration(std::clamp<std::int64_t>(age, 0, options.settle.count()));
  for (; left > Duration::zero() && is_same(); left -= kGlance) {
    if (progress.stop_requested()) return cancelled("checkpoint latest: stopped");
    clock.sleep(std::min<Duration>(left, kGlance));
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
    if (!fits(path.filename().string(), options)) continue;
    OK_OR_RETURN(info, look_at_step(folder, step, Depth::bytes, progress));
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

Result<Latest> find_latest(const Path& folder, const LatestOptions& options, Clock& clock,
                           Progress& progress) {
  OK_OR_RETURN(steps, step_folders(folder));
  if (!steps.empty()) return latest_step(folder, std::move(steps), options, progress);
  Latest latest;
  auto names = list_directory(folder);
  if (!names.ok()) {
    if (names.error().code() == Code::not_found) return latest;
    return std::move(names).error();
  }
  std::erase_if(*names, [&](const std::string& name) { return is_temporary(name) || !fits(name, options); });
  for (Candidate& candidate : other_candidates(folder, *names)) {
    const Trace before = trace_of(candidate.path);
    Status status = candidate.check();
    if (status.ok()) status = hold_still(candidate, before, options, clock, progress);
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
