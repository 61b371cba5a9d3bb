// Small datasets for tests of this room and of rooms that read datasets. Tests only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "archive/tar.h"
#include "base/file.h"
#include "base/hash.h"
#include "dataset/manifest.h"
#include "dataset/side_index.h"

namespace stoker::dataset {

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// A consistent manifest with two splits, three shards and two classes.
inline Manifest test_manifest() {
  const auto shard = [](std::string file, std::uint64_t bytes, std::uint64_t samples) {
    ShardInfo info{.file = file, .bytes = bytes, .samples = samples, .hash = {}, .blocks = {}};
    for (std::uint64_t at = 0; at < bytes; at += kHashBlock)
      info.blocks.push_back(sha256(format("{} {}", file, at)));
    info.hash = shard_hash(info.blocks);
    return info;
  };
  Manifest m;
  m.schema = {.components = {{.name = "jpg", .is_image = true}, {.name = "json", .is_image = false}},
              .has_labels = true,
              .classes = {"cat", "hedgehog"}};
  m.splits = {{.name = "train",
               .samples = 5,
               .shards = {shard("train-000000.tar", kHashBlock + 1, 3), shard("train-000001.tar", 512, 2)},
               .class_samples = {3, 2}},
              {.name = "test",
               .samples = 1,
               .shards = {shard("test-000000.tar", 10240, 1)},
               .class_samples = {1, 0}}};
  m.index_bytes = 777;
  m.index_hash = sha256("index");
  m.images = {.images = 6, .width_min = 8, .width_max = 16, .height_min = 9, .height_max = 12, .pixels = 600};
  m.left_out = {{"truncated", 1}};
  m.version = dataset_version(m);
  return m;
}

/// One sample of a test dataset: key, label, and (extension, bytes) pairs.
struct TestSample {
  std::string key;
  std::int64_t label = 0;
  std::vector<std::pair<std::string, std::string>> files;
};

/// Writes shards, index and manifest of one split ("all") of a labelled dataset with the given samples into
/// `folder`, one inner list per shard. Aborts on failure: tests only.
inline Manifest write_test_dataset(const Path& folder, const std::vector<std::vector<TestSample>>& shards) {
  struct Sink final : archive::ByteSink {
    std::string bytes;
    Status write(std::span<const std::byte> data) override {
      bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
      return {};
    }
  };
  Manifest m;
  m.schema.has_labels = true;
  m.splits = {{.name = "all", .shards = {}, .class_samples = {}}};
  std::vector<std::string> sections;
  for (const std::vector<TestSample>& samples : shards) {
    Sink sink;
    archive::TarWriter writer(sink);
    SectionBuilder section(SectionBuilder::Labels::int64);
    for (const TestSample& sample : samples) {
      SampleEntry entry{.key = sample.key, .label = sample.label, .components = {}};
      for (const auto& [extension, data] : sample.files) {
        const auto bytes = std::as_bytes(std::span(data.data(), data.size()));
        const Result<std::uint64_t> offset = writer.add(sample.key + "." + extension, bytes);
        STOKER_CHECK(offset.ok());
        entry.components.push_back({.offset = *offset,
                                    .length = data.size(),
                                    .crc32c = crc32c(bytes),
                                    .name = section.name(extension)});
        const ComponentInfo kind{.name = extension, .is_image = extension == "jpg" || extension == "png"};
        bool known = false;
        for (const ComponentInfo& c : m.schema.components) known = known || c == kind;
        if (!known) m.schema.components.push_back(kind);
      }
      section.add(entry);
    }
    STOKER_CHECK(writer.finish().ok());
    ShardInfo info{.file = format("all-{:06}.tar", sections.size()),
                   .bytes = sink.bytes.size(),
                   .samples = samples.size(),
                   .hash = {},
                   .blocks = {}};
    for (std::uint64_t at = 0; at < sink.bytes.size(); at += kHashBlock) {
      info.blocks.push_back(sha256(std::string_view(sink.bytes).substr(at, kHashBlock)));
    }
    info.hash = shard_hash(info.blocks);
    STOKER_CHECK(write_file(folder / info.file, sink.bytes).ok());
    sections.push_back(section.encode(info.bytes, info.hash));
    m.splits[0].samples += info.samples;
    m.splits[0].shards.push_back(std::move(info));
  }
  const std::string index = encode_index(sections);
  STOKER_CHECK(write_file(folder / kIndexFile, index).ok());
  describe_index(index, m);
  m.content = content_digest(SideIndex::parse(bytes_of(index), "index")->sections());
  m.version = dataset_version(m);
  STOKER_CHECK(write_file(folder / kManifestFile, to_json(m)).ok());
  return m;
}

}  // namespace stoker::dataset
