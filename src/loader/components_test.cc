// Arrays, tokens, and single values beside them, from the loader.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "codec/npy.h"
#include "dataset/shard_source.h"
#include "dataset/test_dataset.h"
#include "loader/test_pictures.h"
#include "stoker/loader.h"

namespace stoker::loader {
namespace {

using dataset::TestSample;

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string npy(const std::vector<float>& values) {
  std::string header =
      format("{{'descr': '<f4', 'fortran_order': False, 'shape': (2, {}), }}", values.size() / 2);
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\0v\0", 10) + header + "\n" + bytes_of(values);
}

// 30 samples in three shards: six floats as .npy and without a header, a JSON, a CSV, a text.
class Numbers {
 public:
  Numbers() {
    for (int i = 0; i < 30; ++i) {
      if (i % 10 == 0) shards_.emplace_back();
      const float f = static_cast<float>(i);
      const std::vector<float> values{f, f + 0.5f, -f, 4, 5, 6};
      shards_.back().push_back({format("k{:02}", i),
                                i % 3,
                                {{"npy", npy(values)},
                                 {"bin", bytes_of(values)},
                                 {"json", format(R"({{"n": {}, "who": "w{}"}})", i, i)},
                                 {"csv", format("x,y\n{},{}\n", i, i * 0.25)},
                                 {"txt", format("text {}", i)}}});
    }
  }
  TestSample& sample(std::size_t i) { return shards_[i / 10][i % 10]; }
  const dataset::ShardSource& source() {
    dataset::write_test_dataset(folder_.path(), shards_);
    source_ = dataset::LocalShardSource::open(folder_.path(), "").value();
    return *source_;
  }

