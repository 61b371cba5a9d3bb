#include "dataset/shard_source.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/test_dataset.h"

namespace stoker::dataset {
namespace {

const std::vector<std::vector<TestSample>> kShards = {
    {{"cat/1", 0, {{"jpg", "meow"}}}, {"dog/1", 1, {{"json", "{}"}, {"jpg", "woof"}}}},
    {{"dog/2", 1, {{"jpg", "wuff"}}}},
};

std::string read(const ShardSource& source, const Locator& at) {
  std::string data(at.length, '\0');
  const Status status = source.read(at.shard, at.offset, std::as_writable_bytes(std::span(data)));
  return status.ok() ? data : status.to_string();
}

TEST(LocalShardSource, reads_every_sample_of_a_split) {
  TempDirectory box;
  write_test_dataset(box.path(), kShards);
  const auto source = LocalShardSource::open(box.path(), "");
  ASSERT_TRUE(source.ok()) << source.error().to_string();
  const SampleTable& samples = (*source)->samples();
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(read(**source, samples.locate(0, 0)), "meow");
  EXPECT_EQ(read(**source, *samples.image(1)), "woof");
  EXPECT_EQ(read(**source, samples.locate(1, 0)), "{}");
  EXPECT_EQ(read(**source, *samples.image(2)), "wuff");
  EXPECT_EQ(samples.component_count(1), 2u);
  EXPECT_EQ(samples.key(2), "dog/2");
  EXPECT_EQ(samples.label(2), 1);
  EXPECT_EQ(samples.position(2).shard, 1u);
  EXPECT_EQ(samples.components()[samples.image(1)->component].name, "jpg");
}

// A cache's folder of a dataset, whose shards are read at the source.
class CachedShardSource : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_directories(source_).ok() && make_directories(folder_).ok());
    ASSERT_TRUE(make_directories(box_ / "cache/shards").ok());
    write_test_dataset(source_, kShards);
    const auto names = list_directory(source_);
    for (const std::string& name : *names) {
      if (name.ends_with(".tar")) {
        std::filesystem::create_symlink(source_ / name, folder_ / name);
      } else {
        std::filesystem::copy_file(source_ / name, folder_ / name);
      }
    }
    reader_ = LocalShardSource::open(folder_, "").value();
  }

  void copy_of_first_shard(std::string_view bytes) {
    ASSERT_TRUE(write_file(box_ / "cache/shards/key", bytes).ok());
    std::filesystem::create_symlink("../../shards/key", folder_ / "new");
    std::filesystem::rename(folder_ / "new", folder_ / kFirst);
  }
  std::string read_first() { return read(*reader_, reader_->samples().locate(0, 0)); }

  static constexpr const char* kFirst = "all-000000.tar";
  TempDirectory box_;
  const Path source_ = box_ / "photos";
  const Path folder_ = box_ / "cache/datasets/version";
  std::unique_ptr<LocalShardSource> reader_;
};

TEST_F(CachedShardSource, reads_at_the_source_until_the_copy_is_there) {
  EXPECT_EQ(read_first(), "meow");
  EXPECT_EQ(reader_->read_bytes().source, 4u);
  const std::span<const std::byte> mapped = reader_->map(0).value();
  copy_of_first_shard(*read_file(source_ / kFirst));
  while (reader_->read_bytes().copy == 0) EXPECT_EQ(read_first(), "meow");
  // The source is gone; what was mapped before is still there.
  std::filesystem::remove(source_ / kFirst);
  EXPECT_EQ(read_first(), "meow");
  EXPECT_EQ(mapped.size(), reader_->split().shards[0].bytes);
  EXPECT_EQ(reader_->samples().locate(0, 0).length, 4u);
  EXPECT_EQ(mapped[reader_->samples().locate(0, 0).offset], std::byte{'m'});
}

TEST_F(CachedShardSource, a_copy_of_a_different_size_is_not_used) {
  EXPECT_EQ(read_first(), "meow");
  copy_of_first_shard("short");
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1500))
    ASSERT_EQ(read_first(), "meow");
  EXPECT_EQ(reader_->read_bytes().copy, 0u);
}

