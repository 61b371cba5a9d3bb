#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "data/pack/source/tree.h"
#include "format/expanded_file.h"
#include "format/tar.h"
#include "format/zip.h"

namespace stoker::data {

namespace {

constexpr std::ptrdiff_t kMostFolders = 64;                     // each of which is kept, with its path
constexpr std::uint64_t kMemberLimit = std::uint64_t{1} << 30;  // of a compressed member, which is held whole

// "./cat/1.jpg" as "cat/1.jpg".
std::string_view from_root(std::string_view name) {
  while (name.starts_with("./")) name.remove_prefix(2);
  return name;
}

// Whether every part is a name: what is left of "a//b", "a/./b".
bool has_plain_parts(std::string_view name) {
  for (std::string_view part : split(name, '/')) {
    if (part.empty() || part == ".") return false;
  }
  return true;
}

// What both kinds of archive share: their members as folders.
class ArchiveTree : public SourceTree {
 public:
  /// `stamp` is that of the archive on disk: another archive has other members.
  ArchiveTree(File file, std::string name, std::int64_t stamp)
      : file_(std::move(file)), name_(std::move(name)), stamp_(stamp) {}
  Result<Listing> list(const std::string& folder) const override { return folders_.list(folder); }
  std::string shown(std::string_view path) const override {
    return path.empty() ? name_ : format("{}: {}", name_, printable(path));
  }

 protected:
  // `what` is not empty for a member that is no regular file.
  void add(std::string_view name, std::string_view unsafe, std::string_view what, SourceFile file) {
    name = from_root(name);
    if (!unsafe.empty() || !has_plain_parts(name)) {
      folders_.leave_out(printable(name.empty() ? "./" : name), "unsafe member",
                         unsafe.empty() ? "empty or '.' part in the name" : unsafe);
    } else if (!what.empty()) {
      folders_.leave_out(name, "not a file", what);
    } else if (std::count(name.begin(), name.end(), '/') > kMostFolders) {
      too_deep_ = name;
    } else {
      folders_.add(name, std::move(file));
    }
  }
  Status finish() {
    if (!too_deep_.empty()) {
      return invalid("{}: member '{}' lies more than {} folders deep", name_, printable(too_deep_),
                     kMostFolders);
    }
    folders_.sort();
    if (const auto twin = folders_.duplicate()) {
      return invalid("{}: member '{}' is there twice: which one is meant?", name_, printable(*twin));
    }
    return {};
  }

  File file_;
  std::string name_;
  const std::int64_t stamp_;
  std::string too_deep_;
  VirtualFolders folders_;
};

std::string_view kind_text(formats::TarKind kind) {
  switch (kind) {
    case formats::TarKind::file:
    case formats::TarKind::directory:
      return {};
    case formats::TarKind::hard_link:
      return "a hard link to what is not in the archive";
    case formats::TarKind::symbolic_link:
      return "a symbolic link";
    case formats::TarKind::character_device:
    case formats::TarKind::block_device:
      return "a device";
    case formats::TarKind::fifo:
      return "a pipe";
  }
  return {};
}

constexpr std::uint64_t kToldEvery = 4096;  // members, between two looks at the progress

class TarTree final : public ArchiveTree {
 public:
  using ArchiveTree::ArchiveTree;