 private:
  TempDirectory folder_;
  std::vector<std::vector<TestSample>> shards_;
  std::unique_ptr<dataset::LocalShardSource> source_;
};

LoaderOptions options_for(Content content, std::uint32_t batch) {
  LoaderOptions options;
  options.content = content;
  options.batch = batch;
  options.threads = 2;
  options.seed = 3;
  return options;
}

TEST(LoaderArrays, are_the_numbers_stored_with_and_without_header) {
  Numbers numbers;
  const dataset::ShardSource& source = numbers.source();
  LoaderOptions options = options_for(Content::arrays, 8);
  for (const char* component : {"", "npy", "bin"}) {
    options.component = component;
    options.array = options.component == "bin" ? std::optional(ArrayForm{DType::f32, {3, 2}}) : std::nullopt;
    for (const ByteCount resident : {ByteCount{0}, 1_GiB}) {
      options.resident = resident;
      auto loader = Loader::open(source, options).value();
      std::uint64_t seen = 0;
      for (;;) {
        auto batch = loader->next(soon()).value();
        if (!batch) break;
        const MutableTensorView view = batch->image();
        const std::int64_t count = batch->count();
        EXPECT_EQ(view.shape, (options.array ? Shape{count, 3, 2} : Shape{count, 2, 3}));
        const auto* floats = reinterpret_cast<const float*>(view.data.data());
        for (std::uint32_t i = 0; i < batch->count(); ++i, ++seen) {
          const auto f = static_cast<float>(batch->samples()[i]);
          EXPECT_EQ(std::vector<float>(floats + i * 6, floats + i * 6 + 6),
                    (std::vector<float>{f, f + 0.5f, -f, 4, 5, 6}));
          EXPECT_EQ(batch->labels()[i], static_cast<std::int64_t>(batch->samples()[i] % 3));
        }
      }
      EXPECT_EQ(seen, 30u);
    }
  }
}

TEST(LoaderArrays, a_wrong_shape_or_dtype_is_damage) {
  Numbers numbers;
  numbers.sample(4).files[0].second = npy({1, 2});
  numbers.sample(5).files[1].second = "abc";
  numbers.sample(6).files[0].second = "\x93NUMPX";
  const dataset::ShardSource& source = numbers.source();
  LoaderOptions options = options_for(Content::arrays, 30);
  options.shuffle = Shuffle::none;
  auto loader = Loader::open(source, options).value();
  EXPECT_EQ(loader->next(soon()).status().to_string(),
            "sample 'k04' (in shard 'all-000000.tar'): npy: expected 2 x 3 of F32, found 2 x 1 of F32");
  options.on_damage = DamagePolicy::skip;
  loader = Loader::open(source, options).value();
  EXPECT_EQ(loader->next(soon()).value()->count(), 28u);
  EXPECT_EQ(loader->skipped()[1].why,
            "sample 'k06' (in shard 'all-000000.tar'): NPY: does not begin with the NPY magic");
  options.component = "bin";
  options.array = ArrayForm{DType::f32, {6}};
  loader = Loader::open(source, options).value();
  EXPECT_EQ(loader->next(soon()).value()->count(), 29u);
  EXPECT_EQ(loader->skipped()[0].why,
            "sample 'k05' (in shard 'all-000000.tar'): bin: expected 24 bytes (6 of F32), found 3");
}

TEST(LoaderFields, are_values_beside_the_content) {
  Numbers numbers;
  const dataset::ShardSource& source = numbers.source();
  LoaderOptions options = options_for(Content::arrays, 7);
  options.fields = {{.component = "json", .name = "n", .kind = FieldKind::integer},
                    {.component = "json", .name = "who", .kind = FieldKind::text},
                    {.component = "csv", .name = "y"},
                    {.component = "txt", .kind = FieldKind::text}};
  auto loader = Loader::open(source, options).value();
  std::uint64_t seen = 0;
  while (auto batch = loader->next(soon()).value()) {
    for (std::uint32_t i = 0; i < batch->count(); ++i, ++seen) {
      const std::uint64_t sample = batch->samples()[i];
      EXPECT_EQ(batch->integers(0)[i], static_cast<std::int64_t>(sample));
      EXPECT_EQ(batch->texts(1)[i], format("w{}", sample));
      EXPECT_EQ(batch->numbers(2)[i], static_cast<double>(sample) * 0.25);
      EXPECT_EQ(batch->texts(3)[i], format("text {}", sample));
    }
  }
  EXPECT_EQ(seen, 30u);
  EXPECT_GT(loader->stats().read.value, 30u * 24);
}

TEST(LoaderFields, a_missing_field_drops_the_sample) {
  Numbers numbers;
  numbers.sample(2).files[2].second = R"({"who": "w2"})";
  numbers.sample(5).files.erase(numbers.sample(5).files.begin() + 2);
  const dataset::ShardSource& source = numbers.source();
  LoaderOptions options = options_for(Content::arrays, 10);
  options.shuffle = Shuffle::none;
  options.on_damage = DamagePolicy::skip;
  options.fields = {{.name = "n"}, {.component = "txt", .kind = FieldKind::text}};
  auto loader = Loader::open(source, options).value();
  auto batch = loader->next(soon()).value();
  ASSERT_EQ(batch->count(), 8u);
  EXPECT_EQ(batch->numbers(0)[2], 3);
  EXPECT_EQ(batch->texts(1)[7], "text 9");
  ASSERT_EQ(loader->skipped().size(), 2u);
  EXPECT_EQ(loader->skipped()[0].why, "sample 'k02' (in shard 'all-000000.tar'): json: no field 'n'");
  EXPECT_EQ(loader->skipped()[1].why, "sample 'k05' (in shard 'all-000000.tar'): has no 'json'");
}

TEST(LoaderContents, rejects_invalid_options) {
  Numbers numbers;
  const dataset::ShardSource& source = numbers.source();
  const auto refusal = [&](LoaderOptions options) {
    return Loader::open(source, options).status().to_string();
  };
  LoaderOptions options = options_for(Content::arrays, 8);
  options.component = "nyp";
  EXPECT_EQ(refusal(options), "loader: split 'all' has no component 'nyp'; did you mean 'npy'?");
  options.component = "bin";
  EXPECT_EQ(refusal(options), "loader: 'bin' has no header with its element type and shape (array)");
  options.array = ArrayForm{DType::f32, {2, 0}};
  EXPECT_EQ(refusal(options), "loader: arrays of 0 x 8 bytes are not between 1 byte and 1 GiB");
  options = options_for(Content::arrays, 8);
  options.fields = {{.name = ""}};
  EXPECT_EQ(refusal(options), "loader: field 0 of 'json' has no name (fields)");
  for (const Content content : {Content::arrays, Content::bytes, Content::tokens}) {
    options = options_for(content, 8);
    options.component = "bin";
    options.cache = 1_MiB;
    EXPECT_EQ(refusal(options), "loader: only decoded images can be cached (cache)");
  }
  options = options_for(Content::tokens, 8);
  options.component = "bin";
  options.fields = {{.name = "n"}};
  options.tokens.length = 8;
  EXPECT_EQ(refusal(options), "loader: sequences of tokens have no fields (fields)");
  options.fields.clear();
  options.tokens.length = 1000;
  EXPECT_EQ(refusal(options), "tokens: 360 tokens do not fill one sequence of 1000 and 1 ahead");
  options.tokens = {.length = 0};
  EXPECT_EQ(refusal(options), "tokens: sequence length 0 is not between 1 and 16777216");
  options.tokens = {.stored = DType::f32};
  EXPECT_EQ(refusal(options), "tokens: stored as F32 (U8, U16, U32, I32 or I64)");
  options.tokens = {.element = DType::u16};
  EXPECT_EQ(refusal(options), "tokens: element type U16 (I32 or I64)");
  options.tokens = {.length = 4, .ahead = 5};
  EXPECT_EQ(refusal(options), "tokens: ahead is 5, more than the sequence length 4");
  options.tokens = {.length = 4, .stored = DType::u8};
  options.component = "txt";
  EXPECT_TRUE(Loader::open(source, options).ok());
}

// Documents of any length, some empty, in shards; and all their tokens in one row.
struct Corpus {
  template <typename T>
  explicit Corpus(std::uint64_t seed, T) {
    std::mt19937 chance(static_cast<unsigned>(seed));
    std::vector<std::vector<TestSample>> shards;
    for (int i = 0; i < 40; ++i) {
      if (i % 12 == 0) shards.emplace_back();
      std::vector<T> document(chance() % (i == 7 ? 2 : 90));
      if (i == 20) document.resize(200000 / sizeof(T) * (sizeof(T) == 2 ? 2 : 1));
      for (T& token : document) all.push_back(token = static_cast<T>(chance() % 30000));
      shards.back().push_back({format("d{:02}", i), 0, {{"bin", bytes_of(document)}}});
    }
    dataset::write_test_dataset(folder.path(), shards);
    source = dataset::LocalShardSource::open(folder.path(), "").value();
  }
  std::vector<std::int64_t> all;
  TempDirectory folder;
  std::unique_ptr<dataset::LocalShardSource> source;
};

template <typename T>
void expect_sequences(DType stored, const TokenOptions& asked) {
  Corpus corpus(1, T{});
  LoaderOptions options = options_for(Content::tokens, 16);
  options.tokens = asked;
  options.tokens.stored = stored;
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::full, Shuffle::by_shard}) {
    options.shuffle = shuffle;
    auto loader = Loader::open(*corpus.source, options).value();
    std::vector<int> seen((corpus.all.size() - asked.ahead) / asked.length);
    while (auto batch = loader->next(soon()).value()) {
      const MutableTensorView rows = batch->image();
      const std::size_t width = asked.length + asked.ahead;
      ASSERT_EQ(rows.shape, (Shape{batch->count(), static_cast<std::int64_t>(width)}));
      for (std::uint32_t i = 0; i < batch->count(); ++i) {
        const std::uint64_t sequence = batch->samples()[i];
        ++seen[sequence];
        std::vector<std::int64_t> row(width);
        for (std::size_t k = 0; k < width; ++k) {
          std::int32_t narrow = 0;
          const std::byte* at = rows.data.data() + (i * width + k) * size_of(asked.element);
          if (asked.element == DType::i32) std::memcpy(&narrow, at, 4);
          if (asked.element == DType::i64) std::memcpy(&row[k], at, 8);
          if (asked.element == DType::i32) row[k] = narrow;
        }
        const auto begin = corpus.all.begin() + static_cast<std::ptrdiff_t>(sequence * asked.length);
        ASSERT_TRUE(std::equal(row.begin(), row.end(), begin)) << sequence;
      }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(seen.size()));
  }
}

