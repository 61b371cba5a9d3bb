#include "data/look/shard_scan.h"

#include <algorithm>

#include "format/tar.h"

namespace stoker::data {

namespace {

// Key and extension, or nothing for a member that makes no sample.
bool take_apart(std::string_view name, std::string_view* key, std::string_view* extension) {
  if (name.starts_with("__")) {
    const std::string_view top = name.substr(0, name.find('/'));
    if (top.size() >= 4 && top.ends_with("__")) return false;
  }
  const std::size_t slash = name.rfind('/');
  const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', begin);
  if (dot == std::string_view::npos || dot == begin) return false;
  *key = name.substr(0, dot);
  *extension = name.substr(dot + 1);
  return true;
}

}  // namespace

Result<ShardScan> scan_shard(const Path& path) {
  OK_OR_RETURN(file, File::open_read(path));
  OK_OR_RETURN(size, file.size());
  const std::string subject = printable(path.string());
  formats::TarReader reader(
      [&, &file = file](std::uint64_t offset, std::span<std::byte> out) { return file.read_at(offset, out); },
      size, subject);
  ShardScan scan;
  scan.bytes = size;
  for (;;) {
    OK_OR_RETURN(member, reader.next());
    if (!member) break;
    scan.end = member->data_offset +
               (member->size + formats::kTarBlock - 1) / formats::kTarBlock * formats::kTarBlock;
    std::string_view key;
    std::string_view extension;
    if (member->kind != formats::TarKind::file || !take_apart(member->name, &key, &extension)) continue;
    if (!member->unsafe.empty()) {
      return invalid("{}: member '{}': {}", subject, printable(member->name.substr(0, 80)), member->unsafe);
    }
    if (scan.samples.empty() || scan.samples.back().key != key) {
      scan.samples.push_back({.key = std::string(key), .members = {}});
    }
    ShardSample& sample = scan.samples.back();
    const std::string lower = to_lower(extension);
    if (std::any_of(sample.members.begin(), sample.members.end(),
                    [&](const ShardMember& m) { return m.extension == lower; })) {
      return invalid("{}: sample '{}' has two files '{}'", subject, printable(key), printable(lower));
    }
    sample.members.push_back({.name = member->name,
                              .extension = lower,
                              .header_offset = member->header_offset,
                              .data_offset = member->data_offset,
                              .bytes = member->size});
  }
  if (!reader.ended_cleanly()) {
    return corrupt("{}: has no end mark: its last members may be missing", subject);
  }
  return scan;
}

}  // namespace stoker::data
