// The side index on any bytes: rejected, or every accessor stays within the bytes. A fuzzer does not guess
// CRCs, so each input is also used as a section and as a file with correct CRCs.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/hash.h"
#include "dataset/side_index.h"

namespace {

using namespace stoker::codec;
using namespace stoker::dataset;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

void use(const IndexSection& section) {
  for (std::uint64_t i = 0; i < section.samples(); ++i) {
    if (section.component_count(i) == 0) std::abort();
    for (std::uint32_t c = 0; c < section.component_count(i); ++c) {
      const Component found = section.component(i, c);
      if (found.length > section.offset_limit() || found.offset > section.offset_limit() - found.length)
        std::abort();
      if (found.name >= section.names().size()) std::abort();
    }
    if (section.has_labels()) (void)section.label(i);
    (void)section.key(i).size();
  }
}

void use(const std::string& file) {
  const auto index = SideIndex::parse(bytes_of(file), "fuzz");
  if (!index.ok()) return;
  for (const IndexSection& section : index->sections()) use(section);
}

void put_crc(std::string& bytes, std::size_t begin) {
  const std::uint32_t crc = stoker::crc32c(std::string_view(bytes).substr(begin));
  bytes.append(reinterpret_cast<const char*>(&crc), 4).append(4, '\0');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  use(input);
  std::string section = input;
  put_crc(section, 0);
  const auto parsed = IndexSection::parse(bytes_of(section), "fuzz");
  if (parsed.ok()) {
    use(*parsed);
    use(encode_index(std::span(&section, 1)));
  }
  // A header of 56 bytes, a table of the given length, sections.
  if (size < 60) return 0;
  std::string file = input.substr(0, 56);
  put_crc(file, 0);
  const std::size_t table = std::min<std::size_t>(size - 57, data[56] % 4 * 64);
  file += input.substr(57, table);
  put_crc(file, 64);
  file += input.substr(57 + table);
  use(file);
  return 0;
}