TEST(LoaderTokens, are_all_documents_cut_into_sequences) {
  expect_sequences<std::uint16_t>(DType::u16, {.length = 64});
  expect_sequences<std::uint16_t>(DType::u16, {.length = 7, .ahead = 0, .element = DType::i32});
  expect_sequences<std::int32_t>(DType::i32, {.length = 33, .ahead = 33, .element = DType::i32});
  expect_sequences<std::int64_t>(DType::i64, {.length = 1, .ahead = 1});
}

TEST(LoaderTokens, resume_on_another_world_size_with_the_same_sequences) {
  Corpus corpus(2, std::uint16_t{});
  LoaderOptions options = options_for(Content::tokens, 16);
  options.tokens.length = 50;
  options.rank.remainder = Remainder::exact;
  std::vector<int> seen((corpus.all.size() - 1) / 50);
  OrderState half{.seed = 3, .samples = seen.size()};
  const auto read = [&](int world, std::uint64_t batches) {
    const OrderState from = half;
    for (int rank = 0; rank < world; ++rank) {
      options.rank.rank = Rank{rank};
      options.rank.world = WorldSize{world};
      auto loader = Loader::open(*corpus.source, options, from).value();
      for (std::uint64_t i = 0; i < batches; ++i) {
        auto batch = loader->next(soon()).value();
        if (!batch) break;
        for (const std::uint64_t sequence : batch->samples()) ++seen[sequence];
        half = batch->after();
      }
    }
  };
  read(2, seen.size() / 64);
  read(3, seen.size());
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(seen.size()));
}

