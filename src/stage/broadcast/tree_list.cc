#include "stage/broadcast/tree_list.h"

#include <algorithm>

#include "stage/archive.h"
#include "stage/copy.h"
#include "stage/list_tree.h"

namespace stoker::stage {
namespace {

constexpr std::string_view kListMark = "StkL";
constexpr std::string_view kArchives = ".staging-archives";
constexpr std::uint32_t kLongestName = 1u << 16;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;

// Also the number of bytes of all files.
std::uint64_t set_positions(std::vector<ArchiveEntry>& entries, std::uint64_t position) {
  for (ArchiveEntry& entry : entries) {
    if (entry.kind != EntryKind::file) continue;
    entry.data_position = position;
    position += entry.bytes;
  }
  return position;
}

void append_number(std::string& text, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
}

void append_entry(std::string& text, const ArchiveEntry& entry) {
  append_number(text, static_cast<std::uint64_t>(entry.kind), 1);
  append_number(text, entry.mode, 4);
  append_number(text, static_cast<std::uint64_t>(entry.mtime), 8);
  append_number(text, entry.mtime_ns, 4);
  append_number(text, entry.bytes, 8);
  for (const std::string& word : {entry.name, entry.link}) {
    append_number(text, word.size(), 4);
    text += word;
  }
}

Status bad_list(std::string_view what) { return corrupt("the list of staged files has {}", what); }

// The rest of a list, from its front.
class TreeListReader {
 public:
  explicit TreeListReader(std::string_view rest) : rest_(rest) {}
  bool at_end() const { return rest_.empty(); }

  Result<ArchiveEntry> entry() {
    ArchiveEntry entry;
    const std::uint64_t kind = number(1);
    entry.mode = static_cast<std::uint32_t>(number(4));
    entry.mtime = static_cast<std::int64_t>(number(8));
    entry.mtime_ns = static_cast<std::uint32_t>(number(4));
    entry.bytes = number(8);
    entry.name = word();
    entry.link = word();
    if (is_short_) return bad_list("half an entry");
    if (kind > static_cast<std::uint64_t>(EntryKind::hard_link)) return bad_list("an entry of unknown kind");
    entry.kind = static_cast<EntryKind>(kind);
    if (entry.mtime_ns >= 1'000'000'000u) return bad_list("a wrong time");
    if (entry.kind != EntryKind::file && entry.bytes > 0) return bad_list("bytes of what is not a file");
    const auto clean = clean_name("the list of staged files", entry.name);
    if (!clean.ok() || *clean != entry.name || entry.name.empty()) return bad_list("a name that leads out");
    return entry;
  }

 private:
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::string_view digits = take_bytes(bytes);
    for (std::size_t i = 0; i < digits.size(); ++i)
      value |= std::uint64_t{static_cast<std::uint8_t>(digits[i])} << (8 * i);
    return value;
  }
  std::string word() {
    const std::uint64_t size = number(4);
    if (size > kLongestName) is_short_ = true;
    return std::string(is_short_ ? std::string_view() : take_bytes(size));
  }
  std::string_view take_bytes(std::size_t count) {
    if (rest_.size() < count) {
      is_short_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
  bool is_short_ = false;
};

}  // namespace

std::string archive_name(const StageRequest& request, std::size_t archive) {
  return format("{}/{}/{}", kArchives, archive, request.unpack[archive].filename().string());
}

bool is_listed_archive(const ArchiveEntry& entry) {
  return entry.name.starts_with(kArchives) && entry.name.size() > kArchives.size() &&
         entry.name[kArchives.size()] == '/';
}

Result<std::map<std::string, Path>> tree_sources(const StageRequest& request) {
  std::map<std::string, Path> sources;
  for (const Path& path : request.copy) {
    const Path clean = without_slash(path);
    if (!sources.emplace(clean.filename().string(), clean).second || clean.filename() == kArchives)
      return exists("{}: already exists (two staged items have the same name)",
                    printable(clean.filename().string()));
  }
  for (std::size_t i = 0; i < request.unpack.size(); ++i) {
    // An archive may be a link to one.
    std::error_code error;
    const Path real = std::filesystem::canonical(request.unpack[i], error);
    sources.emplace(archive_name(request, i), error ? request.unpack[i] : real);
  }
  return sources;
}

Result<TreeList> list_request(const StageRequest& request, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(sources, tree_sources(request));
  TreeList list;
  for (std::size_t i = 0; i < request.unpack.size(); ++i) {
    STOKER_RETURN_IF_ERROR(check_is_file(request.unpack[i]));
    const std::string name = archive_name(request, i);
    STOKER_ASSIGN_OR_RETURN(entries, list_tree(sources.at(name), name, progress));
    std::ranges::move(entries, std::back_inserter(list.archives));
  }
  for (const Path& path : request.copy) {
    const Path clean = without_slash(path);
    STOKER_ASSIGN_OR_RETURN(entries, list_tree(clean, clean.filename().string(), progress));
    std::ranges::move(entries, std::back_inserter(list.copies));
  }
  list.bytes = set_positions(list.archives, set_positions(list.copies, 0));
  return list;
}

Result<Path> source_in(const std::map<std::string, Path>& sources, const ArchiveEntry& entry) {
  const std::string name = is_listed_archive(entry) ? entry.name : entry.name.substr(0, entry.name.find('/'));
  const auto found = sources.find(name);
  if (found == sources.end()) return not_found("{}: is not staged by this job", printable(entry.name));
  return source_of(entry, found->second, name);
}

std::string encode_tree_list(const TreeList& list) {
  std::string text(kListMark);
  for (const ArchiveEntry& entry : list.copies) append_entry(text, entry);
  for (const ArchiveEntry& entry : list.archives) append_entry(text, entry);
  return text;
}

Result<TreeList> parse_tree_list(std::string_view text) {
  if (!text.starts_with(kListMark)) return bad_list("an unknown beginning");
  TreeList list;
  std::uint64_t bytes = 0;
  for (TreeListReader reader(text.substr(kListMark.size())); !reader.at_end();) {
    STOKER_ASSIGN_OR_RETURN(entry, reader.entry());
    if (entry.bytes > kMostBytes - bytes) return bad_list("impossible sizes");
    bytes += entry.bytes;
    if (is_listed_archive(entry) && entry.kind != EntryKind::file)
      return bad_list("an archive that is not a file");
    (is_listed_archive(entry) ? list.archives : list.copies).push_back(std::move(entry));
  }
  const auto check = [](std::vector<ArchiveEntry>& entries) -> Status {
    const std::size_t count = entries.size();
    auto kept = resolve("the list of staged files", std::move(entries), OutsideLinks::kept);
    if (!kept.ok()) return corrupt("{}", kept.status().message());
    entries = std::move(*kept);
    return entries.size() == count ? Status() : bad_list("a name twice");
  };
  STOKER_RETURN_IF_ERROR(check(list.copies));
  STOKER_RETURN_IF_ERROR(check(list.archives));
  list.bytes = set_positions(list.archives, set_positions(list.copies, 0));
  return list;
}

}  // namespace stoker::stage
