#include "stage/broadcast/hashed_stream.h"

#include <gtest/gtest.h>

namespace stoker::stage {
namespace {

// Bytes in memory, of a source and as kept.
class MemoryStream final : public HashedStream {
 public:
  explicit MemoryStream(std::string source) : HashedStream(source.size()), source_(std::move(source)) {
    kept.resize(source_.size());
  }
  std::string kept;
  bool is_full = false;
  int times_kept = 0;

 protected:
  Status read_source(std::uint64_t offset, std::span<std::byte> out) override {
    std::ranges::copy(std::as_bytes(std::span(source_)).subspan(offset, out.size()), out.begin());
    return {};
  }
  Status keep(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (is_full) return no_space("the disk is full");
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(kept)).subspan(offset).begin());
    return {};
  }
  void is_kept(std::uint64_t, std::span<const std::byte>) override { times_kept += 1; }
  Status read_kept(std::uint64_t offset, std::span<std::byte> out) override {
    std::ranges::copy(std::as_bytes(std::span(kept)).subspan(offset, out.size()), out.begin());
    return {};
  }

 private:
  std::string source_;
};

std::string text_of(std::size_t bytes) {
  std::string text(bytes, 'x');
  for (std::size_t i = 0; i < bytes; i += 101) text[i] = static_cast<char>(i / 101);
  return text;
}

// Sends all pieces, as a swarm does.
Status send_all(MemoryStream& from, MemoryStream& to) {
  constexpr std::uint64_t kFrame = 4u << 20;
  for (std::uint32_t piece = 0; piece < from.pieces().size(); ++piece) {
    for (std::uint64_t offset = 0; offset < from.pieces()[piece].bytes; offset += kFrame) {
      std::vector<std::byte> frame(std::min(kFrame, from.pieces()[piece].bytes - offset));
      STOKER_RETURN_IF_ERROR(from.read(piece, offset, frame));
      STOKER_RETURN_IF_ERROR(to.write(piece, offset, frame));
    }
  }
  return {};
}

TEST(HashedStream, what_one_end_reads_the_other_keeps) {
  for (const std::size_t bytes : {0u, 1u, (4u << 20) - 32, (4u << 20) - 31, 9'000'000u}) {
    MemoryStream from(text_of(bytes));
    MemoryStream to(std::string(bytes, ' '));
    ASSERT_TRUE(from.keep_all().ok());
    ASSERT_TRUE(send_all(from, to).ok());
    EXPECT_EQ(to.kept, text_of(bytes));
    EXPECT_EQ(to.received_bytes(), bytes);
    EXPECT_EQ(from.received_bytes(), 0u);
    // A second copy of the same bytes does not count.
    const int times = to.times_kept;
    ASSERT_TRUE(send_all(from, to).ok());
    EXPECT_EQ(to.times_kept, times);
    EXPECT_EQ(to.kept_bytes(), bytes);
  }
}

TEST(HashedStream, a_damaged_disk_of_a_peer_is_found) {
  MemoryStream from(text_of(5'000'000));
  MemoryStream to(std::string(5'000'000, ' '));
  ASSERT_TRUE(from.keep_all().ok());
  from.kept[4'500'000] ^= 1;
  const Status status = send_all(from, to);
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_EQ(status.message(), "block 1 has a different hash");
  EXPECT_TRUE(to.problem().ok());  // a different peer may have it
  EXPECT_EQ(to.kept_bytes(), (4u << 20) - 32);
}

TEST(HashedStream, parts_of_blocks_are_refused) {
  MemoryStream from(text_of(100));
  ASSERT_TRUE(from.keep_all().ok());
  std::vector<std::byte> frame(132);
  ASSERT_TRUE(from.read(0, 0, frame).ok());
  MemoryStream to(std::string(100, ' '));
  EXPECT_EQ(to.write(0, 0, std::span(frame).first(131)).code(), Code::corrupt);
  EXPECT_EQ(to.write(0, 1, frame).code(), Code::corrupt);
  EXPECT_EQ(to.read(0, 0, frame).code(), Code::not_found);
  EXPECT_TRUE(to.write(0, 0, frame).ok());
}

TEST(HashedStream, a_full_disk_ends_the_broadcast) {
  MemoryStream stream(text_of(100));
  stream.is_full = true;
  EXPECT_EQ(stream.fetch(0).code(), Code::corrupt);
  EXPECT_EQ(stream.problem().code(), Code::no_space);
}

}  // namespace
}  // namespace stoker::stage
