#include "checkpoint/save/copy_progress.h"

#include <cstring>
#include <future>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/sandbox.h"
#include "checkpoint/save/page_buffer.h"
#include "checkpoint/save/shard_writer.h"

namespace stoker::checkpoint {
namespace {

TEST(CopyProgress, is_complete_for_an_empty_copy) {
  const CopyProgress memory;
  EXPECT_TRUE(memory.wait(1 << 20, Deadline::after(0s)));
}

TEST(CopyProgress, wait_fails_at_the_deadline) {
  CopyProgress memory;
  memory.restart();
  memory.advance(10);
  memory.advance(5);
  EXPECT_TRUE(memory.wait(10, Deadline::after(0s)));
  EXPECT_FALSE(memory.wait(11, Deadline::after(0s)));
  memory.finish();
  EXPECT_TRUE(memory.wait(~std::uint64_t{0}, Deadline::after(0s)));
}

// Writes `bytes` after a header, on its own thread, because the call takes a stop token.
Result<std::vector<std::uint32_t>> written(const Path& file, const ShardData& data) {
  std::promise<Result<std::vector<std::uint32_t>>> done;
  const std::string header(4096, 'h');
  const Thread thread([&](const StopToken& stop) { done.set_value(write_shard(file, header, data, stop)); });
  return done.get_future().get();
}

TEST(CopyProgress, a_file_is_written_while_its_data_is_copied) {
  const TempDirectory folder;
  constexpr std::size_t kBytes = (40 << 20) + 100;
  const PageBuffer buffer = std::move(*PageBuffer::create(kBytes));
  CopyProgress copy_progress;
  copy_progress.restart();
  const Thread filling([&](const StopToken&) {
    while (!path_exists(folder / "f.part")) RealClock().sleep(1ms);
    for (std::size_t at = 0; at < kBytes; at += 1 << 20) {
      const std::size_t n = std::min<std::size_t>(1 << 20, kBytes - at);
      std::memset(buffer.bytes().data() + at, static_cast<int>(at >> 20) + 1, n);
      copy_progress.advance(at + n);
    }
  });
  const auto sums =
      written(folder / "f", {buffer.bytes().first(kBytes), copy_progress, Deadline::after(60s)});
  ASSERT_TRUE(sums.ok()) << sums.status().to_string();
  const auto text = read_file(folder / "f", 64_MiB);
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  ASSERT_EQ(text->size(), 4096 + kBytes);
  EXPECT_EQ(std::memcmp(text->data() + 4096, buffer.bytes().data(), kBytes), 0);
  ASSERT_EQ(sums->size(), 11u);
  EXPECT_EQ((*sums)[3], crc32c(std::string_view(*text).substr(3 * kBlockBytes, kBlockBytes)));
}

TEST(CopyProgress, missing_data_leaves_no_file) {
  const TempDirectory folder;
  const PageBuffer buffer = std::move(*PageBuffer::create(100));
  CopyProgress copy_progress;
  copy_progress.restart();
  copy_progress.advance(50);
  const auto sums = written(folder / "f", {buffer.bytes().first(100), copy_progress, Deadline::after(5ms)});
  EXPECT_EQ(sums.status().to_string(),
            format("{}: the tensors were not copied in time", (folder / "f.part").string()));
  EXPECT_EQ(list_directory(folder.path())->size(), 0u);
}

}  // namespace
}  // namespace stoker::checkpoint
