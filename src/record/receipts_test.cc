#include "record/receipts.h"

#include <csignal>
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::record {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(Receipts, are_read_back_in_order) {
  TempDirectory box;
  auto writer = ReceiptWriter::create(box / "receipts-0000.bin");
  const std::uint64_t first[] = {7, 1ull << 40};
  ASSERT_TRUE(writer->append(0, 0, first).ok());
  ASSERT_TRUE(writer->append(1, 5, {}).ok());
  const auto log = read_receipts(box / "receipts-0000.bin");
  ASSERT_THAT(log->receipts, SizeIs(2));
  EXPECT_THAT(log->receipts[0].samples, ElementsAre(7, 1ull << 40));
  EXPECT_EQ(log->receipts[1].epoch, 1u);
  EXPECT_EQ(log->receipts[1].step, 5u);
  EXPECT_FALSE(log->torn);
}

TEST(Receipts, every_truncated_file_reads_as_its_complete_steps) {
  TempDirectory box;
  const Path file = box / "receipts-0000.bin";
  {
    auto writer = ReceiptWriter::create(file);
    const std::uint64_t samples[] = {1, 2};
    ASSERT_TRUE(writer->append(0, 0, samples).ok());
    ASSERT_TRUE(writer->append(0, 1, samples).ok());
  }
  const std::string whole = *read_file(file);
  ASSERT_EQ(whole.size(), 56u);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    ASSERT_TRUE(write_file(file, whole.substr(0, cut)).ok());
    const auto log = read_receipts(file);
    EXPECT_EQ(log->receipts.size(), cut / 28);
    EXPECT_EQ(log->torn, cut % 28 != 0);
  }
}

TEST(Receipts, reports_an_impossible_count) {
  TempDirectory box;
  const std::string file = (box / "receipts-0000.bin").string();
  ASSERT_TRUE(write_file(file, std::string(12, '\xff')).ok());
  EXPECT_EQ(read_receipts(file).status().message(),
            file + ": 4 294 967 295 samples in one step at byte 0, at most 16777216 are possible");
}

TEST(Receipts, nothing_is_written_after_a_failed_receipt) {
  TempDirectory box;
  const Path file = box / "receipts-0000.bin";
  auto writer = ReceiptWriter::create(file);
  const std::uint64_t samples[] = {1, 2};
  ASSERT_TRUE(writer->append(0, 0, samples).ok());
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 40;
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Status written = writer->append(0, 1, samples);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(written.ok());
  EXPECT_TRUE(writer->append(0, 2, samples).ok());
  const auto log = read_receipts(file);
  EXPECT_THAT(log->receipts, SizeIs(1));
  EXPECT_TRUE(log->torn);
}

TEST(Receipts, one_file_has_one_writer) {
  TempDirectory box;
  const std::string file = (box / "receipts-0000.bin").string();
  ASSERT_TRUE(ReceiptWriter::create(file).ok());
  EXPECT_EQ(ReceiptWriter::create(file).status().message(), file + ": file exists");
}

}  // namespace
}  // namespace stoker::record
