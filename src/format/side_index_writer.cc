#include <algorithm>
#include <limits>

#include "format/load.h"
#include "format/side_index.h"
#include "format/side_index_layout.h"

namespace stoker::formats {

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
    CHECK(names_.size() < std::numeric_limits<std::uint16_t>::max());
    names_.emplace_back(component);
    return static_cast<std::uint16_t>(names_.size() - 1);
  }
  return static_cast<std::uint16_t>(found - names_.begin());
}

void SectionBuilder::add(const SampleEntry& sample) {
  CHECK(!sample.components.empty());
  first_.push_back(static_cast<std::uint32_t>(components_.size()));
  components_.insert(components_.end(), sample.components.begin(), sample.components.end());
  label_.push_back(sample.label);
  key_begin_.push_back(static_cast<std::uint32_t>(keys_.size()));
  keys_ += sample.key;
}

void SectionBuilder::place(std::span<const std::uint64_t> offsets) {
  CHECK(offsets.empty() || offsets.size() == components_.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) components_[i].offset = offsets[i];
}

std::string SectionBuilder::encode(std::uint64_t shard_bytes, const Digest& shard_hash) const {
  CHECK(components_.size() < std::numeric_limits<std::uint32_t>::max());
  CHECK(keys_.size() < std::numeric_limits<std::uint32_t>::max());
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

Digest content_of(std::span<const IndexSection> sections) {
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
    samples += load<std::uint64_t>(std::as_bytes(std::span(section)), 8);
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
    put<std::uint64_t>(out, load<std::uint64_t>(bytes, 8));
    put<std::uint32_t>(out, load<std::uint32_t>(bytes, section.size() - kCrcBytes));
    put<std::uint32_t>(out, 0);  // reserved
    put_digest(out, load_digest(bytes, 32));
    offset += section.size();
  }
  put_crc(out, kHeaderBytes);
  for (const std::string& section : sections) out += section;
  return out;
}

}  // namespace stoker::formats