TEST_F(CachedShardSource, many_threads_change_to_the_copy_together) {
  std::vector<std::thread> threads;
  EXPECT_EQ(read_first(), "meow");
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (reader_->read_bytes().copy < 4000) EXPECT_EQ(read_first(), "meow");
    });
  }
  copy_of_first_shard(*read_file(source_ / kFirst));
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CachedShardSource, a_shard_that_is_opened_later_is_read_from_its_copy_at_once) {
  copy_of_first_shard(*read_file(source_ / kFirst));
  EXPECT_EQ(read_first(), "meow");
  EXPECT_EQ(reader_->read_bytes().source, 0u);
  EXPECT_EQ(reader_->read_bytes().copy, 4u);
}

TEST(SampleTable, finds_the_files_of_many_samples_as_one_by_one) {
  TempDirectory box;
  std::vector<std::vector<TestSample>> shards;
  for (std::size_t size : {1, 150, 0, 1, 1, 0, 70, 3, 0}) {
    std::vector<TestSample>& shard = shards.emplace_back();
    for (std::size_t i = 0; i < size; ++i) {
      const std::string key = format("{}-{}", shards.size(), i);
      TestSample sample{key, static_cast<std::int64_t>(i % 2), {{"txt", key}}};
      if (i % 3 == 0) sample.files.emplace_back("jpg", "picture of " + key);
      shard.push_back(std::move(sample));
    }
  }
  write_test_dataset(box.path(), shards);
  const auto source = LocalShardSource::open(box.path(), "").value();
  const SampleTable& samples = source->samples();
  std::vector<std::uint64_t> asked;
  for (std::uint64_t i = 0; i < samples.size(); ++i) asked.push_back(i * 97 % samples.size());
  std::vector<Locator> first(asked.size()), jpg(asked.size());
  std::vector<std::int64_t> labels(asked.size());
  samples.locate(asked, std::nullopt, first);
  samples.locate(asked, std::uint16_t{1}, jpg);
  samples.labels(asked, labels);
  ASSERT_EQ(samples.components()[1].name, "jpg");
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::optional<Locator> image = samples.image(asked[i]);
    EXPECT_EQ(first[i], image ? *image : samples.locate(asked[i], 0)) << asked[i];
    if (image) {
      EXPECT_EQ(jpg[i], *image) << asked[i];
    } else {
      EXPECT_EQ(jpg[i].length, SampleTable::kNoFile) << asked[i];
    }
    EXPECT_EQ(labels[i], samples.label(asked[i])) << asked[i];
    const std::string key(samples.key(asked[i]));
    EXPECT_EQ(read(*source, first[i]), (image ? "picture of " : "") + key);
  }
}

TEST(SampleTable, has_no_labels_where_the_dataset_has_none) {
  SectionBuilder builder(SectionBuilder::Labels::none);
  builder.add({.key = "a", .components = {{.length = 1, .name = builder.name("txt")}}});
  const std::string bytes = builder.encode(512, Digest{});
  const IndexSection section = IndexSection::parse(std::as_bytes(std::span(bytes)), "section").value();
  const SampleTable table({&section},
                          DatasetSchema{.components = {{.name = "txt"}}, .has_labels = false, .classes = {}});
  std::vector<std::int64_t> labels(2);
  table.labels(std::vector<std::uint64_t>{0, 0}, labels);
  EXPECT_EQ(labels, (std::vector<std::int64_t>{-1, -1}));
}

TEST(LocalShardSource, maps_a_shard_and_finds_damaged_bytes) {
  TempDirectory box;
  write_test_dataset(box.path(), kShards);
  const auto source = LocalShardSource::open(box.path(), "all");
  ASSERT_TRUE(source.ok());
  const Locator at = *(*source)->samples().image(0);
  const auto shard = (*source)->map(at.shard);
  ASSERT_TRUE(shard.ok());
  EXPECT_TRUE((*source)->check(0, at, shard->subspan(at.offset, at.length)).ok());
  EXPECT_EQ((*source)->check(0, at, shard->subspan(at.offset + 1, at.length)).message(),
            "all-000000.tar: sample 'cat/1' (jpg): CRC-32C expected bbceaab2, found 3d37a743");
}

TEST(LocalShardSource, is_read_from_many_threads) {
  TempDirectory box;
  write_test_dataset(box.path(), kShards);
  const auto source = LocalShardSource::open(box.path(), "");
  ASSERT_TRUE(source.ok());
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) EXPECT_EQ(read(**source, *(*source)->samples().image(i % 3)).size(), 4u);
    });
  }
  for (std::thread& reader : readers) reader.join();
}

