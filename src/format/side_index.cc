#include "format/side_index.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <sys/mman.h>

#include "format/load.h"
#include "format/side_index_layout.h"

namespace stoker::formats {

namespace {

// A column with this bit may be skipped by a reader that does not know it.
constexpr std::uint16_t kMayBeIgnored = 0x8000;

bool crc_holds(std::span<const std::byte> part) {
  const std::size_t body = part.size() - kCrcBytes;
  return load<std::uint32_t>(part, body) == crc32c(part.first(body)) &&
         load<std::uint32_t>(part, body + 4) == 0;
}

}  // namespace

// What parse() has found of a section before it is checked.
struct IndexSection::Reader {
  std::span<const std::byte> bytes;
  std::string_view subject;

  Status damaged(std::string_view what) const { return corrupt("{}: {}", subject, what); }

  Result<std::vector<std::string>> names(std::span<const std::byte> column) const {
    std::vector<std::string> names;
    while (!column.empty()) {
      const std::size_t length = column.size() < 2 ? 0 : load<std::uint16_t>(column, 0);
      if (length == 0 || length > column.size() - 2 || names.size() == 0xFFFF) {
        return damaged("column of names is torn");
      }
      names.emplace_back(reinterpret_cast<const char*>(column.data()) + 2, length);
      if (printable(names.back()) != names.back()) return damaged("a component name is no text");
      column = column.subspan(2 + length);
    }
    return names;
  }
};

namespace {

// `column` as n + 1 rising numbers from 0 to `last`; each step at least `step`.
bool rises(std::span<const std::byte> column, std::uint64_t n, std::uint64_t last, std::uint32_t step) {
  std::uint64_t before = load<std::uint32_t>(column, 0);
  if (before != 0) return false;
  for (std::uint64_t i = 1; i <= n; ++i) {
    const std::uint64_t next = load<std::uint32_t>(column, i * 4);
    if (next < before + step) return false;
    before = next;
  }
  return before == last;
}

}  // namespace

Result<IndexSection> IndexSection::parse(std::span<const std::byte> bytes, std::string_view subject) {
  const Reader reader{bytes, subject};
  if (bytes.size() < kSectionHeaderBytes + kCrcBytes) return reader.damaged("section is too short");
  if (!crc_holds(bytes)) return reader.damaged("section is damaged (CRC-32C)");
  if (std::memcmp(bytes.data(), kSectionMagic.data(), kSectionMagic.size()) != 0) {
    return reader.damaged("is not an index section");
  }
  const auto kind = load<std::uint16_t>(bytes, 4);
  const bool is_packed = kind == static_cast<std::uint16_t>(LocatorKind::unpacked);
  if (!is_packed && kind != static_cast<std::uint16_t>(LocatorKind::byte_range)) {
    return invalid("{}: has locators of kind {}, this stoker reads kinds 1 and 4", subject, kind)
        .cure("update stoker");
  }
  if (const auto features = load<std::uint64_t>(bytes, 64); features != 0) {
    return invalid("{}: needs features {:#x}, which this stoker does not know", subject, features)
        .cure("update stoker");
  }
  IndexSection section;
  section.samples_ = load<std::uint64_t>(bytes, 8);
  const auto components = load<std::uint64_t>(bytes, 16);
  section.shard_bytes_ = load<std::uint64_t>(bytes, 24);
  section.shard_hash_ = load_digest(bytes, 32);
  RETURN_IF_ERROR(section.take_columns(bytes, subject));
  if (is_packed != (section.chunks_ != nullptr)) return reader.damaged("locators and chunks do not fit");
  RETURN_IF_ERROR(section.check(components, subject));
  section.per_sample_ = components / std::max<std::uint64_t>(1, section.samples_);
  return section;
}

Status IndexSection::take_columns(std::span<const std::byte> bytes, std::string_view subject) {
  const Reader reader{bytes, subject};
  const std::size_t columns = load<std::uint16_t>(bytes, 6);
  const std::size_t end = bytes.size() - kCrcBytes;
  if (columns * kColumnEntryBytes > end - kSectionHeaderBytes)
    return reader.damaged("column directory is torn");
  std::uint32_t seen = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    const std::size_t entry = kSectionHeaderBytes + i * kColumnEntryBytes;
    const auto tag = load<std::uint16_t>(bytes, entry);
    const auto offset = load<std::uint64_t>(bytes, entry + 8);
    const auto size = load<std::uint64_t>(bytes, entry + 16);
    if (offset > end || size > end - offset)
      return reader.damaged(format("column {} reaches beyond the end", tag));
    const std::span<const std::byte> column = bytes.subspan(offset, size);
    if (tag & kMayBeIgnored) continue;
    if (tag < 1 || tag > kChunks) {
      return invalid("{}: has column {}, which this stoker does not know", subject, tag)
          .cure("update stoker");
    }
    if (seen & 1u << tag) return reader.damaged(format("column {} is there twice", tag));
    seen |= 1u << tag;
    if (tag == kNames) {
      OK_OR_RETURN(names, reader.names(column));
      names_ = std::move(names);
    }
    if (tag == kFirst) first_ = column;
    if (tag == kLocators) components_ = column;
    if (tag == kLabels) labels_ = column;
    if (tag == kKeyBegin) key_begin_ = column;
    if (tag == kKeys) keys_ = column;
    if (tag == kChunks) {
      OK_OR_RETURN(chunks, ChunkMap::parse(column, shard_bytes_, subject));
      chunks_ = std::make_shared<const ChunkMap>(std::move(chunks));
    }
    has_labels_ = has_labels_ || tag == kLabels;
    has_keys_ = has_keys_ || tag == kKeyBegin;
  }
  return {};
}

