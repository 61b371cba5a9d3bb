#include "dataset/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/test_dataset.h"

namespace stoker::dataset {
namespace {

using ::testing::HasSubstr;

std::string error_of(std::string_view json) {
  const Result<Manifest> manifest = parse_manifest(json, "m");
  return manifest.ok() ? "no error" : manifest.error().to_string();
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Manifest, survives_a_round_trip) {
  const Manifest manifest = test_manifest();
  const Result<Manifest> read = parse_manifest(to_json(manifest), "m");
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(*read, manifest);
  EXPECT_EQ(to_json(*read), to_json(manifest));
}

TEST(Manifest, version_depends_on_content_and_schema_only) {
  const Manifest manifest = test_manifest();
  Manifest other = manifest;
  other.images.images = 99;
  other.left_out["truncated"] = 3;
  other.splits[0].shards[0].file = "renamed.tar";
  other.index_bytes = 1;
  EXPECT_EQ(dataset_version(other), dataset_version(manifest));
  Manifest relabelled = manifest;
  relabelled.schema.classes[1] = "dog";
  EXPECT_NE(dataset_version(relabelled), dataset_version(manifest));
  Manifest swapped = manifest;
  std::swap(swapped.splits[0].shards[0], swapped.splits[0].shards[1]);
  EXPECT_NE(dataset_version(swapped), dataset_version(manifest));
  Manifest split = manifest;
  split.splits[1].name = "val";
  EXPECT_NE(dataset_version(split), dataset_version(manifest));
}

TEST(Manifest, version_matches_the_example_of_the_format_page) {
  Manifest manifest;
  manifest.schema = {
      .components = {{.name = "jpg", .is_image = true}}, .has_labels = true, .classes = {"cat", "dog"}};
  const Digest block = sha256("abc");
  manifest.splits = {{.name = "train",
                      .samples = 1,
                      .shards = {{.hash = shard_hash(std::span(&block, 1))}},
                      .class_samples = {}}};
  EXPECT_EQ(hex(manifest.splits[0].shards[0].hash),
            "4f8b42c22dd3729b519ba6f68d2da7cc5b2d606d05daed5ad5128cc03e6c6358");
  EXPECT_EQ(dataset_version(manifest), "0921aefe2632f6e58aec4f0b6abcc8fa5ef13ce9f53cf458db1c4083380d3980");
  manifest.content = *parse_digest("c04fa4333f031b1c3dee4c1ddb12c617acf1a5ed18cf38a1e1a9a38d68c84cb6");
  EXPECT_EQ(dataset_version(manifest), "70bbbf1c01be45ebf7a18777e26ff1ff3318b0a953f3f4bcccdb87db0615e79d");
}

TEST(Manifest, rejects_a_newer_format_version) {
  const std::string json = to_json(test_manifest());
  EXPECT_EQ(error_of(replaced(json, "\"format_version\": 1", "\"format_version\": 2")),
            "m: has format version 2, this Stoker version reads 1\n  try: update Stoker");
  EXPECT_EQ(
      error_of(replaced(json, "\"incompatible_features\": []", "\"incompatible_features\": [\"zstd\"]")),
      "m: needs the feature \"zstd\", which this Stoker version does not support\n  try: update Stoker");
}

TEST(Manifest, reports_the_wrong_field) {
  const std::string json = to_json(test_manifest());
  EXPECT_EQ(error_of("{"), "m: is not JSON");
  EXPECT_EQ(error_of("[]"), "m: is not a manifest of a dataset (no \"format\": \"stoker-dataset\")");
  EXPECT_EQ(error_of(replaced(json, "\"bytes\": 4194305", "\"bytes\": -1")),
            "m: splits[0].shards[0].bytes: is not a natural number");
  EXPECT_EQ(error_of(replaced(json, "\"bytes\": 4194305", "\"bytes\": 4194304")),
            "m: splits[0].shards[0].blocks: has 2 hashes, 4194304 bytes need 1");
  EXPECT_EQ(error_of(replaced(json, "train-000000.tar", "../evil.tar")),
            "m: splits[0].shards[0].file: is not a file name");
  EXPECT_EQ(error_of(replaced(json, "train-000000.tar", "year=2024//a.parquet")),
            "m: splits[0].shards[0].file: is not a file name");
  EXPECT_EQ(error_of(replaced(json, "train-000000.tar", "year=2024/../a.parquet")),
            "m: splits[0].shards[0].file: is not a file name");
  EXPECT_EQ(error_of(replaced(json, "train-000000.tar", "year=2024/country=C\u00F4te/a.parquet")),
            "no error");
  EXPECT_EQ(error_of(replaced(json, "train-000000.tar", "train-000001.tar")),
            "m: splits: 'train-000001.tar' appears twice");
  EXPECT_EQ(error_of(replaced(json, "\"name\": \"test\"", "\"name\": \"train\"")),
            "m: splits: 'train' appears twice");
  EXPECT_EQ(error_of(replaced(json, "\"samples\": 5,", "\"samples\": 6,")),
            "m: splits[0].samples: is 6, its shards have 5");
  EXPECT_EQ(error_of(replaced(json, "\"kind\": \"image\"", "\"kind\": \"sound\"")),
            "m: schema.components[0].kind: is neither 'image' nor 'bytes'");
  EXPECT_EQ(error_of(replaced(json, "\"labels\": \"int64\"", "\"labels\": null")),
            "m: schema.classes: has names, but there are no labels");
  EXPECT_EQ(error_of(replaced(json, "\"container\": \"tar\"", "\"container\": \"zip\"")),
            "m: schema.container: is neither 'tar', 'tfrecord', 'parquet', 'hdf5', 'zarr', 'mds' nor 'npy'");
  EXPECT_EQ(error_of(replaced(json, "\"cat\"", "\"cow\"")).substr(0, 22),
            "m: version: is " + test_manifest().short_version().substr(0, 7));
  EXPECT_EQ(error_of(replaced(json, "\"file\": \"index.bin\"", "\"file\": \"x\"")),
            "m: index.file: is not 'index.bin'");
}

TEST(Manifest, rejects_every_flipped_digit_of_every_hash) {
  const std::string json = to_json(test_manifest());
  std::size_t flipped = 0;
  const std::size_t statistics = json.find("\"index\"");
  for (std::size_t i = 0; i < statistics; ++i) {
    if (i < 64 || json.substr(i, 1) != "\"" || json[i + 1] == ',') continue;
    if (json.find_first_not_of("0123456789abcdef", i + 1) != i + 65) continue;
    std::string damaged = json;
    damaged[i + 1 + flipped % 64] = damaged[i + 1 + flipped % 64] == '0' ? '1' : '0';
    EXPECT_NE(error_of(damaged), "no error");
    ++flipped;
  }
  EXPECT_GE(flipped, 7u);  // a version, three shards, four blocks
}

TEST(Manifest, rejects_every_missing_field) {
  const std::string json = to_json(test_manifest());
  for (std::string_view key : {"format",     "format_version", "incompatible_features",
                               "version",    "schema",         "container",
                               "components", "kind",           "labels",
                               "classes",    "splits",         "name",
                               "samples",    "class_samples",  "shards",
                               "file",       "bytes",          "sha256",
                               "blocks",     "index",          "statistics",
                               "images",     "progressive",    "width_max",
                               "pixels",     "left_out"}) {
    EXPECT_NE(error_of(replaced(json, format("\"{}\":", key), "\"other\":")), "no error") << key;
  }
}

TEST(Manifest, finds_a_split_by_name_or_lists_the_splits) {
  const Manifest manifest = test_manifest();
  ASSERT_TRUE(manifest.split("test").ok());
  EXPECT_EQ((*manifest.split("test"))->samples, 1u);
  EXPECT_EQ(manifest.split("tests").status().message(),
            "dataset " + manifest.short_version() + ": no split 'tests'; did you mean 'test'?");
  EXPECT_EQ(manifest.split("").status().message(),
            "dataset " + manifest.short_version() + ": has 2 splits, name one (one of: train, test)");
}

TEST(Manifest, reports_a_folder_without_a_manifest) {
  TempDirectory box;
  const std::string root = box.path().string();
  EXPECT_EQ(read_manifest(box / "none").status().to_string(), root + "/none: no such dataset");
  EXPECT_EQ(read_manifest(box.path()).status().to_string(),
            root + ": is not a dataset: it has no manifest.json\n  try: stoker data pack FOLDER " + root);
  ASSERT_TRUE(write_file(box / "a-000000.tar", "x").ok());
  EXPECT_EQ(read_manifest(box.path()).status().to_string(),
            root + ": is not a dataset: it has no manifest.json\n  try: stoker data index " + root);
  ASSERT_TRUE(make_directory(box / kPendingFolder).ok());
  EXPECT_EQ(read_manifest(box.path()).status().to_string(),
            root +
                ": is not finished: packing it was interrupted\n"
                "  try: run the same `stoker data pack` command again to resume it");
  ASSERT_TRUE(write_file(box / "file", "x").ok());
  EXPECT_EQ(
      read_manifest(box / "file").status().to_string(),
      root + "/file: is not a folder (a dataset is a folder with manifest.json)\n  try: stoker data info " +
          root + "/file");
}

TEST(BlockHash, a_crc_fills_the_first_four_bytes_and_pieces_add_up) {
  const std::string digits = "123456789";
  const auto bytes = std::as_bytes(std::span(digits));
  const std::string expected = "e3069283" + std::string(56, '0');
  EXPECT_EQ(hex(block_digest(BlockHash::crc32c, bytes)), expected);
  BlockHasher hasher(BlockHash::crc32c);
  hasher.update(bytes.first(4));
  hasher.update(bytes.subspan(4));
  EXPECT_EQ(hex(hasher.finish()), expected);
  EXPECT_EQ(block_digest(BlockHash::sha256, bytes), sha256(digits));
}

TEST(Manifest, crc_blocks_survive_a_round_trip_and_change_the_version) {
  Manifest manifest = test_manifest();
  const std::string before = manifest.version;
  manifest.schema.block_hash = BlockHash::crc32c;
  manifest.version = dataset_version(manifest);
  EXPECT_NE(manifest.version, before);
  const auto parsed = parse_manifest(to_json(manifest), "m");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, manifest);
}

TEST(Manifest, index_content_survives_a_round_trip_and_changes_the_version) {
  Manifest manifest = test_manifest();
  const std::string before = manifest.version;
  manifest.content = sha256("samples");
  manifest.version = dataset_version(manifest);
  EXPECT_NE(manifest.version, before);
  const std::string json = to_json(manifest);
  const auto parsed = parse_manifest(json, "m");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, manifest);
  EXPECT_EQ(error_of(replaced(json, "\"content\":", "\"other\":")), "m: index.content: is missing");
  EXPECT_THAT(error_of(replaced(json, hex(*manifest.content), hex(sha256("others")))),
              HasSubstr("m: version: is "));
}

}  // namespace
}  // namespace stoker::dataset
