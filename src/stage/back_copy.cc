// A round:
//   1. List the results, and compare names, sizes, times and modes with what was copied.
//   2. Divide the changes into units: a new folder that is not being written, or a file.
//   3. Write units into a pending folder in the target, and see that they are on disk.
//   4. Rename each unit to its name, unless one of its files changed in the meantime.
#include "stage/back_copy.h"

#include <algorithm>
#include <fcntl.h>
#include <set>
#include <unistd.h>

#include "base/thread.h"
#include "stage/copy.h"
#include "stage/list_tree.h"
#include "stage/publish.h"
#include "stage/write.h"

namespace stoker::stage {
namespace {

constexpr std::int64_t kRestSeconds = 2;
constexpr std::uint64_t kPartBytes = 256u << 20;
constexpr std::size_t kReadPiece = 4u << 20;
constexpr int kThreadsBesideRanks = 2;

// Results must be inside the folder, even if there is a link in the path.
Result<Path> path_inside(const Path& folder, const std::string& name) {
  std::error_code error;
  const Path root = std::filesystem::weakly_canonical(folder, error);
  const Path path = std::filesystem::weakly_canonical(folder / name, error);
  const auto [end, unused] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (error || end != root.end() || path == root)
    return invalid("stage.back: '{}' is outside the staged folder", printable(name));
  return path;
}

// Ensures that everything written below `folder` is on its disk or file server.
Status sync_filesystem(const Path& folder) {
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || ::syncfs(opened.get()) != 0) return posix_error(folder.string(), errno);
  return {};
}

bool is_same_entry(const ArchiveEntry& a, const ArchiveEntry& b) {
  return a.kind == b.kind && a.bytes == b.bytes && a.mtime == b.mtime && a.mtime_ns == b.mtime_ns &&
         a.mode == b.mode && a.link == b.link;
}

bool is_below(std::string_view name, std::string_view folder) {
  return name.size() > folder.size() && name.starts_with(folder) && name[folder.size()] == '/';
}

// All folders above a name, the outer ones first.
std::vector<std::string> folders_above(const std::string& name) {
  std::vector<std::string> folders;
  for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
    folders.push_back(name.substr(0, slash));
  return folders;
}

}  // namespace

// An entry of `stage.back`.
struct BackCopy::Item {
  std::string name;
  Path source;
};

// What appears at once.
struct BackCopy::Unit {
  std::vector<ArchiveEntry> entries;  // the first one is a folder if there are several
  std::pair<std::int64_t, std::uint32_t> newest;
  std::uint64_t bytes = 0;

  const std::string& name() const { return entries.front().name; }
  void add(const ArchiveEntry& entry) {
    newest = std::max(newest, std::pair(entry.mtime, entry.mtime_ns));
    bytes += entry.bytes;
    entries.push_back(entry);
  }
};

namespace {

// Files that programs may be writing.
class ResultSource final : public EntrySource {
 public:
  using Find = std::function<Path(const ArchiveEntry&)>;
  ResultSource(Find find, bool accepts_growth) : find_(std::move(find)), accepts_growth_(accepts_growth) {}

  Result<std::vector<ArchiveEntry>> list() override { return std::vector<ArchiveEntry>(); }

  // A file that is shorter than its entry, or gone, is filled up, and counts as changed.
  Status read(const ArchiveEntry& entry, const ByteSink& piece) const override {
    const auto file = File::open_regular(find_(entry));
    bool is_intact = file.ok();
    std::vector<std::byte> buffer(std::min<std::uint64_t>(kReadPiece, entry.bytes));
    for (std::uint64_t done = 0; done < entry.bytes;) {
      const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), entry.bytes - done));
      is_intact = is_intact && file->read_at(done, part).ok();
      if (!is_intact) std::ranges::fill(part, std::byte{0});
      STOKER_RETURN_IF_ERROR(piece(part));
      done += part.size();
    }
    if (is_intact && (accepts_growth_ || check_unchanged(*file, entry).ok())) return {};
    const MutexLock lock(mutex_);
    changed_.insert(entry.name);
    return {};
  }

  bool has_changed(const std::string& name) const {
    const MutexLock lock(mutex_);
    return changed_.contains(name);
  }

 private:
  const Find find_;
  const bool accepts_growth_;
  mutable Mutex mutex_;
  mutable std::set<std::string> changed_ STOKER_GUARDED_BY(mutex_);
};

}  // namespace

StageOutRound BackCopy::copy_changed(const std::function<bool()>& should_stop) {
  return run(false, should_stop);
}

StageOutRound BackCopy::copy_rest() {
  StageOutRound round = run(true, [] { return false; });
  if (round.problem.ok() && !round.written.empty())
    round.problem = unavailable("{}: cannot be read", printable(round.written.front()));
  return round;
}

TransferStats BackCopy::total() const {
  TransferStats stats;
  for (const auto& [name, entry] : copied_) {
    stats.files += entry.kind == EntryKind::folder ? 0 : 1;
    stats.bytes += entry.bytes;
  }
  return stats;
}

