#include "dataset/side_index.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <sys/mman.h>

#include "base/language/counted.h"
#include "codec/load.h"
#include "dataset/coders.h"
#include "dataset/side_index_layout.h"

namespace stoker::dataset {

namespace {

// A column with this bit may be skipped by a reader that does not know it.
constexpr std::uint16_t kOptionalColumn = 0x8000;

// Size of header and table.
std::size_t table_end(std::span<const std::byte> index) {
  return kHeaderBytes + codec::load<std::uint32_t>(index, 20) * kTableEntryBytes + kCrcBytes;
}

bool crc_matches(std::span<const std::byte> part) {
  const std::size_t body = part.size() - kCrcBytes;
  return codec::load<std::uint32_t>(part, body) == crc32c(part.first(body)) &&
         codec::load<std::uint32_t>(part, body + 4) == 0;
}

}  // namespace

// The unchecked parts of a section during parse().
struct IndexSection::Reader {
  std::span<const std::byte> bytes;
  std::string_view subject;

  Status damaged(std::string_view what) const { return corrupt("{}: {}", subject, what); }

  Result<std::vector<std::string>> names(std::span<const std::byte> column) const {
    std::vector<std::string> names;
    while (!column.empty()) {
      const std::size_t length = column.size() < 2 ? 0 : codec::load<std::uint16_t>(column, 0);
      if (length == 0 || length > column.size() - 2 || names.size() == 0xFFFF) {
        return damaged("the column of names is truncated");
      }
      names.emplace_back(reinterpret_cast<const char*>(column.data()) + 2, length);
      if (printable(names.back()) != names.back()) return damaged("a component name is not text");
      column = column.subspan(2 + length);
    }
    return names;
  }
};

namespace {

// Whether `column` holds n + 1 ascending numbers from 0 to `last`, each at least `step` apart.
bool is_ascending(std::span<const std::byte> column, std::uint64_t n, std::uint64_t last,
                  std::uint32_t step) {
  std::uint64_t before = codec::load<std::uint32_t>(column, 0);
  if (before != 0) return false;
  for (std::uint64_t i = 1; i <= n; ++i) {
    const std::uint64_t next = codec::load<std::uint32_t>(column, i * 4);
    if (next < before + step) return false;
    before = next;
  }
  return before == last;
}

}  // namespace

Result<IndexSection> IndexSection::parse(std::span<const std::byte> bytes, std::string_view subject) {
  const Reader reader{bytes, subject};
  if (bytes.size() < kSectionHeaderBytes + kCrcBytes) return reader.damaged("section is too short");
  if (!crc_matches(bytes)) return reader.damaged("section is damaged (CRC-32C)");
  if (std::memcmp(bytes.data(), kSectionMagic.data(), kSectionMagic.size()) != 0) {
    return reader.damaged("is not an index section");
  }
  const auto kind = codec::load<std::uint16_t>(bytes, 4);
  const bool is_packed = kind == static_cast<std::uint16_t>(LocatorKind::unpacked);
  if (!is_packed && kind != static_cast<std::uint16_t>(LocatorKind::byte_range)) {
    return invalid("{}: has locators of kind {}, this Stoker version reads kinds 1 and 4", subject, kind)
        .cure("update Stoker");
  }
  if (const auto features = codec::load<std::uint64_t>(bytes, 64); features != 0) {
    return invalid("{}: needs features {:#x}, which this Stoker version does not support", subject, features)
        .cure("update Stoker");
  }
  IndexSection section;
  section.samples_ = codec::load<std::uint64_t>(bytes, 8);
  const auto components = codec::load<std::uint64_t>(bytes, 16);
  section.shard_bytes_ = codec::load<std::uint64_t>(bytes, 24);
  section.shard_hash_ = load_digest(bytes, 32);
  STOKER_RETURN_IF_ERROR(section.parse_columns(bytes, subject));
  if (is_packed != (section.chunks_ != nullptr)) return reader.damaged("locators and chunks do not match");
  STOKER_RETURN_IF_ERROR(section.check(components, subject));
  section.per_sample_ = components / std::max<std::uint64_t>(1, section.samples_);
  return section;
}

Status IndexSection::parse_columns(std::span<const std::byte> bytes, std::string_view subject) {
  const Reader reader{bytes, subject};
  const std::size_t columns = codec::load<std::uint16_t>(bytes, 6);
  const std::size_t end = bytes.size() - kCrcBytes;
  if (columns * kColumnEntryBytes > end - kSectionHeaderBytes)
    return reader.damaged("the column directory is truncated");
  std::uint32_t seen = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    const std::size_t entry = kSectionHeaderBytes + i * kColumnEntryBytes;
    const auto tag = codec::load<std::uint16_t>(bytes, entry);
    const auto offset = codec::load<std::uint64_t>(bytes, entry + 8);
    const auto size = codec::load<std::uint64_t>(bytes, entry + 16);
    if (offset > end || size > end - offset)
      return reader.damaged(format("column {} reaches beyond the end", tag));
    const std::span<const std::byte> column = bytes.subspan(offset, size);
    if (tag & kOptionalColumn) continue;
    if (tag < 1 || tag > kChunks) {
      return invalid("{}: has column {}, which this Stoker version does not support", subject, tag)
          .cure("update Stoker");
    }
    if (seen & 1u << tag) return reader.damaged(format("column {} appears twice", tag));
    seen |= 1u << tag;
    if (tag == kNames) {
      STOKER_ASSIGN_OR_RETURN(names, reader.names(column));
      names_ = std::move(names);
    }
    if (tag == kFirst) first_ = column;
    if (tag == kLocators) components_ = column;
    if (tag == kLabels) labels_ = column;
    if (tag == kKeyBegin) key_begin_ = column;
    if (tag == kKeys) keys_ = column;
    if (tag == kChunks) {
      STOKER_ASSIGN_OR_RETURN(chunks, codec::ChunkMap::parse(column, shard_bytes_, subject, parse_any_coder));
      chunks_ = std::make_shared<const codec::ChunkMap>(std::move(chunks));
    }
    has_labels_ = has_labels_ || tag == kLabels;
    has_keys_ = has_keys_ || tag == kKeyBegin;
  }
  return {};
}

