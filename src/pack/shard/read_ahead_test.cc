#include "pack/shard/read_ahead.h"

#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace stoker::pack {
namespace {

// Files "0.bin", "1.bin", ... that contain their own name. One may be missing, or wait until a different one
// was read.
class NumberedFiles final : public sources::SourceTree {
 public:
  std::optional<std::uint64_t> missing;
  std::optional<std::uint64_t> waiting;
  std::uint64_t waits_for = 0;

  Result<sources::Listing> list(const std::string&) const override { return sources::Listing(); }
  Status read(std::string_view, const sources::SourceFile& file, sources::FileBytes& into) const override {
    if (file.place == missing) return not_found("{}: is gone", file.name);
    MutexLock lock(mutex_);
    while (file.place == waiting && !read_.contains(waits_for))
      changed_.wait(mutex_, Deadline::after(std::chrono::seconds(1)));
    read_.insert(file.place);
    changed_.notify_all();
    std::memcpy(into.resize(file.name.size()).data(), file.name.data(), file.name.size());
    return {};
  }
  Status read_part(std::string_view, const sources::SourceFile&, std::uint64_t,
                   std::span<std::byte>) const override {
    return internal("not asked for");
  }
  std::string display_path(std::string_view path) const override { return std::string(path); }

  std::size_t count_read() const {
    const MutexLock lock(mutex_);
    return read_.size();
  }

 private:
  mutable Mutex mutex_;
  mutable Condition changed_;
  mutable std::set<std::uint64_t> read_ STOKER_GUARDED_BY(mutex_);
};

// A shard of `count` samples of one file with the nominal size `bytes`.
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

  // The content of the next sample, or its error.
  std::string next() {
    const LoadedSample& sample = ahead_->next(own_);
    if (!sample.status.ok()) return std::string(sample.status.message());
    const auto bytes = sample.files()[0].bytes();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  ReadAheadBudget budget_{1000}, large_budget_{1u << 20};
  PackPlan plan_;
  NumberedFiles* tree_ = nullptr;
  std::vector<sources::SourceSample> samples_;
  std::unique_ptr<ReadAhead> ahead_;
  LoadedSample own_;
};

TEST_F(ReadAheadTest, returns_all_samples_in_order_for_any_number_of_helpers) {
  for (const int helpers : {0, 1, 3}) {
    samples_.clear();
    plan_ = {};
    make(5000, 1);
    std::vector<Thread> threads;
    for (int i = 0; i < helpers; ++i) {
      threads.emplace_back([this](const StopToken&) {
        for (;;) {
          const ReadAhead::HelpResult help = ahead_->help();
          if (help == ReadAhead::HelpResult::done) return;
          if (help == ReadAhead::HelpResult::enough_read) ahead_->wait_for_budget();
        }
      });
    }
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(next(), std::to_string(i) + ".bin");
    EXPECT_TRUE(ahead_->is_done());
    EXPECT_EQ(ahead_->unclaimed(), 0U);
    threads.clear();
    EXPECT_EQ(tree_->count_read(), 5000U);
  }
}

TEST_F(ReadAheadTest, reports_an_error_at_its_sample) {
  make(100, 1);
  tree_->missing = 40;
  ASSERT_EQ(ahead_->help(), ReadAhead::HelpResult::read_range);
  for (int i = 0; i < 40; ++i) ASSERT_EQ(next(), std::to_string(i) + ".bin");
  EXPECT_EQ(next(), "40.bin: is gone");
}

TEST_F(ReadAheadTest, holds_no_more_bytes_than_its_budget) {
  make(100, 300);  // a range of 64 of them would be too much
  EXPECT_EQ(ahead_->help(), ReadAhead::HelpResult::enough_read);
  EXPECT_EQ(tree_->count_read(), 0U);
  EXPECT_EQ(next(), "0.bin");
}

TEST_F(ReadAheadTest, releases_budget_of_written_samples) {
  make(1000, 10);  // ranges of 640 bytes
  ASSERT_EQ(ahead_->help(), ReadAhead::HelpResult::read_range);
  EXPECT_EQ(ahead_->help(), ReadAhead::HelpResult::enough_read);
  for (int i = 0; i < 65; ++i) ASSERT_EQ(next(), std::to_string(i) + ".bin");
  EXPECT_EQ(ahead_->help(), ReadAhead::HelpResult::read_range);
  ahead_.reset();
  EXPECT_TRUE(budget_.try_acquire(1000));
}

// With ranges of one sample, the helper has claimed 0 and the writer has reached it.
TEST_F(ReadAheadTest, waiting_writer_reads_ahead_itself) {
  make(4, 200);
  plan_.source.folders[0].files[0].bytes = 256u << 10;
  ahead_ = std::make_unique<ReadAhead>(plan_, samples_, [](std::uint64_t) { return true; }, large_budget_);
  tree_->waiting = 0;
  tree_->waits_for = 3;
  const Thread helper([this](const StopToken&) { (void)ahead_->help(); });
  while (ahead_->unclaimed() == 4) std::this_thread::yield();
  EXPECT_EQ(next(), "0.bin");
  EXPECT_EQ(next(), "1.bin");
  ahead_->next(own_);
  EXPECT_EQ(next(), "3.bin");
}

}  // namespace
}  // namespace stoker::pack
