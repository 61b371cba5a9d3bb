#include "archive/tfrecord.h"

#include <cstring>

#include <gmock/gmock.h>

#include "base/hash.h"
#include "dataset/test_dataset.h"

namespace stoker::archive {
namespace {

class Memory final : public ByteSink {
 public:
  Status write(std::span<const std::byte> data) override {
    text.append(reinterpret_cast<const char*>(data.data()), data.size());
    return {};
  }
  std::string text;
};

void add(TfRecordWriter& writer, const ExampleHead& head,
         const std::vector<std::pair<std::string_view, std::string>>& files) {
  std::vector<ExampleFile> sizes;
  for (const auto& [name, content] : files) sizes.push_back({name, content.size()});
  const std::uint64_t before = writer.position();
  ASSERT_TRUE(writer.begin(head, sizes).ok());
  for (const auto& [name, content] : files) {
    ASSERT_TRUE(writer.begin_file().ok());
    ASSERT_TRUE(writer.append(dataset::bytes_of(content), crc32c(dataset::bytes_of(content))).ok());
  }
  ASSERT_TRUE(writer.end().ok());
  EXPECT_EQ(writer.position() - before, tfrecord_bytes(head, sizes));
}

std::string small_file() {
  Memory memory;
  TfRecordWriter writer(memory);
  add(writer, {.key = "cat/1", .label = 3}, {{"jpg", "abc"}, {"json", "{}"}});
  add(writer, {.key = "cat/2", .label = std::nullopt}, {{"jpg", std::string(200, 'x')}});
  return memory.text;
}

Result<std::vector<ExampleRecord>> read(const std::string& text) {
  TfRecordReader reader(
      [&text](std::uint64_t at, std::span<std::byte> out) -> Status {
        STOKER_CHECK(at <= text.size() && out.size() <= text.size() - at);
        std::memcpy(out.data(), text.data() + at, out.size());
        return {};
      },
      text.size(), "x.tfrecord");
  std::vector<ExampleRecord> records;
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(record, reader.next());
    if (!record) return records;
    records.push_back(std::move(*record));
  }
}

TEST(TfRecord, writes_an_example_as_protocol_buffers_encode_it) {
  Memory memory;
  TfRecordWriter writer(memory);
  add(writer, {.key = "k", .label = 300}, {{"jpg", "ab"}});
  const std::string_view message = std::string_view(memory.text).substr(12, memory.text.size() - 16);
  EXPECT_EQ(message, std::string_view("\x0A\x30"
                                      "\x0A\x10\x0A\x07__key__\x12\x05\x0A\x03\x0A\x01k"
                                      "\x0A\x0D\x0A\x03"
                                      "cls\x12\x06\x1A\x04\x0A\x02\xAC\x02"
                                      "\x0A\x0D\x0A\x03jpg\x12\x06\x0A\x04\x0A\x02"
                                      "ab",
                                      50));
}

TEST(TfRecord, reads_written_records_with_their_offsets) {
  const std::string text = small_file();
  const auto records = read(text);
  ASSERT_TRUE(records.ok()) << records.status().message();
  ASSERT_EQ(records->size(), 2u);
  const ExampleRecord& first = (*records)[0];
  EXPECT_EQ(first.key, "cat/1");
  EXPECT_EQ(first.label, 3);
  ASSERT_EQ(first.files.size(), 2u);
  EXPECT_EQ(first.files[0].name, "jpg");
  EXPECT_EQ(text.substr(first.files[0].offset, first.files[0].bytes), "abc");
  EXPECT_EQ(text.substr(first.files[1].offset, first.files[1].bytes), "{}");
  const ExampleRecord& second = (*records)[1];
  EXPECT_EQ(second.label, std::nullopt);
  EXPECT_EQ(second.offset, first.bytes);
  EXPECT_EQ(second.offset + second.bytes, text.size());
}

// A field of a message: a tag, a length below 16384 in two bytes, and that many bytes.
std::string field(int tag, std::string_view content) {
  const std::size_t size = content.size();
  return std::string{static_cast<char>(tag), static_cast<char>(size | 128), static_cast<char>(size >> 7)} +
         std::string(content);
}

// A record whose Example has these entries in its map.
std::string record_of(const std::vector<std::string>& entries) {
  std::string features;
  for (const std::string& entry : entries) features += field(0x0A, entry);
  const std::string message = field(0x0A, features);
  std::string text(8, '\0');
  text[0] = static_cast<char>(message.size());
  text[1] = static_cast<char>(message.size() >> 8);
  const std::uint32_t crc = masked_crc(crc32c(text));
  text.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  return text + message + "????";
}

TEST(TfRecord, reads_examples_as_other_tools_write_them) {
  const std::string packed = field(0x12, field(0x1A, field(0x0A, "\x07")));
  const std::string not_packed = field(0x12, field(0x1A, std::string("\x08\x96\x01")));
  const std::string bytes = field(0x12, field(0x0A, field(0x0A, "abc")));
  const std::string fractions = field(0x12, field(0x12, field(0x0A, "\1\2\3\4")));
  const std::string several = field(0x12, field(0x1A, field(0x0A, "\x07\x08")));
  const std::string two_texts = field(0x12, field(0x0A, field(0x0A, "a") + field(0x0A, "b")));
  const std::string text =
      record_of({field(0x0A, "packed") + packed, not_packed + field(0x0A, "not packed"),
                 field(0x0A, "image") + bytes, field(0x0A, "box") + fractions, field(0x0A, "all") + several,
                 field(0x0A, "words") + two_texts, field(0x0A, "none") + field(0x12, ""),
                 field(0x0A, "no number") + field(0x12, field(0x1A, "")), field(0x0A, "nothing")});
  const auto records = read(text);
  ASSERT_TRUE(records.ok()) << records.status().message();
  const ExampleRecord& record = (*records)[0];
  EXPECT_EQ(record.key, "");
  EXPECT_EQ(record.label, std::nullopt);
  ASSERT_EQ(record.files.size(), 1u);
  EXPECT_EQ(record.files[0].name, "image");
  EXPECT_EQ(text.substr(record.files[0].offset, record.files[0].bytes), "abc");
  ASSERT_EQ(record.numbers.size(), 2u);
  EXPECT_EQ(record.numbers[0].name, "packed");
  EXPECT_EQ(record.numbers[0].value, 7);
  EXPECT_EQ(record.numbers[1].name, "not packed");
  EXPECT_EQ(record.numbers[1].value, 150);
}

TEST(TfRecord, lists_unsupported_features) {
  const auto message = [](const std::string& entry) {
    return std::string(read(record_of({entry})).status().message());
  };
  const std::string torn = "x.tfrecord: byte 0: a feature that is not a list of bytes or numbers";
  EXPECT_EQ(message(field(0x1A, "x")), torn);
  EXPECT_EQ(message(field(0x12, field(0x22, "x"))), torn);
  EXPECT_EQ(message(field(0x12, field(0x0A, field(0x12, "x")))),
            "x.tfrecord: byte 0: a list of bytes that holds something else");
  EXPECT_EQ(message(field(0x12, field(0x1A, field(0x12, "x")))),
            "x.tfrecord: byte 0: a list of numbers that holds something else");
}

TEST(TfRecord, a_label_may_be_any_number) {
  for (const std::int64_t label :
       {std::int64_t{0}, std::int64_t{127}, std::int64_t{128}, INT64_MAX, INT64_MIN}) {
    Memory memory;
    TfRecordWriter writer(memory);
    add(writer, {.key = "k", .label = label}, {{"jpg", "a"}});
    const auto records = read(memory.text);
    ASSERT_TRUE(records.ok());
    EXPECT_EQ((*records)[0].label, label);
  }
}

TEST(TfRecord, refuses_every_truncation) {
  const std::string whole = small_file();
  const std::uint64_t first = (*read(whole))[0].bytes;
  for (std::size_t length = 1; length < whole.size(); ++length) {
    EXPECT_EQ(read(whole.substr(0, length)).ok(), length == first) << length;
  }
}

TEST(TfRecord, survives_every_flipped_bit) {
  const std::string whole = small_file();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = whole;
      text[i] = static_cast<char>(text[i] ^ 1 << bit);
      const auto records = read(text);
      EXPECT_TRUE(i >= 12 || !records.ok())
          << i;  // the length is guarded by its CRC, payloads are the index's
    }
  }
}

