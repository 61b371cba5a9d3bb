#include "observe/metrics/wandb_file.h"

#include <algorithm>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hashes/crc32.h"
#include "observe/metrics/test_reading.h"

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kFileHead("\x3a\x57\x26\x42\xe1\xbe\x00", 7);

std::string bytes_of(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}

std::string part(int field, std::string_view bytes) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

std::string item(std::string_view key, std::string_view json) {
  return part(1, part(1, key) + part(16, json));
}

/// A record of history, framed in blocks of LevelDB's log as wandb writes them.
void append_record_to(std::string& file, std::string_view record) {
  bool is_first = true;
  do {
    std::size_t left = 32768 - file.size() % 32768;
    if (left < 7) file.append(left, '\0'), left = 32768;
    const std::size_t size = std::min(record.size(), left - 7);
    const bool is_last = size == record.size();
    const int type = is_first && is_last ? 1 : is_first ? 2 : is_last ? 4 : 3;
    const std::string checked =
        bytes_of(static_cast<std::uint64_t>(type), 1) + std::string(record.substr(0, size));
    file += bytes_of(crc32(std::as_bytes(std::span(checked))), 4) + bytes_of(size, 2) + checked;
    record.remove_prefix(size);
    is_first = false;
  } while (!record.empty());
}

std::string history(int step, std::string_view items) {
  return part(2, std::string(items) + part(2, "\x08" + varint(static_cast<std::uint64_t>(step))));
}

Reading read_wandb(std::string_view bytes, std::size_t piece = 1u << 22) {
  return read_in_pieces<WandbFileReader>(bytes, piece);
}

TEST(WandbFileTest, numbers_of_the_history_are_read_in_any_pieces) {
  std::string file(kFileHead);
  append_record_to(file, part(17, "a run"));
  append_record_to(file, history(7, item("loss", "0.5") + item("name", "\"text\"") + item("acc", "NaN") +
                                        item("_timestamp", "1763719411.5") + item("_step", "7")));
  append_record_to(
      file, history(8, item("loss", "0.25") + part(1, part(2, "val") + part(2, "loss") + part(16, "1"))));
  for (const std::size_t piece : {1u, 100u, 1u << 20}) {
    EXPECT_THAT(read_wandb(file, piece).points,
                ElementsAre("1763719411.500000,7,0.5,loss\n", "1763719411.500000,7,nan,acc\n",
                            ",8,0.25,loss\n", ",8,1,val.loss\n"));
  }
}

TEST(WandbFileTest, records_cross_blocks_and_large_ones_are_skipped) {
  std::string file(kFileHead);
  append_record_to(file, history(1, item("text", std::string(70'000, 'x')) + item("a", "1")));
  append_record_to(file, part(13, std::string(3'000'000, 'x')));
  for (int step = 2; step < 3000; ++step) append_record_to(file, history(step, item("a", "1")));
  EXPECT_THAT(read_wandb(file, 1000).points, SizeIs(2999));
}

TEST(WandbFileTest, a_truncated_last_record_is_not_an_error) {
  std::string file(kFileHead);
  append_record_to(file, history(1, item("a", "1")));
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_TRUE(read_wandb(file.substr(0, size)).status.ok());
    EXPECT_THAT(read_wandb(file.substr(0, size)).points, SizeIs(0));
  }
}

TEST(WandbFileTest, a_flipped_byte_is_reported) {
  std::string file(kFileHead);
  append_record_to(file, history(1, item("a", "1")));
  const std::size_t end = file.size();
  append_record_to(file, history(2, item("a", "1")));
  for (std::size_t at = kFileHead.size(); at < end; ++at) {
    if (at == kFileHead.size() + 4 || at == kFileHead.size() + 5)
      continue;  // a length may reach beyond the end
    std::string bad = file;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    EXPECT_THAT(std::string(read_wandb(bad).status.message()), HasSubstr("a record at byte 7 is damaged"))
        << at;
  }
  EXPECT_THAT(std::string(read_wandb("something else").status.message()), HasSubstr("not a file of W&B"));
}

}  // namespace
}  // namespace stoker::observe
