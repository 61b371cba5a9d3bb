#include "checkpoint/save/arriving.h"

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

TEST(Arriving, what_nobody_fills_is_there) {
  const Arriving memory;
  EXPECT_TRUE(memory.wait(1 << 20, Deadline::after(0s)));
}

TEST(Arriving, tells_at_the_deadline_what_is_there) {
  Arriving memory;
  memory.restart();
  memory.reached(10);
  memory.reached(5);
  EXPECT_TRUE(memory.wait(10, Deadline::after(0s)));
  EXPECT_FALSE(memory.wait(11, Deadline::after(0s)));
  memory.finish();
  EXPECT_TRUE(memory.wait(~std::uint64_t{0}, Deadline::after(0s)));
}

// Writes `bytes` behind a header; a thread of its own, since what it calls can be stopped.
Result<std::vector<std::uint32_t>> written(const Path& file, const ShardData& data) {
  std::promise<Result<std::vector<std::uint32_t>>> done;
  const std::string header(4096, 'h');
  const Thread thread([&](const StopToken& stop) { done.set_value(write_shard(file, header, data, stop)); });
  return done.get_future().get();
}

TEST(Arriving, a_file_is_begun_while_its_data_comes_and_holds_all_of_it) {
  const TempDirectory folder;
  constexpr std::size_t kBytes = (40 << 20) + 100;
  const PageBuffer buffer = std::move(*PageBuffer::create(kBytes));
  Arriving arriving;
  arriving.restart();
  const Thread filling([&](const StopToken&) {
    while (!path_exists(folder / "f.part")) RealClock().sleep(1ms);
    for (std::size_t at = 0; at < kBytes; at += 1 << 20) {
      const std::size_t n = std::min<std::size_t>(1 << 20, kBytes - at);
      std::memset(buffer.bytes().data() + at, static_cast<int>(at >> 20) + 1, n);
      arriving.reached(at + n);
    }
  });
  const auto sums = written(folder / "f", {buffer.bytes().first(kBytes), arriving, Deadline::after(60s)});
  ASSERT_TRUE(sums.ok()) << sums.status().to_string();
  const auto text = read_file(folder / "f", 64_MiB);
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  ASSERT_EQ(text->size(), 4096 + kBytes);
  EXPECT_EQ(std::memcmp(text->data() + 4096, buffer.bytes().data(), kBytes), 0);
  ASSERT_EQ(sums->size(), 11u);
  EXPECT_EQ((*sums)[3], crc32c(std::string_view(*text).substr(3 * kBlockBytes, kBlockBytes)));
}

TEST(Arriving, data_that_does_not_come_leaves_no_file) {
  const TempDirectory folder;
  const PageBuffer buffer = std::move(*PageBuffer::create(100));
  Arriving arriving;
  arriving.restart();
  arriving.reached(50);
  const auto sums = written(folder / "f", {buffer.bytes().first(100), arriving, Deadline::after(5ms)});
  EXPECT_EQ(sums.status().to_string(),
            format("{}: what it shall hold was not copied in time", (folder / "f.part").string()));
  EXPECT_EQ(list_directory(folder.path())->size(), 0u);
}

}  // namespace
}  // namespace stoker::checkpoint
