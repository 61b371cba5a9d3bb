// Any bytes as what `stoker data pack` may be given in one file: a tar or zip archive, a shard of tar or of
// records (as they are, and framed as a record must be). Samples whose files can be read, or an error.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/hash.h"
#include "data/look/shard_scan.h"
#include "data/pack/source/tree.h"
#include "format/tfrecord.h"

namespace {

using namespace stoker;
using namespace stoker::data;

std::string framed(std::string_view message) {
  const auto number = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const std::string length = number(std::uint64_t{message.size()});
  return length + number(formats::masked_crc(crc32c(length))) + std::string(message) +
         number(formats::masked_crc(crc32c(message)));
}

void list_and_read(const Path& file, SourceLayout layout) {
  constexpr std::uint64_t kMostRead = 1u << 20;
  NoProgress progress;
  const auto source = list_source({.where = file.string(), .layout = layout}, progress);
  if (!source.ok()) return;
  FileBytes bytes;
  for (const std::vector<SourceSample>& samples : source->samples) {
    for (const SourceSample& sample : samples) {
      CHECK(sample.files > 0 && !source->key(sample).empty());
      for (std::uint32_t i = 0; i < sample.files; ++i) {
        const SourceFile& one = source->file(sample, i);
        if (one.bytes > kMostRead) continue;
        const Status read = source->tree->read(source->folders[sample.folder].path, one, bytes);
        CHECK(!read.ok() || bytes.bytes().size() == one.bytes);
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TempDirectory folder{Path("/dev/shm")};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Path archive = folder / "x.tar", zip = folder / "x.zip", records = folder / "x.tfrecord";
  for (const Path& file : {archive, zip}) {
    CHECK(write_file(file, text).ok());
    list_and_read(file, SourceLayout::files);
  }
  (void)scan_shard(archive);
  for (const std::string& content : {std::string(text), framed(text), framed(text) + framed(text)}) {
    CHECK(write_file(records, content).ok());
    list_and_read(records, SourceLayout::images);
  }
  return 0;
}