  Status scan(Progress& progress) {
    OK_OR_RETURN(size, file_.size());
    formats::TarReader reader([this](std::uint64_t at, std::span<std::byte> out) { return ahead(at, out); },
                              size, name_);
    size_ = size;
    for (std::uint64_t seen = 1;; ++seen) {
      OK_OR_RETURN(member, reader.next());
      if (!member) break;
      if (member->kind == formats::TarKind::hard_link) {
        links_.push_back({member->name, member->unsafe, member->link});
      } else if (member->kind != formats::TarKind::directory) {
        add(member->name, member->unsafe, kind_text(member->kind),
            {{}, member->size, stamp_, member->data_offset});
      }
      if (seen % kToldEvery != 0) continue;
      progress.report({.done = seen, .total = 0, .unit = "members listed", .bytes = {}});
      if (progress.stop_requested()) return cancelled("{}: stopped while it was listed", name_);
    }
    buffer_ = {};
    if (!reader.ended_cleanly()) {
      return corrupt("{}: has no end mark: its last members may be missing", name_);
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

 private:
  // A name that a file of the archive has besides its own, as tar stores a file that it met before.
  struct HardLink {
    std::string name;
    std::string_view unsafe;  // as TarMember has it
    std::string target;
  };

  // Each is a file like the one it leads to, which is looked for among the members and nowhere else.
  void add_links() {
    folders_.sort();
    std::vector<std::optional<SourceFile>> targets;
    for (const HardLink& link : links_) {
      const SourceFile* target = folders_.find(from_root(link.target));
      targets.push_back(target != nullptr ? std::optional(*target) : std::nullopt);
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const std::string_view what = targets[i] ? "" : kind_text(formats::TarKind::hard_link);
      add(links_[i].name, links_[i].unsafe, what, targets[i].value_or(SourceFile()));
    }
    links_.clear();
  }

  // Headers of small members lie close together: one read serves many.
  Status ahead(std::uint64_t at, std::span<std::byte> out) {
    constexpr std::size_t kAhead = 256u << 10;
    if (at < begin_ || at + out.size() > begin_ + buffer_.size()) {
      if (out.size() > kAhead) return file_.read_at(at, out);
      buffer_.resize(std::min<std::uint64_t>(kAhead, size_ - at));
      begin_ = at;
      RETURN_IF_ERROR(file_.read_at(at, buffer_));
    }
    std::memcpy(out.data(), buffer_.data() + (at - begin_), out.size());
    return {};
  }

  std::uint64_t size_ = 0;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> buffer_;
  std::vector<HardLink> links_;
};

class ZipTree final : public ArchiveTree {
 public:
  ZipTree(File file, std::string name, std::int64_t stamp, formats::ZipReader zip)
      : ArchiveTree(std::move(file), std::move(name), stamp), zip_(std::move(zip)) {}

  Status scan() {
    const std::vector<formats::ZipMember>& members = zip_.members();
    for (std::uint64_t i = 0; i < members.size(); ++i) {
      const formats::ZipMember& m = members[i];
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
    OK_OR_RETURN(begin, zip_.data_offset(zip_.members()[file.place]));
    return file_.read_at(begin + offset, out);
  }

 private:
  formats::ZipReader zip_;
};

}  // namespace

Result<Archive> archive_kind(const Path& file) {
  OK_OR_RETURN(opened, File::open_read(file));
  OK_OR_RETURN(size, opened.size());
  std::array<std::byte, formats::kTarBlock> head{};
  const auto begin = std::span(head).first(std::min<std::uint64_t>(size, head.size()));
  RETURN_IF_ERROR(opened.read_at(0, begin));
  const std::string_view text(reinterpret_cast<const char*>(head.data()), begin.size());
  if (text.starts_with("\x1F\x8B") || text.starts_with("\x28\xB5\x2F\xFD")) return Archive::packed;
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return Archive::zip;
  if (text.size() == head.size() && text.substr(257, 5) == "ustar") return Archive::tar;
  if (text.starts_with("BZh") || text.starts_with("\xFD"
                                                  "7zXZ"))
    return Archive::compressed;
  return file.extension() == ".tar" ? Archive::tar : Archive::none;
}

Result<std::unique_ptr<SourceTree>> tar_tree(const Path& file, const Path& scratch, Progress& progress) {
  OK_OR_RETURN(stored, File::open_read(file));
  OK_OR_RETURN(opened, formats::expanded(std::move(stored), {scratch, std::nullopt}, progress));
  auto tree = std::make_unique<TarTree>(std::move(opened), printable(file.string()), stamp_of(file));
  RETURN_IF_ERROR(tree->scan(progress));
  return std::unique_ptr<SourceTree>(std::move(tree));
}

Result<std::unique_ptr<SourceTree>> zip_tree(const Path& file, Progress&) {
  OK_OR_RETURN(opened, File::open_read(file));
  OK_OR_RETURN(size, opened.size());
  OK_OR_RETURN(directory, File::open_read(file));
  // Shared by the copies of the reader's function.
  auto shared = std::make_shared<File>(std::move(directory));
  OK_OR_RETURN(zip,
               formats::ZipReader::open(
                   [shared](std::uint64_t at, std::span<std::byte> out) { return shared->read_at(at, out); },
                   size, printable(file.string())));
  auto tree =
      std::make_unique<ZipTree>(std::move(opened), printable(file.string()), stamp_of(file), std::move(zip));
  RETURN_IF_ERROR(tree->scan());
  return std::unique_ptr<SourceTree>(std::move(tree));
}

}  // namespace stoker::data
