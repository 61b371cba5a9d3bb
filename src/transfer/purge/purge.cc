// Order of removal: the manifest, so that the rest is not a dataset; the other files of the marker;
// the marker, by which a later call finds the rest; folders that are empty then.
#include "transfer/purge/purge.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "dataset/manifest.h"
#include "transfer/copy_marker.h"
#include "transfer/purge/uses.h"

namespace stoker::transfer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPendingPrefix = ".stoker-transfer-";
constexpr std::size_t kPendingNameBytes = kPendingPrefix.size() + 16;
constexpr std::string_view kRunFile = "run.json";
constexpr int kDeepest = 64;

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

bool is_pending_name(const std::string& name) {
  return name.size() == kPendingNameBytes && name.starts_with(kPendingPrefix) &&
         name.find_first_not_of("0123456789abcdef", kPendingPrefix.size()) == std::string::npos;
}

class Purge {
 public:
  Purge(const PurgeRequest& request, Uses uses, Progress& progress)
      : request_(request), uses_(std::move(uses)), progress_(progress) {}

  Result<PurgeReport> run(const Path& folder) && {
    report_.folder = folder;
    struct statvfs about{};
    report_.has_read_times = ::statvfs(folder.c_str(), &about) != 0 || (about.f_flag & ST_NOATIME) == 0;
    for (const Path& runs : request_.runs) add_runs(runs);
    STOKER_RETURN_IF_ERROR(walk(folder, 0));
    judge();
    if (request_.is_removing) STOKER_RETURN_IF_ERROR(remove_entries());
    for (const PurgeEntry& entry : report_.entries) report_.bytes += entry.kept.empty() ? entry.bytes : 0;
    return std::move(report_);
  }

 private:
  void add_runs(const Path& runs) {
    const auto names = list_directory(runs);
    for (std::size_t i = 0; names.ok() && i < names->size(); ++i) {
      if (path_exists(runs / (*names)[i] / kRunFile)) uses_.add_run(runs / (*names)[i]);
    }
  }

