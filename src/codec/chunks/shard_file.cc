#include "codec/chunks/shard_file.h"

#include <algorithm>
#include <fcntl.h>

#include "base/encode.h"
#include "stoker/text.h"

namespace stoker::codec {

namespace {

constexpr std::size_t kLongestName = 4096;

}  // namespace

std::string_view unsafe_part(std::string_view file) {
  if (file.empty() || file.size() > kLongestName) return "is empty or too long";
  if (file.front() == '/') return "is an absolute path";
  for (const std::string_view part : split(file, '/')) {
    if (part.empty() || part == "." || part == "..") return "has a part that leaves the folder";
  }
  const bool has_control = std::any_of(file.begin(), file.end(), [](char c) { return c >= 0 && c < ' '; });
  return has_control || !is_utf8(file) ? "is not valid UTF-8" : "";
}

Result<std::vector<ShardPart>> list_parts(const Path& folder) {
  namespace fs = std::filesystem;
  std::vector<ShardPart> parts;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    ShardPart part{at->path().lexically_relative(folder).generic_string(), at->file_size(error)};
    if (const std::string_view why = unsafe_part(part.file); !why.empty())
      return invalid("{}: the name '{}' {}", folder, printable(part.file), why);
    parts.push_back(std::move(part));
  }
  if (error) return unavailable("{}: cannot be listed: {}", folder, error.message());
  std::sort(parts.begin(), parts.end(),
            [](const ShardPart& a, const ShardPart& b) { return a.file < b.file; });
  return parts;
}

Result<ShardFile> ShardFile::open(const Path& shard, std::vector<ShardPart> parts) {
  ShardFile opened;
  if (parts.empty()) {
    STOKER_ASSIGN_OR_RETURN(file, File::open_read(shard));
    opened.file_ = std::move(file);
    return opened;
  }
  opened.folder_ = folder_exists(shard) ? shard : shard.parent_path();
  std::uint64_t end = 0;
  for (const ShardPart& part : parts) opened.ends_.push_back(end += part.bytes);
  opened.parts_ = std::move(parts);
  return opened;
}

Result<std::uint64_t> ShardFile::size() const { return parts_.empty() ? file_.size() : ends_.back(); }

Result<File> ShardFile::open_part(std::size_t number) const {
  const Path path = folder_ / parts_[number].file;
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  if (size == parts_[number].bytes) return std::move(file);
  return corrupt("{}: has {} bytes, the index lists {}", path, size, parts_[number].bytes);
}

Status ShardFile::check_parts() const {
  for (std::size_t i = 0; i < parts_.size(); ++i) STOKER_RETURN_IF_ERROR(open_part(i).status());
  return {};
}

Status ShardFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (parts_.empty()) return file_.read_at(offset, out);
  auto end = std::upper_bound(ends_.begin(), ends_.end(), offset);
  while (!out.empty()) {
    if (end == ends_.end()) return corrupt("{}: is read beyond its end", folder_);
    const auto number = static_cast<std::size_t>(end - ends_.begin());
    const std::uint64_t begin = *end - parts_[number].bytes;
    const auto here = out.first(std::min<std::uint64_t>(out.size(), *end - offset));
    STOKER_ASSIGN_OR_RETURN(file, open_part(number));
    STOKER_RETURN_IF_ERROR(file.read_at(offset - begin, here));
    offset += here.size();
    out = out.subspan(here.size());
    while (end != ends_.end() && *end <= offset) ++end;  // empty ones, too
  }
  return {};
}

void ShardFile::will_need(std::uint64_t offset, std::uint64_t length) const {
  if (!parts_.empty()) return;
  ::posix_fadvise(file_.fd(), static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_WILLNEED);
}

}  // namespace stoker::codec
