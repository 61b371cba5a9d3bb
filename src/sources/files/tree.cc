#include "sources/files/tree.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/encode.h"
#include "base/hash.h"

namespace stoker::sources {

std::uint64_t next_tree_id() {
  static std::atomic<std::uint64_t> trees{0};
  return ++trees;
}

std::span<std::byte> FileBytes::resize(std::size_t size) {
  if (size > capacity_) {
    constexpr std::size_t kLeast = 256u << 10;  // most photographs fit without reallocation
    capacity_ = std::max({size, capacity_ * 2, kLeast});
    memory_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
  }
  size_ = size;
  return {memory_.get(), size};
}

void FileBytes::assign(std::span<const std::byte> bytes) {
  const std::span<std::byte> room = resize(bytes.size());
  if (!bytes.empty()) std::memcpy(room.data(), bytes.data(), bytes.size());
}

void Listing::sort() {
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
  std::sort(folders.begin(), folders.end());
}

std::string child(std::string_view folder, std::string_view name) {
  std::string path;
  path.reserve(folder.size() + name.size() + 1);
  path = folder;
  if (!path.empty()) path += '/';
  path += name;
  return path;
}

std::int64_t modification_stamp(const Path& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto written = [&](const Path& file) {
    return static_cast<std::uint64_t>(fs::last_write_time(file, ignored).time_since_epoch().count());
  };
  if (!fs::is_directory(path, ignored)) return fs::exists(path, ignored) ? written(path) : 0;
  std::uint64_t sum = 0;  // independent of the order of entries
  std::error_code error;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (!at->is_regular_file(ignored)) continue;
    const std::string entry = format("{} {} {}", at->path().lexically_relative(path).string(),
                                     at->file_size(ignored), written(at->path()));
    std::uint64_t part = 0;
    std::memcpy(&part, sha256(entry).data(), sizeof part);
    sum += part;
  }
  return static_cast<std::int64_t>(sum);
}

std::string_view unusable_name_reason(std::string_view name) {
  if (!is_utf8(name)) return "not UTF-8";
  return printable(name) == name ? "" : "a control character";
}

void add_file(Listing& listing, std::string_view folder, SourceFile file) {
  if (file.name.front() == '.') {
    listing.left_out.push_back({child(folder, file.name), std::string(kHidden), {}});
  } else if (const std::string_view why = unusable_name_reason(file.name); !why.empty()) {
    listing.left_out.push_back({child(folder, file.name), "unusable name", std::string(why)});
  } else if (file.name.find('.') == std::string::npos) {
    listing.left_out.push_back({child(folder, file.name), "not an image", "no extension"});
  } else {
    listing.files.push_back(std::move(file));
  }
}

Listing& VirtualFolders::folder(std::string_view path) {
  if (const auto found = folders_.find(path); found != folders_.end()) return found->second;
  Listing& made = folders_.emplace(std::string(path), Listing{}).first->second;
  if (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    const std::string_view name = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
    Listing& parent = folder(slash == std::string_view::npos ? "" : path.substr(0, slash));
    if (name.front() == '.') {
      parent.left_out.push_back({std::string(path), std::string(kHidden), {}});
    } else {
      parent.folders.emplace_back(name);
    }
  }
  return made;
}

void VirtualFolders::add(std::string_view path, SourceFile file) {
  const std::size_t slash = path.rfind('/');
  const std::string_view parent = slash == std::string_view::npos ? "" : path.substr(0, slash);
  file.name = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  add_file(folder(parent), parent, std::move(file));
}

void VirtualFolders::leave_out(std::string_view path, std::string_view reason, std::string_view detail) {
  folder("").left_out.push_back({std::string(path), std::string(reason), std::string(detail)});
}

void VirtualFolders::sort() {
  folder("");
  for (auto& [path, listing] : folders_) listing.sort();
}

const SourceFile* VirtualFolders::find(std::string_view path) const {
  const std::size_t slash = path.rfind('/');
  const auto folder = folders_.find(path.substr(0, slash == std::string_view::npos ? 0 : slash));
  if (folder == folders_.end()) return nullptr;
  const std::string_view name = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  const std::vector<SourceFile>& files = folder->second.files;
  const auto found = std::lower_bound(files.begin(), files.end(), name,
                                      [](const SourceFile& a, std::string_view b) { return a.name < b; });
  return found != files.end() && found->name == name ? &*found : nullptr;
}

std::optional<std::string> VirtualFolders::duplicate() const {
  for (const auto& [path, listing] : folders_) {
    const auto twin =
        std::adjacent_find(listing.files.begin(), listing.files.end(),
                           [](const SourceFile& a, const SourceFile& b) { return a.name == b.name; });
    if (twin != listing.files.end()) return child(path, twin->name);
  }
  return std::nullopt;
}

Result<Listing> VirtualFolders::list(const std::string& folder) const {
  const auto found = folders_.find(folder);
  if (found == folders_.end()) return not_found("{}: no such folder", printable(folder));
  return found->second;
}

}  // namespace stoker::sources
