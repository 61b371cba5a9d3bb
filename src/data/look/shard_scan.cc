#include "data/look/shard_scan.h"

#include <algorithm>

#include "format/tar.h"
#include "format/tfrecord.h"

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

// A file of one sample, by that sample's rules.
Status add_member(std::string_view subject, ShardMember member, ShardSample& sample) {
  if (std::any_of(sample.members.begin(), sample.members.end(),
                  [&](const ShardMember& m) { return m.extension == member.extension; })) {
    return invalid("{}: sample '{}' has two files '{}'", subject, printable(sample.key),
                   printable(member.extension));
  }
  sample.members.push_back(std::move(member));
  return {};
}

Result<ShardScan> scan_tar(const formats::ReadAt& read, std::uint64_t size, const std::string& subject) {
  formats::TarReader reader(read, size, subject);
  ShardScan scan;
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
      scan.samples.emplace_back().key = key;
    }
    RETURN_IF_ERROR(add_member(subject,
                               {.name = member->name,
                                .extension = to_lower(extension),
                                .header_offset = member->header_offset,
                                .data_offset = member->data_offset,
                                .bytes = member->size},
                               scan.samples.back()));
  }
  if (!reader.ended_cleanly()) {
    return corrupt("{}: has no end mark: its last members may be missing", subject);
  }
  return scan;
}

Result<ShardScan> scan_records(const formats::ReadAt& read, std::uint64_t size, const std::string& subject) {
  formats::TfRecordReader reader(read, size, subject);
  ShardScan scan;
  scan.end = size;
  for (;;) {
    OK_OR_RETURN(record, reader.next());
    if (!record) return scan;
    if (record->key.empty() || record->files.empty()) {
      return invalid("{}: byte {}: a record without '__key__' or without a file", subject, record->offset);
    }
    ShardSample& sample = scan.samples.emplace_back();
    sample.key = record->key;
    sample.label = record->label;
    sample.offset = record->offset;
    sample.bytes = record->bytes;
    for (const formats::RecordFile& file : record->files) {
      RETURN_IF_ERROR(add_member(subject,
                                 {.name = format("{}.{}", record->key, file.name),
                                  .extension = file.name,
                                  .header_offset = record->offset,
                                  .data_offset = file.offset,
                                  .bytes = file.bytes},
                                 sample));
    }
  }
}

}  // namespace

bool is_tfrecord(std::string_view file) { return file.ends_with(".tfrecord"); }

Result<ShardScan> scan_shard(const Path& path) {
  OK_OR_RETURN(file, File::open_read(path));
  OK_OR_RETURN(size, file.size());
  const std::string subject = printable(path.string());
  const formats::ReadAt read = [&file = file](std::uint64_t offset, std::span<std::byte> out) {
    return file.read_at(offset, out);
  };
  Result<ShardScan> scan =
      is_tfrecord(path.string()) ? scan_records(read, size, subject) : scan_tar(read, size, subject);
  if (scan.ok()) scan->bytes = size;
  return scan;
}

}  // namespace stoker::data