TEST(LoaderTokens, damage_names_the_document_and_what_is_too_large_is_an_error) {
  TempDirectory folder;
  const std::vector<std::uint32_t> tokens{1, 2, 3, 4, 0x80000000u, 6};
  dataset::write_test_dataset(folder.path(), {{{"a", 0, {{"bin", bytes_of(tokens)}}}}});
  auto source = dataset::LocalShardSource::open(folder.path(), "").value();
  LoaderOptions options = options_for(Content::tokens, 1);
  options.shuffle = Shuffle::none;
  options.tokens = {.length = 2, .stored = DType::u32, .element = DType::i32};
  auto loader = Loader::open(*source, options).value();
  EXPECT_TRUE(loader->next(soon()).ok());
  EXPECT_EQ(loader->next(soon()).status().to_string(),
            "sample 'a' (in shard 'all-000000.tar'): tokens: a token is negative or does not fit I32");
  options.tokens = {.length = 2, .stored = DType::i64};
  loader.reset();
  source.reset();
  dataset::write_test_dataset(folder.path(), {{{"a", 0, {{"bin", "12345"}}}}});
  source = dataset::LocalShardSource::open(folder.path(), "").value();
  EXPECT_EQ(Loader::open(*source, options).status().to_string(),
            "tokens: sample 'a': 5 bytes are not a whole number of I64 tokens");
}

std::string npy_tokens(DType type, const std::string& tokens) {
  return codec::npy_header(type, {static_cast<std::int64_t>(tokens.size() / size_of(type))}) + tokens;
}

// A split of one shard with these files, named `component`.
struct Documents {
  Documents(const std::string& component, const std::vector<std::string>& files) {
    std::vector<TestSample> samples;
    for (const std::string& file : files)
      samples.push_back({format("d{:02}", samples.size()), 0, {{component, file}}});
    dataset::write_test_dataset(folder.path(), {samples});
    source = dataset::LocalShardSource::open(folder.path(), "").value();
  }
  TempDirectory folder;
  std::unique_ptr<dataset::LocalShardSource> source;
};

LoaderOptions two_tokens(std::optional<DType> stored = {}) {
  LoaderOptions options = options_for(Content::tokens, 100);
  options.shuffle = Shuffle::none;
  options.tokens = {.length = 2, .ahead = 0, .stored = stored};
  return options;
}

std::string refusal_of(const Documents& documents, std::optional<DType> stored = {}) {
  return Loader::open(*documents.source, two_tokens(stored)).status().to_string();
}

// All tokens, in order.
std::vector<std::int64_t> tokens_of(const Documents& documents, std::optional<DType> stored = {}) {
  std::vector<std::int64_t> tokens;
  auto loader = Loader::open(*documents.source, two_tokens(stored)).value();
  while (auto batch = loader->next(soon()).value()) {
    const std::span<std::byte> data = batch->image().data;
    const std::size_t before = tokens.size();
    tokens.resize(before + data.size() / sizeof(std::int64_t));
    std::memcpy(tokens.data() + before, data.data(), data.size());
  }
  return tokens;
}

TEST(LoaderTokens, npy_files_are_read_without_their_header) {
  const std::vector<std::int32_t> all{5, 6, 7, 8, 9, 10};
  const std::string first = bytes_of(std::vector<std::int32_t>{5, 6, 7});
  const std::string second = bytes_of(std::vector<std::int32_t>{8, 9, 10});
  const std::vector<std::int64_t> expected(all.begin(), all.end());
  for (const char* name : {"npy", "input_ids.npy"}) {
    const Documents documents(
        name, {npy_tokens(DType::i32, first), npy_tokens(DType::i32, ""), npy_tokens(DType::i32, second)});
    EXPECT_EQ(tokens_of(documents), expected);
    EXPECT_EQ(tokens_of(documents, DType::i32), expected);
  }
  EXPECT_EQ(tokens_of(Documents("npy", {npy_tokens(DType::u8, "\5\6"), npy_tokens(DType::u8, "\7\10")})),
            (std::vector<std::int64_t>{5, 6, 7, 8}));
}