TEST(LocalShardSource, reports_a_missing_shard_or_a_wrong_size) {
  TempDirectory box;
  write_test_dataset(box.path(), kShards);
  ASSERT_TRUE(write_file(box / "all-000001.tar", "short").ok());
  const auto source = LocalShardSource::open(box.path(), "");
  ASSERT_TRUE(source.ok());
  const Locator at = *(*source)->samples().image(2);
  EXPECT_EQ(read(**source, at),
            (box / "all-000001.tar").string() + ": has 5 bytes, the manifest lists 10240");
  ASSERT_TRUE(remove_file(box / "all-000001.tar").ok());
  EXPECT_EQ(read(**source, at), (box / "all-000001.tar").string() + ": no such file or directory");
}

TEST(LocalShardSource, rejects_the_index_of_a_different_dataset) {
  TempDirectory box;
  TempDirectory other;
  write_test_dataset(box.path(), kShards);
  write_test_dataset(other.path(), {kShards[1], kShards[0]});
  std::filesystem::copy_file(other / kIndexFile, box / kIndexFile,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(LocalShardSource::open(box.path(), "").status().message(),
            box.path().string() + ": the index section of all-000000.tar belongs to a different shard");
  write_test_dataset(other.path(), {kShards[0]});
  std::filesystem::copy_file(other / kIndexFile, box / kIndexFile,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(LocalShardSource::open(box.path(), "").status().message(),
            box.path().string() + ": index has 1 sections, the manifest 2 shards");
}

// The same shards, other labels: only the hashes of the index differ.
TEST(LocalShardSource, rejects_an_index_with_other_labels) {
  const auto relabelled = [](bool swap) {
    return std::vector<std::vector<TestSample>>{
        {{"cat/1", swap ? 1 : 0, {{"jpg", "meow"}}}, {"dog/1", swap ? 0 : 1, {{"jpg", "woof"}}}}};
  };
  TempDirectory box;
  TempDirectory other;
  Manifest manifest = write_test_dataset(box.path(), relabelled(false));
  const Manifest swapped = write_test_dataset(other.path(), relabelled(true));
  ASSERT_EQ(manifest.splits, swapped.splits);
  const auto copy = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(other / kIndexFile, box / kIndexFile, copy);
  const std::string refused =
      format("{}/index.bin: does not match the manifest (SHA-256 expected {}, found {})", box.path().string(),
             hex(manifest.index_hash).substr(0, 12), hex(swapped.index_hash).substr(0, 12));
  EXPECT_EQ(LocalShardSource::open(box.path(), "").status().message(), refused);
  // Older manifests have no hash of the table.
  manifest.index_table.reset();
  ASSERT_TRUE(write_file(box / kManifestFile, to_json(manifest)).ok());
  EXPECT_EQ(LocalShardSource::open(box.path(), "").status().message(), refused);
  std::filesystem::copy_file(other / kManifestFile, box / kManifestFile, copy);
  EXPECT_TRUE(LocalShardSource::open(box.path(), "").ok());
}

TEST(LocalShardSource, knows_the_index_by_its_table) {
  TempDirectory box;
  write_test_dataset(box.path(), kShards);
  const Result<OpenDataset> opened = open_dataset(box.path());
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  EXPECT_EQ(opened->manifest.index_table, opened->index.table_digest());
}

TEST(LocalShardSource, rejects_another_size_of_the_index) {
  TempDirectory box;
  Manifest manifest = write_test_dataset(box.path(), kShards);
  const std::uint64_t bytes = manifest.index_bytes++;
  ASSERT_TRUE(write_file(box / kManifestFile, to_json(manifest)).ok());
  EXPECT_EQ(
      LocalShardSource::open(box.path(), "").status().message(),
      format("{}/index.bin: has {} bytes, the manifest lists {}", box.path().string(), bytes, bytes + 1));
}

TEST(LocalShardSource, needs_a_split_that_exists) {
  TempDirectory box;
  const Manifest manifest = write_test_dataset(box.path(), kShards);
  EXPECT_EQ(LocalShardSource::open(box.path(), "train").status().message(),
            "dataset " + manifest.short_version() + ": no split 'train' (one of: all)");
}

}  // namespace
}  // namespace stoker::dataset