// Checks all invariants of the accessors.
Status IndexSection::check(std::uint64_t components, std::string_view subject) const {
  const Reader reader{{}, subject};
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  if (samples_ >= kMax || components >= kMax) return reader.damaged("has more samples than a shard can hold");
  if (first_.size() != (samples_ + 1) * 4 || components_.size() != components * kComponentBytes ||
      (has_labels_ && labels_.size() != samples_ * 8) ||
      (has_keys_ && key_begin_.size() != (samples_ + 1) * 4)) {
    return reader.damaged(format("a column's size does not match {}", counted(samples_, "sample")));
  }
  if (!is_ascending(first_, samples_, components, 1))
    return reader.damaged("samples do not divide the components");
  if (has_keys_ && !is_ascending(key_begin_, samples_, keys_.size(), 0))
    return reader.damaged("keys are out of order");
  for (std::uint64_t i = 0; i < components; ++i) {
    const Component c = component_at(i);
    if (c.length > offset_limit() || c.offset > offset_limit() - c.length) {
      return reader.damaged(format("component {} reaches beyond the shard's {} bytes", i, offset_limit()));
    }
    if (c.name >= names_.size()) return reader.damaged(format("component {} has no name", i));
  }
  return {};
}

std::string_view IndexSection::key(std::uint64_t sample) const {
  if (!has_keys_) return {};
  const auto begin = codec::load<std::uint32_t>(key_begin_, sample * 4);
  const auto end = codec::load<std::uint32_t>(key_begin_, sample * 4 + 4);
  return {reinterpret_cast<const char*>(keys_.data()) + begin, end - begin};
}

