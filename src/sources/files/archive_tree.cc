#include "sources/files/archive_tree.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "archive/decompress_file.h"
#include "archive/tar.h"
#include "archive/zip.h"
#include "base/hash.h"

namespace stoker::sources {

namespace {

constexpr std::ptrdiff_t kMaxFolders = 64;                      // limit of stored paths
constexpr std::uint64_t kMemberLimit = std::uint64_t{1} << 30;  // of a compressed member, which is kept in
                                                                // memory

// "./cat/1.jpg" as "cat/1.jpg".
std::string_view strip_dot_slash(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  return name;
}

// Whether every part is a name: rejects "a//b" and "a/./b".
bool has_plain_parts(std::string_view name) {
  for (std::string_view part : split(name, '/')) {
    if (part.empty() || part == ".") return false;
  }
  return true;
}

// Shared by both archive formats: members as folders.
class ArchiveTree : public SourceTree {
 public:
  /// `stamp` identifies the archive file.
  ArchiveTree(File file, std::string name, std::int64_t stamp)
      : file_(std::move(file)), name_(std::move(name)), stamp_(stamp) {}
  Result<Listing> list(const std::string& folder) const override { return folders_.list(folder); }
  std::string display_path(std::string_view path) const override {
    return path.empty() ? name_ : format("{}: {}", name_, printable(path));
  }

 protected:
  // `what` is not empty if the member is not a regular file.
  void add(std::string_view name, std::string_view unsafe, std::string_view what, SourceFile file) {
    name = strip_dot_slash(name);
    if (!unsafe.empty() || !has_plain_parts(name)) {
      folders_.leave_out(printable(name.empty() ? "./" : name), "unsafe member",
                         unsafe.empty() ? "empty or '.' part in the name" : unsafe);
    } else if (!what.empty()) {
      folders_.leave_out(name, "not a file", what);
    } else if (std::count(name.begin(), name.end(), '/') > kMaxFolders) {
      too_deep_ = name;
    } else {
      folders_.add(name, std::move(file));
    }
  }
  Status finish() {
    if (!too_deep_.empty()) {
      return invalid("{}: member '{}' is more than {} folders deep", name_, printable(too_deep_),
                     kMaxFolders);
    }
    folders_.sort();
    if (const auto twin = folders_.duplicate()) {
      return invalid("{}: member '{}' appears twice", name_, printable(*twin));
    }
    return {};
  }

  File file_;
  std::string name_;
  const std::int64_t stamp_;
  std::string too_deep_;
  VirtualFolders folders_;
};

std::string_view kind_text(archive::TarKind kind) {
  switch (kind) {
    case archive::TarKind::file:
    case archive::TarKind::directory:
      return {};
    case archive::TarKind::hard_link:
      return "a hard link to a missing member";
    case archive::TarKind::symbolic_link:
      return "a symbolic link";
    case archive::TarKind::character_device:
    case archive::TarKind::block_device:
      return "a device";
    case archive::TarKind::fifo:
      return "a pipe";
  }
  return {};
}

constexpr std::uint64_t kReportEvery = 4096;  // members between two progress reports

class TarTree final : public ArchiveTree {
 public:
  using ArchiveTree::ArchiveTree;

  Status scan(Progress& progress) {
    STOKER_ASSIGN_OR_RETURN(size, file_.size());
    archive::TarReader reader(
        [this](std::uint64_t at, std::span<std::byte> out) { return read_buffered(at, out); }, size, name_);
    size_ = size;
    for (std::uint64_t seen = 1;; ++seen) {
      STOKER_ASSIGN_OR_RETURN(member, reader.next());
      if (!member) break;
      if (member->kind == archive::TarKind::hard_link) {
        links_.push_back({member->name, member->unsafe, member->link});
      } else if (member->kind != archive::TarKind::directory) {
        add(member->name, member->unsafe, kind_text(member->kind),
            {{}, member->size, stamp_, member->data_offset});
      }
      if (seen % kReportEvery != 0) continue;
      progress.report({.done = seen, .total = 0, .unit = "members listed", .bytes = {}});
      if (progress.stop_requested()) return cancelled("{}: interrupted while listing", name_);
    }
    buffer_ = {};
    lone_zero_block_ = reader.lone_zero_block();
    if (!reader.has_end_mark()) {
      return corrupt("{}: has no end-of-archive marker: its last members may be missing", name_);
    }
    if (!links_.empty()) add_links();
    return finish();
  }

  Status read(std::string_view, const SourceFile& file, FileBytes& into) const override {
    return file_.read_at(file.place, into.resize(file.bytes));
  }
  Status read_part(std::string_view, const SourceFile& file, std::uint64_t offset,
                   std::span<std::byte> out) const override {
    return file_.read_at(file.place + offset, out);
  }
  std::string note() const override {
    if (!lone_zero_block_) return {};
    return format(
        "a lone zero block at byte {} precedes more members: GNU tar lists them with --ignore-zeros",
        *lone_zero_block_);
  }

