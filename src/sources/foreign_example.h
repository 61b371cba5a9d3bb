// Maps the features of a foreign TFRecord to image, label and key of a sample. Used to index foreign shards.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "archive/tar.h"
#include "archive/tfrecord.h"
#include "sources/shard_scan.h"
#include "stoker/status.h"

namespace stoker::sources {

/// A feature's name as a file extension: "image/class/text" as "image.class.text".
std::string extension_for_feature(std::string_view feature);

/// The position of the label among the names of numbers: "label", "image/class/label", or the only one that
/// ends in "label".
std::optional<std::size_t> find_label(std::span<const std::string_view> names);
/// Whether features of that name hold file names, which become keys.
bool is_key_feature(std::string_view name);

/// The sample of a record without `__key__`. Images are detected by content, and a single one is named by its
/// format ("jpg"); other features keep their names, with dots for slashes. The key is a feature with a file
/// name ("image/filename", "file_name", ...) without its extension, else `fallback_key`. The label is the
/// record's, or find_label() of its numbers. `read` reads the record's file. Other features are counted in
/// `skipped_fields`. Fails like `read`.
Result<ShardSample> sample_from_example(const archive::ExampleRecord& record, const archive::ReadAt& read,
                                        const std::string& fallback_key, SkippedFields& skipped_fields);

}  // namespace stoker::sources