TEST(TfRecord, reports_errors_with_their_offsets) {
  std::string text = small_file();
  EXPECT_EQ(read(text.substr(0, 10)).error().message(), "x.tfrecord: byte 0: a truncated record");
  EXPECT_EQ(read(text.substr(0, 40)).error().message(),
            "x.tfrecord: byte 0: a record reaches beyond the end");
  text[9] = static_cast<char>(text[9] ^ 1);
  EXPECT_EQ(read(text).error().message(), "x.tfrecord: byte 0: the length's CRC is wrong");
  text = small_file();
  text[12] = 'x';
  EXPECT_EQ(read(text).error().message(), "x.tfrecord: byte 0: is not a tf.train.Example");
}

TEST(TfRecord, rejects_a_file_compressed_with_zlib) {
  for (const std::string_view second : {"\x01", "\x5E", "\x9C", "\xDA"}) {
    const std::string text = "x" + std::string(second) + std::string(20, '\x7F');
    EXPECT_EQ(read(text).status().to_string(),
              "x.tfrecord: looks compressed with ZLIB, which is not supported (gzip and zstd are)");
    EXPECT_EQ(read(text).status().code(), Code::invalid);
    // The length that a damaged plain one may have.
    const std::string plain = "x" + std::string(second) + std::string(6, '\0') + std::string(20, '\x7F');
    EXPECT_EQ(read(plain).error().message(), "x.tfrecord: byte 0: the length's CRC is wrong");
  }
  EXPECT_EQ(read("x\x9D" + std::string(20, '\x7F')).error().message(),
            "x.tfrecord: byte 0: the length's CRC is wrong");
}