 private:
  // A second name of an earlier member.
  struct HardLink {
    std::string name;
    std::string_view unsafe;  // as in TarMember
    std::string target;
  };

  // Adds each link as a copy of its target, which must be a member.
  void add_links() {
    folders_.sort();
    std::vector<std::optional<SourceFile>> targets;
    for (const HardLink& link : links_) {
      const SourceFile* target = folders_.find(strip_dot_slash(link.target));
      targets.push_back(target != nullptr ? std::optional(*target) : std::nullopt);
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const std::string_view what = targets[i] ? "" : kind_text(archive::TarKind::hard_link);
      add(links_[i].name, links_[i].unsafe, what, targets[i].value_or(SourceFile()));
    }
    links_.clear();
  }

  // Headers of small members are adjacent: one read covers many.
  Status read_buffered(std::uint64_t at, std::span<std::byte> out) {
    constexpr std::size_t kAhead = 256u << 10;
    if (at < begin_ || at + out.size() > begin_ + buffer_.size()) {
      if (out.size() > kAhead) return file_.read_at(at, out);
      buffer_.resize(std::min<std::uint64_t>(kAhead, size_ - at));
      begin_ = at;
      STOKER_RETURN_IF_ERROR(file_.read_at(at, buffer_));
    }
    std::memcpy(out.data(), buffer_.data() + (at - begin_), out.size());
    return {};
  }

  std::uint64_t size_ = 0;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> buffer_;
  std::vector<HardLink> links_;
  std::optional<std::uint64_t> lone_zero_block_;
};

class ZipTree final : public ArchiveTree {
 public:
  ZipTree(File file, std::string name, std::int64_t stamp, archive::ZipReader zip)
      : ArchiveTree(std::move(file), std::move(name), stamp), zip_(std::move(zip)) {}

  Status scan() {
    const std::vector<archive::ZipMember>& members = zip_.members();
    for (std::uint64_t i = 0; i < members.size(); ++i) {
      const archive::ZipMember& m = members[i];
      if (m.is_folder()) continue;
      std::string_view what;
      if (m.is_symbolic_link) what = "a symbolic link";
      if (m.is_encrypted) what = "encrypted";
      if (!m.is_encrypted && !m.is_readable()) what = "compressed by a method that is not supported";
      if (m.method != 0 && m.bytes > kMemberLimit) what = "compressed and over 1 GiB";
      add(m.name, m.unsafe, what, {{}, m.bytes, stamp_, i});
    }
    return finish();
  }

  Status read(std::string_view, const SourceFile& file, FileBytes& into) const override {
    return zip_.read(zip_.members()[file.place], into.resize(file.bytes));
  }
  bool has_parts(const SourceFile& file) const override { return zip_.members()[file.place].method == 0; }
  Status read_part(std::string_view, const SourceFile& file, std::uint64_t offset,
                   std::span<std::byte> out) const override {
    STOKER_ASSIGN_OR_RETURN(begin, zip_.data_offset(zip_.members()[file.place]));
    return file_.read_at(begin + offset, out);
  }

 private:
  archive::ZipReader zip_;
};

}  // namespace

Result<std::unique_ptr<SourceTree>> tar_tree(const Path& file, const Path& scratch, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(stored, File::open_read(file));
  STOKER_ASSIGN_OR_RETURN(opened,
                          archive::decompress_file(std::move(stored), {scratch, std::nullopt}, progress));
  auto tree =
      std::make_unique<TarTree>(std::move(opened), printable(file.string()), modification_stamp(file));
  STOKER_RETURN_IF_ERROR(tree->scan(progress));
  return std::unique_ptr<SourceTree>(std::move(tree));
}

Result<std::unique_ptr<SourceTree>> zip_tree(const Path& file, Progress&) {
  STOKER_ASSIGN_OR_RETURN(opened, File::open_read(file));
  STOKER_ASSIGN_OR_RETURN(size, opened.size());
  STOKER_ASSIGN_OR_RETURN(directory, File::open_read(file));
  // Shared by the copies of the reader's function.
  auto shared = std::make_shared<File>(std::move(directory));
  STOKER_ASSIGN_OR_RETURN(
      zip, archive::ZipReader::open(
               [shared](std::uint64_t at, std::span<std::byte> out) { return shared->read_at(at, out); },
               size, printable(file.string())));
  auto tree = std::make_unique<ZipTree>(std::move(opened), printable(file.string()), modification_stamp(file),
                                        std::move(zip));
  STOKER_RETURN_IF_ERROR(tree->scan());
  return std::unique_ptr<SourceTree>(std::move(tree));
}

}  // namespace stoker::sources
