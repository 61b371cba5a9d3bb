#include "checkpoint/read/catalog.h"

#include <algorithm>
#include <sys/stat.h>

#include "base/file.h"
#include "checkpoint/layout.h"
#include "checkpoint/lease.h"
#include "checkpoint/manifest.h"

namespace stoker::checkpoint {

namespace {

void fill(StepInfo& info, const StepManifest& manifest) {
  info.step = manifest.step;
  info.bytes = manifest.total_bytes();
  info.world_size = manifest.world_size;
  info.run = manifest.run;
  info.written = manifest.written;
  info.stall_s = manifest.stall_s;
  info.write_s = manifest.write_s;
  info.state_values = manifest.state;
}

std::uint64_t bytes_below(const Path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code vanished;
    const std::uint64_t size = at->is_regular_file(vanished) ? at->file_size(vanished) : 0;
    if (!vanished) bytes += size;
  }
  return bytes;
}

// Last change of a folder without a manifest.
double changed_at(const Path& folder) {
  struct stat info{};
  return ::stat(folder.c_str(), &info) == 0 ? static_cast<double>(info.st_mtim.tv_sec) : 0;
}

// The missing shares of an abandoned folder.
std::string missing_shares_text(const Path& folder) {
  const auto note = read_file(folder / failed_name(Rank{0}), 1_MiB);
  if (note.ok()) return std::string(parse_failure("given up", *note).message());
  const auto lease = find_lease(folder);
  if (!lease.ok()) return "incomplete (killed while writing)";
  std::string ranks;
  int missing = 0;
  for (int r = 0; r < lease->world_size.value; ++r) {
    if (path_exists(folder / ready_name(Rank{r}))) continue;
    if (++missing <= 8) ranks += (missing > 1 ? ", " : "") + std::to_string(r);
  }
  if (missing == 0) return "not committed (rank 0 was killed)";
  if (missing == 1) return format("rank {}'s share is missing (killed while writing)", ranks);
  return format("shares of {} ranks are missing: {}{} (killed while writing)", missing, ranks,
                missing > 8 ? ", ..." : "");
}

StepInfo pending_info(const Path& folder, Step step, WallTime now) {
  StepInfo info;
  info.folder = folder;
  info.step = step;
  info.state = is_pending_alive(folder, now) ? StepState::writing : StepState::torn;
  if (info.state == StepState::torn) info.why = missing_shares_text(folder);
  info.bytes = bytes_below(folder);
  info.written = changed_at(folder);
  return info;
}

}  // namespace

Result<std::vector<Step>> step_folders(const Path& directory) {
  std::vector<Step> steps;
  const auto names = list_directory(directory);
  if (!names.ok()) {
    if (names.error().code() == Code::not_found) return steps;
    return names.error();
  }
  for (const std::string& name : *names) {
    const auto step = step_of_folder(name);
    if (step && folder_exists(directory / name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

Result<StepReport> verify_step(const Path& folder, Depth depth) {
  NoProgress progress;
  return verify_step(folder, depth, progress);
}

Result<StepReport> verify_step(const Path& folder, Depth depth, Progress& progress) {
  if (!folder_exists(folder)) return not_found("{}: no such checkpoint", printable(folder.string()));
  StepReport report;
  report.info.folder = folder;
  report.info.step = step_of_folder(folder.filename().string()).value_or(Step{0});
  const auto manifest = read_manifest(folder);
  if (!manifest.ok()) {
    const bool is_missing = manifest.error().code() == Code::not_found;
    if (manifest.error().code() == Code::invalid)
      return manifest.error();  // from a newer Stoker: cannot be checked
    std::string what(manifest.error().message());
    const std::string prefix = printable((folder / kManifestName).string()) + ": ";
    if (what.starts_with(prefix)) what.erase(0, prefix.size());
    report.damages.push_back({std::string(kManifestName), is_missing ? "missing" : what});
    report.info.bytes = bytes_below(folder);
    report.info.written = changed_at(folder);
  } else {
    fill(report.info, *manifest);
    report.files = manifest->files.size();
    for (const StepPart part : kParts) report.tensors += manifest->tensors_of(part).size();
    const auto step = step_of_folder(folder.filename().string());
    if (step && *step != manifest->step) {
      report.damages.push_back({std::string(kManifestName), format("belongs to step {}", manifest->step)});
    }
    std::vector<StepDamage> found = depth == Depth::bytes ? verify_files(folder, *manifest, {}, progress)
                                                          : check_files(folder, *manifest);
    if (progress.stop_requested())
      return cancelled("{}: interrupted while reading", printable(folder.string()));
    report.damages.insert(report.damages.end(), found.begin(), found.end());
  }
  report.info.state = report.damages.empty() ? StepState::valid : StepState::torn;
  if (!report.damages.empty()) report.info.why = report.damages[0].text();
  if (report.damages.size() > 1) report.info.why += format(" (and {} more)", report.damages.size() - 1);
  return report;
}

Result<StepInfo> inspect_step(const Path& directory, Step step, Depth depth, Progress& progress) {
  const Path folder = directory / step_folder_name(step);
  auto report = verify_step(folder, depth, progress);
  if (report.ok()) return std::move(report->info);
  if (report.error().code() != Code::invalid) return std::move(report).error();
  StepInfo info;
  info.folder = folder;
  info.step = step;
  info.why = std::string(report.error().message());
  return info;
}

Result<std::vector<StepInfo>> list_steps(const Path& directory, Depth depth, WallTime now) {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(directory));
  NoProgress progress;
  std::vector<StepInfo> steps;
  for (const std::string& name : names) {
    const Path folder = directory / name;
    if (!folder_exists(folder)) continue;
    if (const auto hidden = hidden_folder(name); hidden && !hidden->is_removed) {
      steps.push_back(pending_info(folder, hidden->step, now));
    } else if (const auto step = step_of_folder(name)) {
      auto info = inspect_step(directory, *step, depth, progress);
      if (info.ok()) steps.push_back(std::move(*info));  // otherwise it was removed since the listing
    }
  }
  std::sort(steps.begin(), steps.end(), [](const StepInfo& a, const StepInfo& b) {
    return a.step != b.step ? a.step > b.step : a.folder < b.folder;
  });
  return steps;
}

Result<Path> latest_valid(const Path& directory) {
  STOKER_ASSIGN_OR_RETURN(steps, step_folders(directory));
  std::vector<SkippedStep> skipped;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const Path folder = directory / step_folder_name(*step);
    STOKER_ASSIGN_OR_RETURN(report, verify_step(folder, Depth::bytes));
    if (report.damages.empty()) return folder;
    skipped.push_back({folder, report.info.why});
  }
  return no_valid_step(directory, skipped);
}

Status no_valid_step(const Path& directory, const std::vector<SkippedStep>& skipped) {
  const std::string subject = printable(directory.string());
  if (skipped.empty()) return not_found("{}: no checkpoint", subject);
  std::string text;
  for (const SkippedStep& step : skipped) {
    text += format("{}{}: {}", text.empty() ? "" : "; ", step.folder.filename(), step.why);
  }
  return not_found("{}: no valid checkpoint ({})", subject, text);
}

}  // namespace stoker::checkpoint