// Whether each record of a file that comes by in blocks of that size has the CRC behind it that it should
// have.
std::vector<bool> checked(const std::string& text, std::size_t block) {
  std::vector<bool> hold;
  const auto records = read(text);
  for (const ExampleRecord& record : records.ok() ? *records : std::vector<ExampleRecord>()) {
    TfRecordCheck check(record.offset, record.bytes);
    std::size_t at = 0;
    while (!check.update(at, dataset::bytes_of(text).subspan(at, std::min(block, text.size() - at))))
      at += block;
    EXPECT_LT(at, record.offset + record.bytes);
    EXPECT_GE(at + block, record.offset + record.bytes);
    hold.push_back(check.is_valid());
  }
  return hold;
}

TEST(TfRecordCheck, is_valid_for_any_blocks_and_detects_every_flip) {
  const std::string whole = small_file();
  const std::uint64_t first = (*read(whole))[0].bytes;
  for (std::size_t block = 1; block <= whole.size() + 1; ++block)
    EXPECT_EQ(checked(whole, block), std::vector<bool>({true, true})) << block;
  for (std::size_t at = 12; at < whole.size(); ++at) {
    std::string text = whole;
    text[at] = static_cast<char>(text[at] ^ 1);
    if (!read(text).ok() || read(text)->size() != 2) continue;  // what the reader sees
    const bool is_first = at < first;
    EXPECT_EQ(checked(text, 7), std::vector<bool>({!is_first, is_first})) << at;
  }
}

TEST(TfRecord, rejects_a_sample_larger_than_a_record) {
  Memory memory;
  TfRecordWriter writer(memory);
  const ExampleFile file{"bin", kTfRecordLimit};
  EXPECT_EQ(writer.begin({.key = "k", .label = std::nullopt}, std::span(&file, 1)).message(),
            "sample 'k': has 2147483694 bytes (a record may have 2 GiB)");
}

}  // namespace
}  // namespace stoker::archive