StageOutRound BackCopy::run(bool is_last, const std::function<bool()>& should_stop) {
  StageOutRound round;
  NoProgress progress;
  const auto note = [&](Status status) {
    if (round.problem.ok()) round.problem = std::move(status);
  };
  note(make_directories(target_));
  std::vector<Item> items;
  std::vector<Unit> units;
  std::vector<ArchiveEntry> folders;
  for (const std::string& name : request_.back) {
    auto source = path_inside(folder_, name);
    if (!source.ok()) {
      note(source.status());
      continue;
    }
    // "a/results/" is copied to "a" as "results", even if it is a link.
    items.push_back({without_slash(name).string(), *source});
    if (!path_exists(*source)) {
      round.missing.push_back(name);
      continue;
    }
    const auto entries = list_tree(*source, items.back().name, progress, TreeUse::in_use);
    if (!entries.ok()) {
      note(entries.status());
      continue;
    }
    std::ranges::move(units_of(*entries, is_last, round), std::back_inserter(units));
    std::ranges::copy_if(*entries, std::back_inserter(folders),
                         [](const ArchiveEntry& entry) { return entry.kind == EntryKind::folder; });
  }
  std::ranges::stable_sort(units, std::greater(), &Unit::newest);
  for (std::size_t next = 0; next < units.size() && !should_stop();) {
    std::vector<Unit> part;
    for (std::uint64_t bytes = 0; next < units.size() && bytes < kPartBytes; ++next) {
      Unit& unit = units[next];
      const Status room = check_free_space(printable(Path(unit.name()).filename().string()),
                                           space_needed(unit.entries), target_);
      bytes += unit.bytes;
      if (room.ok()) {
        part.push_back(std::move(unit));
      } else {
        note(room);
      }
    }
    if (Status status = copy_units(items, part, is_last, round); !status.ok()) note(std::move(status));
  }
  if (is_last) {
    std::erase_if(folders, [&](const ArchiveEntry& entry) { return !copied_.contains(entry.name); });
    note(finish_tree(folders, target_).status());
  }
  return round;
}

std::vector<BackCopy::Unit> BackCopy::units_of(const std::vector<ArchiveEntry>& entries, bool is_last,
                                               StageOutRound& round) {
  const std::int64_t now = std::time(nullptr);
  std::set<std::string> moving;  // files that are being written, and folders above them
  for (const ArchiveEntry& entry : entries) {
    if (is_last || entry.kind != EntryKind::file || now - entry.mtime >= kRestSeconds) continue;
    round.written.push_back(entry.name);
    moving.insert(entry.name);
    for (std::string& folder : folders_above(entry.name)) moving.insert(std::move(folder));
  }
  std::vector<Unit> units;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ArchiveEntry& entry = entries[i];
    const auto known = copied_.find(entry.name);
    const bool is_known = known != copied_.end() && known->second.kind == entry.kind;
    if (moving.contains(entry.name)) continue;
    if (is_known && (entry.kind == EntryKind::folder || is_same_entry(known->second, entry))) continue;
    Unit unit;
    unit.add(entry);
    while (entry.kind == EntryKind::folder && i + 1 < entries.size() &&
           is_below(entries[i + 1].name, unit.name()))
      unit.add(entries[++i]);
    units.push_back(std::move(unit));
  }
  return units;
}

Status BackCopy::copy_units(const std::vector<Item>& items, const std::vector<Unit>& units, bool is_last,
                            StageOutRound& round) {
  if (units.empty()) return {};
  const auto find = [&](const ArchiveEntry& entry) {
    const auto item = std::ranges::find_if(
        items, [&](const Item& one) { return entry.name == one.name || is_below(entry.name, one.name); });
    return source_of(entry, item->source, item->name);
  };
  STOKER_ASSIGN_OR_RETURN(pending, PendingFolder::create(target_));
  std::vector<ArchiveEntry> entries;
  for (const Unit& unit : units) entries.insert(entries.end(), unit.entries.begin(), unit.entries.end());
  const ResultSource source(find, is_last);
  NoProgress progress;
  STOKER_RETURN_IF_ERROR(
      write_entries(source, entries, pending.path(), is_last ? 0 : kThreadsBesideRanks, progress).status());
  STOKER_RETURN_IF_ERROR(sync_filesystem(pending.path()));
  for (const Unit& unit : units) {
    const auto changed = std::ranges::find_if(
        unit.entries, [&](const ArchiveEntry& entry) { return source.has_changed(entry.name); });
    if (changed != unit.entries.end()) {
      round.written.push_back(changed->name);
      continue;
    }
    STOKER_RETURN_IF_ERROR(publish(unit, pending.path()));
    for (const ArchiveEntry& entry : unit.entries) {
      round.copied.files += entry.kind == EntryKind::folder ? 0 : 1;
      round.copied.bytes += entry.bytes;
    }
  }
  return {};
}

Status BackCopy::publish(const Unit& unit, const Path& pending) {
  for (const std::string& folder : folders_above(unit.name())) {
    ArchiveEntry entry{.name = folder, .kind = EntryKind::folder};
    copied_.try_emplace(folder, std::move(entry));
  }
  const Path to = target_ / unit.name();
  STOKER_RETURN_IF_ERROR(make_directories(to.parent_path()));
  // A file cannot replace a folder, nor a folder a file.
  std::error_code error;
  const bool is_folder =
      std::filesystem::symlink_status(to, error).type() == std::filesystem::file_type::directory;
  if (is_folder || (path_exists(to) && unit.entries.front().kind == EntryKind::folder))
    STOKER_RETURN_IF_ERROR(remove_tree(to));
  STOKER_RETURN_IF_ERROR(rename_path(pending / unit.name(), to));
  for (const ArchiveEntry& entry : unit.entries) copied_[entry.name] = entry;
  return {};
}

}  // namespace stoker::stage
