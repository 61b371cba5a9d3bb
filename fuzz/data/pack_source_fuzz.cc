// Any bytes as a source file of `stoker data pack`: a tar or zip archive, a tar shard or records (raw, and
// framed as a record). Samples whose files can be read, or an error.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "archive/tfrecord.h"
#include "base/file.h"
#include "base/hash.h"
#include "sources/files/tree.h"
#include "sources/shard_scan.h"

namespace {

using namespace stoker;
using namespace stoker::codec;
using namespace stoker::dataset;
using namespace stoker::sources;

std::string framed(std::string_view message) {
  const auto number = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const std::string length = number(std::uint64_t{message.size()});
  return length + number(masked_crc(crc32c(length))) + std::string(message) +
         number(masked_crc(crc32c(message)));
}

void list_and_read(const Path& file, SourceLayout layout) {
  constexpr std::uint64_t kMaxRead = 1u << 20;
  NoProgress progress;
  const auto source = list_source({.where = file.string(), .layout = layout}, progress);
  if (!source.ok()) return;
  FileBytes bytes;
  for (const std::vector<SourceSample>& samples : source->samples) {
    for (const SourceSample& sample : samples) {
      STOKER_CHECK(sample.files > 0 && !source->key(sample).empty());
      for (std::uint32_t i = 0; i < sample.files; ++i) {
        const SourceFile& one = source->file(sample, i);
        if (one.bytes > kMaxRead) continue;
        const Status read = source->tree->read(source->folders[sample.folder].path, one, bytes);
        STOKER_CHECK(!read.ok() || bytes.bytes().size() == one.bytes);
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
    STOKER_CHECK(write_file(file, text).ok());
    list_and_read(file, SourceLayout::files);
  }
  (void)scan_shard(archive);
  for (const std::string& content : {std::string(text), framed(text), framed(text) + framed(text)}) {
    STOKER_CHECK(write_file(records, content).ok());
    list_and_read(records, SourceLayout::images);
  }
  return 0;
}
