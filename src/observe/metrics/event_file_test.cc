#include "observe/metrics/event_file.h"

#include <bit>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "observe/metrics/test_reading.h"

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string little(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string crc_of(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return little(static_cast<std::uint32_t>(((crc >> 15) | (crc << 17)) + 0xa282ead8u), 4);
}

std::string framed(std::string_view event) {
  const std::string length = little(event.size(), 8);
  return length + crc_of(length) + std::string(event) + crc_of(event);
}

std::string message(int field, std::string_view bytes) {
  return std::string(1, static_cast<char>(field << 3 | 2)) + static_cast<char>(bytes.size()) +
         std::string(bytes);
}

std::string event(int step, std::string_view value) {
  return "\x09" + little(std::bit_cast<std::uint64_t>(1763719411.5), 8) + "\x10" + static_cast<char>(step) +
         message(5, message(1, value));
}

std::string scalar(std::string_view tag, float value) {
  return message(1, tag) + "\x15" + little(std::bit_cast<std::uint32_t>(value), 4);
}

const std::string kVersion = framed(
    "\x1a\x0d"
    "brain.Event:2");

Reading read(std::string_view bytes, std::size_t piece = 1u << 20) {
  return read_in_pieces<EventFileReader>(bytes, piece);
}

TEST(EventFileTest, scalars_of_both_forms_are_read_in_any_pieces) {
  const std::string tensor = message(1, "acc") + message(8, message(5, little(0x3f000000, 4))) +
                             message(9, message(1, message(1, "scalars")));
  const std::string file = kVersion + framed(event(7, scalar("loss", 0.25))) + framed(event(8, tensor)) +
                           framed(event(9, scalar("loss", std::nanf(""))));
  for (const std::size_t piece : {1u, 13u, 100000u}) {
    EXPECT_THAT(read(file, piece).points,
                ElementsAre("1763719411.500000,7,0.25,loss\n", "1763719411.500000,8,0.5,acc\n",
                            "1763719411.500000,9,nan,loss\n"));
  }
}

TEST(EventFileTest, a_truncated_last_record_is_not_an_error) {
  const std::string file = kVersion + framed(event(7, scalar("loss", 0.25)));
  for (std::size_t size = 0; size < file.size(); ++size) {
    const Reading reading = read(file.substr(0, size));
    EXPECT_TRUE(reading.status.ok());
    EXPECT_TRUE(reading.points.empty());
  }
}

TEST(EventFileTest, a_flipped_byte_is_reported_once) {
  const std::string good = framed(event(7, scalar("loss", 0.25)));
  const std::string file = kVersion + good + good;
  for (std::size_t at = kVersion.size(); at < kVersion.size() + good.size(); ++at) {
    std::string bad = file;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    const Reading reading = read(bad);
    EXPECT_THAT(std::string(reading.status.message()), HasSubstr("a record at byte 31 is damaged"));
    EXPECT_TRUE(reading.points.empty());
  }
}

TEST(EventFileTest, large_records_and_other_plugins_are_skipped) {
  const std::string image(1u << 20, 'x');
  const std::string other =
      message(1, "h") + message(8, message(5, "1234")) + message(9, message(1, message(1, "hparams")));
  const std::string file =
      kVersion + framed(image) + framed(event(1, other)) + framed(event(2, scalar("loss", 1)));
  for (const std::size_t piece : {1000u, 1u << 22})
    EXPECT_THAT(read(file, piece).points, ElementsAre("1763719411.500000,2,1,loss\n"));
}

}  // namespace
}  // namespace stoker::observe