TEST(LoaderTokens, long_npy_documents_are_read_in_parts) {
  std::vector<std::int64_t> all(100'000);
  std::iota(all.begin(), all.end(), 0);
  const Documents documents("npy", {npy_tokens(DType::i64, bytes_of(all))});
  EXPECT_EQ(tokens_of(documents), all);
}

TEST(LoaderTokens, npy_files_with_a_wrong_type_or_shape_are_refused) {
  const std::string eight(16, '\1');
  EXPECT_EQ(refusal_of(Documents("npy", {npy_tokens(DType::i32, eight)}), DType::u16),
            "tokens: sample 'd00': 'npy' is an array of I32, not of U16 (stored)\n"
            "  try: leave out `stored`: .npy files name their type");
  EXPECT_EQ(refusal_of(Documents("mask.npy", {npy_tokens(DType::f32, eight)})),
            "tokens: sample 'd00': 'mask.npy' is an array of F32, not of tokens (U8, U16, U32, I32 or I64, "
            "little-endian)");
  std::string big = npy_tokens(DType::i32, eight);
  big[big.find('<')] = '>';
  EXPECT_EQ(refusal_of(Documents("npy", {big})),
            "tokens: sample 'd00': 'npy' is an array of big-endian I32, not of tokens (U8, U16, U32, I32 or "
            "I64, little-endian)");
  EXPECT_EQ(refusal_of(Documents("npy", {codec::npy_header(DType::i32, {2, 2}) + eight})),
            "tokens: sample 'd00': 'npy' is an array of 2 x 2, tokens have one dimension");
  EXPECT_EQ(refusal_of(Documents("npy", {eight})),
            "tokens: sample 'd00': NPY: does not begin with the NPY magic");
}

TEST(LoaderTokens, an_npy_file_unlike_the_first_is_damage) {
  const std::string first = npy_tokens(DType::i32, std::string(16, '\1'));
  for (const std::size_t size : {std::size_t{16}, std::size_t{400'000}}) {
    const Documents documents("npy", {first, npy_tokens(DType::i64, std::string(size, '\0'))});
    auto loader = Loader::open(*documents.source, two_tokens());
    const Status status = loader.ok() ? (*loader)->next(soon()).status() : loader.status();
    const std::string expected = format(
        "tokens: a .npy file of I64 ({}) is not like the first one of the split: {} I32 after 128 bytes",
        size / 8, size / 4);
    EXPECT_TRUE(status.message().starts_with("sample 'd01'")) << status.message();
    EXPECT_TRUE(status.message().ends_with(expected)) << status.message();
  }
  EXPECT_EQ(refusal_of(Documents("npy", {first, "short"})),
            "tokens: sample 'd01': 5 bytes are not a whole number of I32 tokens after a header of 128 bytes");
}

TEST(LoaderTokens, files_of_a_known_format_are_not_tokens) {
  EXPECT_EQ(refusal_of(Documents("bin", {npy_tokens(DType::u16, std::string(16, '\1'))})),
            "tokens: 'bin' of the first document is a .npy array, not tokens (component)\n"
            "  try: files named .npy are read as arrays of tokens");
  EXPECT_EQ(refusal_of(Documents("jpg", {"\xFF\xD8\xFF\xE0" + std::string(60, '\1')})),
            "tokens: 'jpg' of the first document is a JPEG image, not tokens (component)\n"
            "  try: name the files that hold tokens");
}

// A source that counts the calls of read().
class CountingSource final : public dataset::ShardSource {
 public:
  explicit CountingSource(const dataset::ShardSource& source) : source_(source) {}
  const dataset::Manifest& manifest() const override { return source_.manifest(); }
  const dataset::SplitInfo& split() const override { return source_.split(); }
  const dataset::SampleTable& samples() const override { return source_.samples(); }
  Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const override {
    ++reads;
    return source_.read(shard, offset, out);
  }
  Result<std::span<const std::byte>> map(std::uint32_t shard) const override { return source_.map(shard); }
  mutable std::atomic<int> reads{0};

 private:
  const dataset::ShardSource& source_;
};

TEST(LoaderReads, coalesce_adjacent_files) {
  Numbers numbers;
  CountingSource source(numbers.source());
  LoaderOptions options = options_for(Content::arrays, 30);
  options.shuffle = Shuffle::none;
  options.threads = 1;
  options.prefetch = 1;
  options.array = ArrayForm{DType::f32, {2, 3}};
  options.fields = {{.name = "n"}, {.component = "txt", .kind = FieldKind::text}};
  auto loader = Loader::open(source, options).value();
  EXPECT_EQ(loader->next(soon()).value()->count(), 30u);
  // 90 files in three shards, in two pieces.
  EXPECT_LE(source.reads, 5);
}

}  // namespace
}  // namespace stoker::loader
