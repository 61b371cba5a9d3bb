#include "data/pack/shard/read_ahead.h"

#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace stoker::data {
namespace {

// Files "0.bin", "1.bin", ... that hold their own name. One may be missing, or wait until another was read.
class NumberedFiles final : public SourceTree {
 public:
  std::optional<std::uint64_t> missing;
  std::optional<std::uint64_t> waiting;
  std::uint64_t waits_for = 0;

  Result<Listing> list(const std::string&) const override { return Listing(); }
  Status read(std::string_view, const SourceFile& file, FileBytes& into) const override {
    if (file.place == missing) return not_found("{}: is gone", file.name);
    MutexLock lock(mutex_);
    while (file.place == waiting && !read_.contains(waits_for))
      changed_.wait(mutex_, Deadline::after(std::chrono::seconds(1)));
    read_.insert(file.place);
    changed_.notify_all();
    std::memcpy(into.resize(file.name.size()).data(), file.name.data(), file.name.size());
    return {};
  }
  Status read_part(std::string_view, const SourceFile&, std::uint64_t, std::span<std::byte>) const override {
    return internal("not asked for");
  }
  std::string shown(std::string_view path) const override { return std::string(path); }

  std::size_t count_read() const {
    const MutexLock lock(mutex_);
    return read_.size();
  }

 private:
  mutable Mutex mutex_;
  mutable Condition changed_;
  mutable std::set<std::uint64_t> read_ GUARDED_BY(mutex_);
};

// A shard of `count` samples of one file each, said to be of `bytes`.
class ReadAheadTest : public ::testing::Test {
 protected:
  void make(std::uint32_t count, std::uint64_t bytes) {
    auto tree = std::make_unique<NumberedFiles>();
    tree_ = tree.get();
    plan_.source.tree = std::move(tree);
    plan_.source.folders.resize(1);
    for (std::uint32_t i = 0; i < count; ++i) {
      plan_.source.folders[0].files.push_back(
          {.name = std::to_string(i) + ".bin", .bytes = bytes, .place = i});
      samples_.push_back({.folder = 0, .first = i, .files = 1, .label = -1});
    }
    ahead_ = std::make_unique<ReadAhead>(plan_, samples_, [](std::uint64_t) { return true; }, budget_);
  }

  // What the next sample holds, or why it could not be read.
  std::string next() {
    const ReadSample& sample = ahead_->next(own_);
    if (!sample.status.ok()) return std::string(sample.status.message());
    const auto bytes = sample.files()[0].bytes();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  AheadBudget budget_{1000};
  PackPlan plan_;
  NumberedFiles* tree_ = nullptr;
  std::vector<SourceSample> samples_;
  std::unique_ptr<ReadAhead> ahead_;
  ReadSample own_;
};

TEST_F(ReadAheadTest, gives_all_samples_in_order_whoever_helps) {
  for (const int helpers : {0, 1, 3}) {
    samples_.clear();
    plan_ = {};
    make(5000, 1);
    std::vector<Thread> threads;
    for (int i = 0; i < helpers; ++i) {
      threads.emplace_back([this](const StopToken&) {
        for (;;) {
          const ReadAhead::Help help = ahead_->help();
          if (help == ReadAhead::Help::over) return;
          if (help == ReadAhead::Help::too_soon) ahead_->wait_for_room();
        }
      });
    }
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(next(), std::to_string(i) + ".bin");
    EXPECT_TRUE(ahead_->is_over());
    EXPECT_EQ(ahead_->left(), 0U);
    threads.clear();
    EXPECT_EQ(tree_->count_read(), 5000U);
  }
}

TEST_F(ReadAheadTest, an_error_comes_in_its_place) {
  make(100, 1);
  tree_->missing = 40;
  ASSERT_EQ(ahead_->help(), ReadAhead::Help::given);
  for (int i = 0; i < 40; ++i) ASSERT_EQ(next(), std::to_string(i) + ".bin");
  EXPECT_EQ(next(), "40.bin: is gone");
}

TEST_F(ReadAheadTest, holds_no_more_bytes_than_its_budget) {
  make(100, 300);  // a range of 64 of them would be too much
  EXPECT_EQ(ahead_->help(), ReadAhead::Help::too_soon);
  EXPECT_EQ(tree_->count_read(), 0U);
  EXPECT_EQ(next(), "0.bin");
}

TEST_F(ReadAheadTest, gives_back_what_the_writer_has_taken) {
  make(1000, 10);  // ranges of 640 bytes
  ASSERT_EQ(ahead_->help(), ReadAhead::Help::given);
  EXPECT_EQ(ahead_->help(), ReadAhead::Help::too_soon);
  for (int i = 0; i < 65; ++i) ASSERT_EQ(next(), std::to_string(i) + ".bin");
  EXPECT_EQ(ahead_->help(), ReadAhead::Help::given);
  ahead_.reset();
  EXPECT_TRUE(budget_.take(1000));
}

// With ranges of one sample, 0 is the helper's, and the writer has come to it.
TEST_F(ReadAheadTest, a_writer_that_would_wait_reads_further_on) {
  make(4, 200);
  plan_.source.folders[0].files[0].bytes = 256u << 10;
  AheadBudget budget(1u << 20);
  ahead_ = std::make_unique<ReadAhead>(plan_, samples_, [](std::uint64_t) { return true; }, budget);
  tree_->waiting = 0;
  tree_->waits_for = 3;
  const Thread helper([this](const StopToken&) { (void)ahead_->help(); });
  while (ahead_->left() == 4) std::this_thread::yield();
  EXPECT_EQ(next(), "0.bin");
  EXPECT_EQ(next(), "1.bin");
  ahead_->next(own_);
  EXPECT_EQ(next(), "3.bin");
}

}  // namespace
}  // namespace stoker::data