namespace {

Status check_header(std::span<const std::byte> bytes, std::string_view subject) {
  if (bytes.size() < kHeaderBytes)
    return corrupt("{}: too short for an index ({} bytes)", subject, bytes.size());
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return corrupt("{}: is not an index", subject);
  if (!crc_matches(bytes.first(kHeaderBytes))) return corrupt("{}: header is damaged (CRC-32C)", subject);
  if (const auto version = codec::load<std::uint32_t>(bytes, 8); version != kVersion) {
    return invalid("{}: has version {}, this Stoker version reads {}", subject, version, kVersion)
        .cure("update Stoker");
  }
  if (const auto features = codec::load<std::uint32_t>(bytes, 12); features != 0) {
    return invalid("{}: needs features {:#x}, which this Stoker version does not support", subject, features)
        .cure("update Stoker");
  }
  if (const auto size = codec::load<std::uint64_t>(bytes, 32); size != bytes.size()) {
    return corrupt("{}: has {} bytes, its header lists {}", subject, bytes.size(), size);
  }
  const std::uint64_t sections = codec::load<std::uint32_t>(bytes, 20);
  if (codec::load<std::uint64_t>(bytes, 24) != kHeaderBytes ||
      sections * kTableEntryBytes + kCrcBytes > bytes.size() - kHeaderBytes) {
    return corrupt("{}: the section table is truncated", subject);
  }
  return {};
}

}  // namespace

Result<SideIndex> SideIndex::parse(std::span<const std::byte> bytes, std::string_view subject) {
  STOKER_RETURN_IF_ERROR(check_header(bytes, subject));
  const std::size_t count = codec::load<std::uint32_t>(bytes, 20);
  const std::size_t table_bytes = count * kTableEntryBytes + kCrcBytes;
  const std::span<const std::byte> table = bytes.subspan(kHeaderBytes, table_bytes);
  if (!crc_matches(table)) return corrupt("{}: section table is damaged (CRC-32C)", subject);
  SideIndex index;
  index.bytes_ = bytes;
  std::uint64_t expected = kHeaderBytes + table_bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t entry = i * kTableEntryBytes;
    const auto offset = codec::load<std::uint64_t>(table, entry);
    const auto size = codec::load<std::uint64_t>(table, entry + 8);
    if (offset != expected || size > bytes.size() - offset) {
      return corrupt("{}: section {} is not at the offset in the table", subject, i);
    }
    STOKER_ASSIGN_OR_RETURN(
        section, IndexSection::parse(bytes.subspan(offset, size), format("{}: section {}", subject, i)));
    if (section.samples() != codec::load<std::uint64_t>(table, entry + 16) ||
        codec::load<std::uint32_t>(bytes, offset + size - kCrcBytes) !=
            codec::load<std::uint32_t>(table, entry + 24) ||
        section.shard_hash() != load_digest(table, entry + 32)) {
      return corrupt("{}: section {} does not match the table", subject, i);
    }
    index.sections_.push_back(std::move(section));
    expected += size;
  }
  if (expected != bytes.size() || index.samples() != codec::load<std::uint64_t>(bytes, 40)) {
    return corrupt("{}: sections do not add up to the file", subject);
  }
  return index;
}

namespace {

// Populates a mapping at once, which the CRC checks would do anyway, so that an I/O error is an error and not
// a SIGBUS. Kernels before 5.14 do not support it.
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
  STOKER_ASSIGN_OR_RETURN(mapped, MappedFile::open(file));
  if (!is_readable(mapped.bytes()))
    return unavailable("{}: cannot be read from its disk", printable(file.string()));
  STOKER_ASSIGN_OR_RETURN(index, parse(mapped.bytes(), printable(file.string())));
  index.file_ = std::move(mapped);
  return std::move(index);
}

std::uint64_t SideIndex::samples() const {
  std::uint64_t sum = 0;
  for (const IndexSection& section : sections_) sum += section.samples();
  return sum;
}

Digest SideIndex::table_digest() const { return sha256(bytes_.first(table_end(bytes_))); }