  Status walk(const Path& folder, int depth) {
    if (progress_.stop_requested()) return cancelled("data purge: interrupted");
    if (path_exists(folder / kRunFile)) {
      uses_.add_run(folder);
      return {};
    }
    if (path_exists(folder / kCopyMarker)) {
      add_copy(folder);
      return {};
    }
    if (path_exists(folder / dataset::kManifestFile) && dataset::read_manifest(folder).ok()) {
      report_.foreign.push_back(folder);
      return {};
    }
    const auto names = list_directory(folder);
    if (!names.ok() || depth == kDeepest) {
      report_.unread.push_back(folder.string());
      return {};
    }
    for (const std::string& name : *names) {
      const Path path = folder / name;
      struct stat about{};
      if (::lstat(path.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) continue;
      if (is_pending_name(name)) {
        add_unfinished(path);
      } else {
        STOKER_RETURN_IF_ERROR(walk(path, depth + 1));
      }
    }
    return {};
  }

  void add_copy(const Path& folder) {
    PurgeEntry entry{.folder = folder, .kind = PurgeKind::copy};
    const auto text = read_file(folder / kCopyMarker);
    const auto marker = text.ok() ? parse_copy_marker(*text, (folder / kCopyMarker).string())
                                  : Result<CopyMarker>(text.status());
    if (!marker.ok()) {
      entry.kept = std::string(marker.status().message());
      report_.entries.push_back(std::move(entry));
      return;
    }
    entry.version = marker->version;
    entry.source = marker->source;
    for (const CopiedFile& file : marker->files) add_file(folder / file.name, entry);
    add_file(folder / kCopyMarker, entry);
    report_.entries.push_back(std::move(entry));
  }

  void add_unfinished(const Path& folder) {
    PurgeEntry entry{.folder = folder, .kind = PurgeKind::unfinished};
    std::error_code error;
    for (fs::recursive_directory_iterator each(folder, error), end; !error && each != end;
         each.increment(error))
      add_file(each->path(), entry);
    add_file(folder, entry);
    report_.entries.push_back(std::move(entry));
  }

  void add_file(const Path& path, PurgeEntry& entry) const {
    struct stat about{};
    if (::lstat(path.c_str(), &about) != 0) return;
    if (S_ISREG(about.st_mode)) {
      entry.bytes += static_cast<std::uint64_t>(about.st_size);
      entry.files += 1;
    }
    const auto note = [&entry](double time, std::string_view by) {
      if (time > entry.last_used) {
        entry.last_used = time;
        entry.used_by = by;
      }
    };
    note(seconds_of(about.st_mtim), "written");
    // This command reads the small files itself.
    const std::string name = path.filename().string();
    const bool is_data = S_ISREG(about.st_mode) && name != kCopyMarker && name != dataset::kManifestFile;
    if (is_data && report_.has_read_times) note(seconds_of(about.st_atim), "read");
  }

  // Which entries stay, and why.
  void judge() {
    const double limit = unix_seconds(RealClock().wall()) - Seconds(request_.age).count();
    std::vector<PurgeEntry> entries;
    for (PurgeEntry& entry : report_.entries) {
      if (const auto recorded = uses_.last_use(entry.folder); recorded && recorded->time > entry.last_used) {
        entry.last_used = recorded->time;
        entry.used_by = recorded->by;
      }
      if (entry.kept.empty() && entry.last_used > limit) {
        report_.young += 1;
        continue;
      }
      if (entry.kept.empty()) check_use(entry);
      entries.push_back(std::move(entry));
    }
    std::sort(entries.begin(), entries.end(),
              [](const PurgeEntry& a, const PurgeEntry& b) { return a.folder < b.folder; });
    report_.entries = std::move(entries);
  }

  void check_use(PurgeEntry& entry) const {
    entry.kept = uses_.in_use(entry.folder, entry.version);
    entry.is_in_use = !entry.kept.empty();
  }

  Status remove_entries() {
    for (PurgeEntry& entry : report_.entries) {
      if (!entry.kept.empty()) continue;
      if (progress_.stop_requested()) return cancelled("data purge: interrupted");
      uses_.refresh_processes();
      check_use(entry);
      if (!entry.kept.empty()) continue;
      const Status removed = entry.kind == PurgeKind::copy ? remove_copy(entry) : remove_tree(entry.folder);
      if (!removed.ok()) entry.kept = std::string(removed.message());
    }
    return {};
  }

  static Status remove_copy(PurgeEntry& entry) {
    STOKER_ASSIGN_OR_RETURN(text, read_file(entry.folder / kCopyMarker));
    STOKER_ASSIGN_OR_RETURN(marker, parse_copy_marker(text, entry.folder.string()));
    std::stable_partition(marker.files.begin(), marker.files.end(),
                          [](const CopiedFile& file) { return file.name == dataset::kManifestFile; });
    std::set<Path> folders;
    std::string changed;
    for (const CopiedFile& file : marker.files) {
      const Path path = entry.folder / file.name;
      if (leads_out(entry.folder, path)) return invalid("{}: is below a link", printable(path.string()));
      for (Path parent = path.parent_path(); parent != entry.folder; parent = parent.parent_path())
        folders.insert(parent);
      struct stat about{};
      if (::lstat(path.c_str(), &about) != 0) continue;
      if (!S_ISREG(about.st_mode) || static_cast<std::uint64_t>(about.st_size) != file.bytes) {
        changed = printable(file.name);
        continue;
      }
      STOKER_RETURN_IF_ERROR(remove_file(path));
    }
    if (!changed.empty()) return exists("{} was changed after the copy, and stays", changed);
    STOKER_RETURN_IF_ERROR(remove_file(entry.folder / kCopyMarker));
    // The deepest first. Folders with other files stay.
    for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) (void)::rmdir(folder->c_str());
    (void)::rmdir(entry.folder.c_str());
    return {};
  }

  // Whether a folder between them is a link.
  static bool leads_out(const Path& folder, const Path& path) {
    for (Path parent = path.parent_path(); parent != folder; parent = parent.parent_path()) {
      struct stat about{};
      if (::lstat(parent.c_str(), &about) == 0 && S_ISLNK(about.st_mode)) return true;
    }
    return false;
  }

  const PurgeRequest& request_;
  Uses uses_;
  Progress& progress_;
  PurgeReport report_;
};

}  // namespace

Result<PurgeReport> purge_copies(const PurgeRequest& request, Progress& progress) {
  std::error_code error;
  const Path folder = fs::canonical(request.folder, error);
  if (error) return posix_error(printable(request.folder.string()), error.value());
  if (!folder_exists(folder)) return invalid("{}: is not a folder", printable(request.folder.string()));
  STOKER_ASSIGN_OR_RETURN(uses, Uses::collect(folder, request.cache));
  return Purge(request, std::move(uses), progress).run(folder);
}

}  // namespace stoker::transfer
