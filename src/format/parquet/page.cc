#include "format/parquet/page.h"

#include "base/hashes/crc32.h"

namespace stoker::formats {

namespace {

using Field = ThriftReader::Field;
using Type = ThriftReader::Type;

bool is_integer(const Field& field) { return field.type >= Type::byte && field.type <= Type::i64; }

// Number of values and encoding, which all kinds of pages have; version 2 has more.
void read_kind(ThriftReader& reader, bool is_second, PageHeader& page) {
  const std::int32_t encoding = is_second ? 4 : 2;
  reader.structure([&](const Field& field) {
    if (field.id == 1 && is_integer(field)) {
      page.values = reader.integer();
    } else if (field.id == encoding && is_integer(field)) {
      page.encoding = reader.integer();
    } else if (is_second && field.id == 5 && is_integer(field)) {
      page.level_bytes = reader.integer();
    } else if (is_second && field.id == 6 && is_integer(field)) {
      page.repetition_bytes = reader.integer();
    } else if (is_second && field.id == 7) {
      page.is_packed = field.type == Type::yes;  // the value is in the type
    } else {
      return false;
    }
    return true;
  });
}

}  // namespace

PageHeader read_page_header(ThriftReader& reader) {
  PageHeader page;
  reader.structure([&](const Field& field) {
    if (field.type == Type::structure && (field.id == 5 || field.id == 7 || field.id == 8)) {
      read_kind(reader, field.id == 8, page);
      return true;
    }
    if (!is_integer(field)) return false;
    switch (field.id) {
      case 1:
        page.type = reader.integer();
        return true;
      case 2:
        page.bytes = reader.integer();
        return true;
      case 3:
        page.packed_bytes = reader.integer();
        return true;
      case 4:
        page.crc = static_cast<std::uint32_t>(reader.integer());
        return true;
      default:
        return false;
    }
  });
  return page;
}

Result<Page> take_page(std::span<const std::byte>& bytes, std::string_view subject) {
  constexpr std::int64_t kPageLimit = 256 << 20;
  ThriftReader reader(bytes);
  Page page{.header = read_page_header(reader), .stored = {}};
  bytes = bytes.subspan(reader.position());
  const bool is_damaged = reader.is_damaged() || page.header.bytes < 0 || page.header.bytes > kPageLimit ||
                          page.header.packed_bytes < 0 ||
                          static_cast<std::uint64_t>(page.header.packed_bytes) > bytes.size();
  if (is_damaged) return corrupt("{}: a page is damaged", subject);
  page.stored = bytes.first(static_cast<std::size_t>(page.header.packed_bytes));
  bytes = bytes.subspan(page.stored.size());
  if (page.header.crc && crc32(page.stored) != *page.header.crc)
    return corrupt("{}: a page's CRC-32 is not that of its bytes", subject).cure("get the file again");
  return page;
}

}  // namespace stoker::formats