void describe_index(std::string_view index, Manifest& manifest) {
  manifest.index_bytes = index.size();
  manifest.index_hash = sha256(index);
  manifest.index_table = sha256(index.substr(0, table_end(std::as_bytes(std::span(index)))));
}

namespace {

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void pad_to_8(std::string& out) { out.resize((out.size() + 7) / 8 * 8, '\0'); }

void put_digest(std::string& out, const Digest& digest) {
  out.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

// Ends a part of the file: its CRC-32C and four zero bytes.
void put_crc(std::string& out, std::size_t begin) {
  put<std::uint32_t>(out, crc32c(std::string_view(out).substr(begin)));
  put<std::uint32_t>(out, 0);
}

}  // namespace

std::uint16_t SectionBuilder::name(std::string_view component) {
  const auto found = std::find(names_.begin(), names_.end(), component);
  if (found == names_.end()) {
    STOKER_CHECK(names_.size() < std::numeric_limits<std::uint16_t>::max());
    names_.emplace_back(component);
    return static_cast<std::uint16_t>(names_.size() - 1);
  }
  return static_cast<std::uint16_t>(found - names_.begin());
}

void SectionBuilder::add(const SampleEntry& sample) {
  STOKER_CHECK(!sample.components.empty());
  first_.push_back(static_cast<std::uint32_t>(components_.size()));
  components_.insert(components_.end(), sample.components.begin(), sample.components.end());
  label_.push_back(sample.label);
  key_begin_.push_back(static_cast<std::uint32_t>(keys_.size()));
  keys_ += sample.key;
}

void SectionBuilder::set_offsets(std::span<const std::uint64_t> offsets) {
  STOKER_CHECK(offsets.empty() || offsets.size() == components_.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) components_[i].offset = offsets[i];
}

std::string SectionBuilder::encode(std::uint64_t shard_bytes, const Digest& shard_hash) const {
  STOKER_CHECK(components_.size() < std::numeric_limits<std::uint32_t>::max());
  STOKER_CHECK(keys_.size() < std::numeric_limits<std::uint32_t>::max());
  const bool has_labels = labels_ == Labels::int64;
  const std::uint16_t columns = static_cast<std::uint16_t>((has_labels ? 6 : 5) + (chunks_.empty() ? 0 : 1));
  std::string out;
  out.reserve(components_.size() * 40 + keys_.size() + 1024);
  out += kSectionMagic;
  const LocatorKind kind = chunks_.empty() ? LocatorKind::byte_range : LocatorKind::unpacked;
  put<std::uint16_t>(out, static_cast<std::uint16_t>(kind));
  put<std::uint16_t>(out, columns);
  put<std::uint64_t>(out, first_.size());
  put<std::uint64_t>(out, components_.size());
  put<std::uint64_t>(out, shard_bytes);
  put_digest(out, shard_hash);
  put<std::uint64_t>(out, 0);  // incompatible features, reserved
  const std::size_t directory = out.size();
  out.resize(directory + columns * kColumnEntryBytes, '\0');

  std::size_t entry = directory;
  const auto column = [&](std::uint16_t tag, const auto& fill) {
    pad_to_8(out);
    const std::uint64_t begin = out.size();
    fill();
    std::string described;
    put<std::uint16_t>(described, tag);
    put<std::uint16_t>(described, 0);
    put<std::uint32_t>(described, 0);
    put<std::uint64_t>(described, begin);
    put<std::uint64_t>(described, out.size() - begin);
    out.replace(entry, kColumnEntryBytes, described);
    entry += kColumnEntryBytes;
  };
  const auto append = [&](const auto& values) {
    out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  column(kNames, [&] {
    for (const std::string& name : names_) {
      put<std::uint16_t>(out, static_cast<std::uint16_t>(name.size()));
      out += name;
    }
  });
  column(kFirst, [&] {
    append(first_);
    put<std::uint32_t>(out, static_cast<std::uint32_t>(components_.size()));
  });
  column(kLocators, [&] {
    for (const Component& c : components_) {
      put<std::uint64_t>(out, c.offset);
      put<std::uint64_t>(out, c.length | std::uint64_t{c.name} << 48);
      put<std::uint32_t>(out, c.crc32c);
    }
  });
  if (has_labels) column(kLabels, [&] { append(label_); });
  column(kKeyBegin, [&] {
    append(key_begin_);
    put<std::uint32_t>(out, static_cast<std::uint32_t>(keys_.size()));
  });
  column(kKeys, [&] { out += keys_; });
  if (!chunks_.empty()) column(kChunks, [&] { out += chunks_; });
  pad_to_8(out);
  put_crc(out, 0);
  return out;
}

Digest content_digest(std::span<const IndexSection> sections) {
  constexpr std::size_t kGathered = 1u << 18;
  Sha256 hash;
  std::string out;
  for (const IndexSection& section : sections) {
    put<std::uint64_t>(out, section.samples());
    for (std::uint64_t i = 0; i < section.samples(); ++i) {
      const std::string_view key = section.key(i);
      put<std::uint32_t>(out, static_cast<std::uint32_t>(key.size()));
      out += key;
      put<std::int64_t>(out, section.has_labels() ? section.label(i) : -1);
      put<std::uint32_t>(out, section.component_count(i));
      for (std::uint32_t c = 0; c < section.component_count(i); ++c) {
        const Component file = section.component(i, c);
        const std::string& name = section.names()[file.name];
        put<std::uint16_t>(out, static_cast<std::uint16_t>(name.size()));
        out += name;
        put<std::uint64_t>(out, file.length);
        put<std::uint32_t>(out, file.crc32c);
      }
      if (out.size() < kGathered) continue;
      hash.update(out);
      out.clear();
    }
  }
  hash.update(out);
  return hash.finish();
}

std::optional<std::uint64_t> count_classes(const IndexSection& section, std::span<std::uint64_t> counts) {
  for (std::uint64_t sample = 0; sample < section.samples(); ++sample) {
    const std::int64_t label = section.label(sample);
    if (label < 0) continue;
    if (static_cast<std::uint64_t>(label) >= counts.size()) return sample;
    ++counts[static_cast<std::size_t>(label)];
  }
  return std::nullopt;
}

std::string encode_index(std::span<const std::string> sections) {
  const std::uint64_t table_bytes = sections.size() * kTableEntryBytes + kCrcBytes;
  std::uint64_t samples = 0;
  std::uint64_t file_bytes = kHeaderBytes + table_bytes;
  for (const std::string& section : sections) {
    samples += codec::load<std::uint64_t>(std::as_bytes(std::span(section)), 8);
    file_bytes += section.size();
  }
  std::string out;
  out.reserve(file_bytes);
  out += kMagic;
  put<std::uint32_t>(out, kVersion);
  put<std::uint32_t>(out, 0);  // incompatible features
  put<std::uint32_t>(out, 0);  // compatible features
  put<std::uint32_t>(out, static_cast<std::uint32_t>(sections.size()));
  put<std::uint64_t>(out, kHeaderBytes);
  put<std::uint64_t>(out, file_bytes);
  put<std::uint64_t>(out, samples);
  put<std::uint64_t>(out, 0);  // reserved
  put_crc(out, 0);
  std::uint64_t offset = kHeaderBytes + table_bytes;
  for (const std::string& section : sections) {
    const auto bytes = std::as_bytes(std::span(section));
    put<std::uint64_t>(out, offset);
    put<std::uint64_t>(out, section.size());
    put<std::uint64_t>(out, codec::load<std::uint64_t>(bytes, 8));
    put<std::uint32_t>(out, codec::load<std::uint32_t>(bytes, section.size() - kCrcBytes));
    put<std::uint32_t>(out, 0);  // reserved
    put_digest(out, load_digest(bytes, 32));
    offset += section.size();
  }
  put_crc(out, kHeaderBytes);
  for (const std::string& section : sections) out += section;
  return out;
}

}  // namespace stoker::dataset
