// What a TFRecord that another tool has written holds, in our words: which feature is the image, the label,
// the key. Used to index foreign shards. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/look/shard_scan.h"
#include "format/tar.h"
#include "format/tfrecord.h"

namespace stoker::data {

/// A feature's name as that of a kind of file: "image/class/text" as "image.class.text".
std::string extension_of_feature(std::string_view feature);

/// The sample of a record without `__key__`. Images are told by their bytes, and a single one is called by
/// its kind ("jpg"); other features keep their names, with dots for slashes. The key is a feature that names
/// a file ("image/filename", "file_name", ...) without its extension, else `fallback_key`. The label is
/// "label", "image/class/label", or the one number whose name ends in "label". `read` reads the file the
/// record lies in. What is left is counted in `not_taken`. Fails as `read` does.
Result<ShardSample> sample_of_example(const formats::ExampleRecord& record, const formats::ReadAt& read,
                                      const std::string& fallback_key, NotTaken& not_taken);

}  // namespace stoker::data