// Everything an accessor relies on.
Status IndexSection::check(std::uint64_t components, std::string_view subject) const {
  const Reader reader{{}, subject};
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (samples_ >= kMost || components >= kMost) return reader.damaged("counts more than a shard can hold");
  if (first_.size() != (samples_ + 1) * 4 || components_.size() != components * kComponentBytes ||
      (has_labels_ && labels_.size() != samples_ * 8) ||
      (has_keys_ && key_begin_.size() != (samples_ + 1) * 4)) {
    return reader.damaged(format("a column's size does not fit {} samples", samples_));
  }
  if (!rises(first_, samples_, components, 1)) return reader.damaged("samples do not divide the components");
  if (has_keys_ && !rises(key_begin_, samples_, keys_.size(), 0))
    return reader.damaged("keys are out of order");
  for (std::uint64_t i = 0; i < components; ++i) {
    const Component c = component_at(i);
    if (c.length > reach() || c.offset > reach() - c.length) {
      return reader.damaged(format("component {} reaches beyond the shard's {} bytes", i, reach()));
    }
    if (c.name >= names_.size()) return reader.damaged(format("component {} has no name", i));
  }
  return {};
}

std::string_view IndexSection::key(std::uint64_t sample) const {
  if (!has_keys_) return {};
  const auto begin = load<std::uint32_t>(key_begin_, sample * 4);
  const auto end = load<std::uint32_t>(key_begin_, sample * 4 + 4);
  return {reinterpret_cast<const char*>(keys_.data()) + begin, end - begin};
}

namespace {

Status check_header(std::span<const std::byte> bytes, std::string_view subject) {
  if (bytes.size() < kHeaderBytes)
    return corrupt("{}: too short for an index ({} bytes)", subject, bytes.size());
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return corrupt("{}: is not an index", subject);
  if (!crc_holds(bytes.first(kHeaderBytes))) return corrupt("{}: header is damaged (CRC-32C)", subject);
  if (const auto version = load<std::uint32_t>(bytes, 8); version != kVersion) {
    return invalid("{}: has version {}, this stoker reads {}", subject, version, kVersion)
        .cure("update stoker");
  }
  if (const auto features = load<std::uint32_t>(bytes, 12); features != 0) {
    return invalid("{}: needs features {:#x}, which this stoker does not know", subject, features)
        .cure("update stoker");
  }
  if (const auto size = load<std::uint64_t>(bytes, 32); size != bytes.size()) {
    return corrupt("{}: has {} bytes, its header says {}", subject, bytes.size(), size);
  }
  const std::uint64_t sections = load<std::uint32_t>(bytes, 20);
  if (load<std::uint64_t>(bytes, 24) != kHeaderBytes ||
      sections * kTableEntryBytes + kCrcBytes > bytes.size() - kHeaderBytes) {
    return corrupt("{}: section table is torn", subject);
  }
  return {};
}

}  // namespace

Result<SideIndex> SideIndex::parse(std::span<const std::byte> bytes, std::string_view subject) {
  RETURN_IF_ERROR(check_header(bytes, subject));
  const std::size_t count = load<std::uint32_t>(bytes, 20);
  const std::size_t table_bytes = count * kTableEntryBytes + kCrcBytes;
  const std::span<const std::byte> table = bytes.subspan(kHeaderBytes, table_bytes);
  if (!crc_holds(table)) return corrupt("{}: section table is damaged (CRC-32C)", subject);
  SideIndex index;
  std::uint64_t expected = kHeaderBytes + table_bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t entry = i * kTableEntryBytes;
    const auto offset = load<std::uint64_t>(table, entry);
    const auto size = load<std::uint64_t>(table, entry + 8);
    if (offset != expected || size > bytes.size() - offset) {
      return corrupt("{}: section {} is not where the table says", subject, i);
    }
    OK_OR_RETURN(section,
                 IndexSection::parse(bytes.subspan(offset, size), format("{}: section {}", subject, i)));
    if (section.samples() != load<std::uint64_t>(table, entry + 16) ||
        section.shard_hash() != load_digest(table, entry + 32)) {
      return corrupt("{}: section {} is not the one of the table", subject, i);
    }
    index.sections_.push_back(std::move(section));
    expected += size;
  }
  if (expected != bytes.size() || index.samples() != load<std::uint64_t>(bytes, 40)) {
    return corrupt("{}: sections do not add up to the file", subject);
  }
  return index;
}

namespace {

// Reads a map from its disk at once, which the CRCs would do anyway: where that fails it is an error and no
// SIGBUS. Kernels before 5.14 cannot tell.
bool is_readable(std::span<const std::byte> map) {
#ifdef MADV_POPULATE_READ
  return map.empty() || ::madvise(const_cast<std::byte*>(map.data()), map.size(), MADV_POPULATE_READ) == 0 ||
         errno == EINVAL;
#else
  return true;
#endif
}

}  // namespace

Result<SideIndex> SideIndex::open(const Path& file) {
  OK_OR_RETURN(mapped, MappedFile::open(file));
  if (!is_readable(mapped.bytes()))
    return unavailable("{}: cannot be read from its disk", printable(file.string()));
  OK_OR_RETURN(index, parse(mapped.bytes(), printable(file.string())));
  index.file_ = std::move(mapped);
  return std::move(index);
}

std::uint64_t SideIndex::samples() const {
  std::uint64_t sum = 0;
  for (const IndexSection& section : sections_) sum += section.samples();
  return sum;
}

}  // namespace stoker::formats
