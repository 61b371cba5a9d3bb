#include "stage/broadcast/broadcast_dataset.h"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/test_dataset.h"
#include "stage/broadcast/test_swarm.h"
#include "stage/cache/use_lease.h"

namespace stoker::stage {
namespace {

using namespace std::chrono_literals;
using dataset::TestSample;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kShards = 6;
// A shard has several blocks, the last one is short.
constexpr std::size_t kPictureBytes = 9'000'000;

// Nodes in one process, each with its own cache.
class BroadcastTest : public testing::Test {
 protected:
  struct Node {
    std::optional<CacheFolder> cache;
    std::unique_ptr<SwarmServer> server;
    std::unique_ptr<DatasetBroadcast> broadcast;
    Result<CacheReport> report = unavailable("has not run");
    // When the first shards were there: which shards the folder had.
    std::vector<bool> first;
    Thread thread;
  };

  void SetUp() override {
    ASSERT_TRUE(make_directories(source_).ok());
    std::vector<std::vector<TestSample>> shards;
    for (int i = 0; i < kShards; ++i) {
      std::string picture(kPictureBytes, static_cast<char>('a' + i));
      for (std::size_t at = 0; at < picture.size(); at += 1000) picture[at] = static_cast<char>(at / 1000);
      shards.push_back({{.key = format("picture-{}", i), .label = i, .files = {{"jpg", picture}}}});
    }
    dataset::write_test_dataset(source_, shards);
  }

  void make(std::uint32_t nodes) {
    for (std::uint32_t i = 0; i < nodes; ++i) {
      auto node = std::make_unique<Node>();
      node->cache = *CacheFolder::open(box_ / format("cache-{}", i));
      node->server = *SwarmServer::listen(net::ListenScope::loopback);
      node->server->serve("the secret");
      addresses_.push_back(node->server->addresses());
      nodes_.push_back(std::move(node));
    }
  }

  void start(std::uint32_t i) {
    Node& node = *nodes_[i];
    auto opened = dataset::open_dataset(source_);
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    node.broadcast = std::make_unique<DatasetBroadcast>(
        *node.cache, std::make_shared<const dataset::OpenDataset>(std::move(*opened)),
        CacheRequest{.source = source_,
                     .splits = {},
                     .limits = limits_,
                     .check = HitCheck::sampled,
                     .order = {3, 1},
                     .on_usable =
                         [this, &node](const Path& folder) {
                           node.first = copies_in(folder);
                           if (on_usable_) on_usable_(folder);
                         }},
        BroadcastNodes{.server = node.server.get(),
                       .node = i,
                       .addresses = addresses_,
                       .secret = "the secret",
                       .rate = {},
                       .limits = swarm_limits_});
    node.thread = Thread([this, &node](const StopToken&) {
      node.report = node.broadcast->run(progress_);
      if (!node.report.ok()) progress_.has_failed = true;
    });
  }
  void run_all() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) start(i);
    for (auto& node : nodes_) node->thread.join();
  }
  static std::vector<bool> copies_in(const Path& folder) {
    std::vector<bool> copies;
    for (int i = 0; i < kShards; ++i)
      copies.push_back(std::filesystem::read_symlink(folder / format("all-00000{}.tar", i)).is_relative());
    return copies;
  }
  std::string bytes_of(const Path& folder) const {
    std::string all;
    for (int i = 0; i < kShards; ++i) all += *read_file(folder / format("all-00000{}.tar", i));
    return all;
  }
  std::uint64_t dataset_bytes() const { return dataset::read_manifest(source_)->bytes(); }
  // From the source, by all nodes.
  std::uint64_t bytes_read() const {
    std::uint64_t sum = 0;
    for (const auto& node : nodes_) sum += node->report->copied_bytes - node->report->received_bytes;
    return sum;
  }
  void expect_right(const Node& node) const {
    ASSERT_TRUE(node.report.ok()) << node.report.status().to_string();
    EXPECT_THAT(*list_directory(node.cache->partial()), IsEmpty());
    EXPECT_EQ(bytes_of(node.report->folder), bytes_of(source_));
  }

  TempDirectory box_;
  const Path source_ = box_ / "photos";
  SwarmLimits swarm_limits_;
  CacheLimits limits_{.quota = {}, .reserve = {}};
  std::function<void(const Path& folder)> on_usable_;
  StopAfterError progress_;
  std::vector<std::vector<std::string>> addresses_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_F(BroadcastTest, only_shards_that_are_needed_next_take_space) {
  swarm_limits_ = kPatient;
  swarm_limits_.allocated = 4;
  make(2);
  const auto allocated = [&] {
    const auto names = list_directory(nodes_[0]->cache->partial());
    return names.ok()
               ? std::ranges::count_if(*names, [](const auto& name) { return !name.ends_with(".lease"); })
               : 0;
  };
  start(0);
  // Nothing is read before the second node has joined. Each shard has three pieces.
  const Deadline deadline = Deadline::after(60s);
  while (allocated() < 2 && !deadline.passed()) std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(allocated(), 2);
  start(1);
  for (auto& node : nodes_) node->thread.join();
  for (const auto& node : nodes_) expect_right(*node);
  EXPECT_EQ(bytes_read(), dataset_bytes());
}

TEST_F(BroadcastTest, each_shard_is_read_once_and_reaches_all_nodes) {
  // Nothing is read twice because the machine is slow.
  swarm_limits_ = {.late_request_s = 90, .late_reading_s = 90, .missed_s = 90, .alone_s = 90, .join_s = 90};
  make(3);
  run_all();
  for (const auto& node : nodes_) {
    expect_right(*node);
    EXPECT_EQ(node->report->copied, std::uint64_t{kShards});
    EXPECT_EQ(node->report->hits, 0u);
  }
  EXPECT_EQ(bytes_read(), dataset_bytes());
  for (const auto& node : nodes_) {
    ASSERT_THAT(node->first, SizeIs(kShards));
    EXPECT_TRUE(node->first[3]) << "is needed first";
  }
  // Each cache is complete, without the source.
  ASSERT_TRUE(rename_path(source_, box_ / "gone").ok());
  EXPECT_EQ(bytes_of(nodes_[2]->report->folder), bytes_of(box_ / "gone"));
}

TEST_F(BroadcastTest, shards_in_one_cache_are_not_read_again) {
  make(2);
  const auto opened = dataset::open_dataset(source_);
  ASSERT_TRUE(stage_dataset(*nodes_[1]->cache, *opened, {.source = source_, .splits = {}, .limits = limits_},
                            progress_)
                  .ok());
  run_all();
  expect_right(*nodes_[0]);
  expect_right(*nodes_[1]);
  EXPECT_EQ(nodes_[1]->report->hits, std::uint64_t{kShards});
  EXPECT_EQ(bytes_read(), 0u);
}

TEST_F(BroadcastTest, shards_of_a_different_user_of_the_node_are_copied_and_forged_ones_are_not) {
  const auto other = CacheFolder::open(box_ / "stoker-cache-4711");
  const auto opened = dataset::open_dataset(source_);
  ASSERT_TRUE(
      stage_dataset(*other, *opened, {.source = source_, .splits = {}, .limits = limits_}, progress_).ok());
  const auto& shards = opened->manifest.splits[0].shards;
  const Path forged = other->shard(shard_key(opened->manifest, shards[2]));
  ASSERT_EQ(::chmod(forged.c_str(), 0644), 0);
  auto file = File::open_read_write(forged);
  ASSERT_TRUE(file->write_at(5'000'000, std::as_bytes(std::span("forged", 6))).ok());
  make(2);
  run_all();
  for (const auto& node : nodes_) {
    expect_right(*node);
    EXPECT_EQ(node->report->copied, std::uint64_t{kShards});
    EXPECT_EQ(node->report->shared_bytes, dataset_bytes() - shards[2].bytes);
  }
  // The forged one at the source, by each node at most.
  EXPECT_LE(bytes_read() - 2 * nodes_[0]->report->shared_bytes, 2 * shards[2].bytes);
}

TEST_F(BroadcastTest, a_full_disk_of_one_node_does_not_stop_others) {
  make(2);
  start(0);
  limits_.quota = {3 * (kPictureBytes + 20'000)};
  start(1);
  for (auto& node : nodes_) node->thread.join();
  expect_right(*nodes_[0]);
  EXPECT_EQ(nodes_[0]->report->copied, std::uint64_t{kShards});
  expect_right(*nodes_[1]);  // some through links to the source
  EXPECT_EQ(nodes_[1]->report->copied, 3u);
  EXPECT_THAT(nodes_[1]->report->left, SizeIs(3));
}

TEST_F(BroadcastTest, a_damaged_shard_of_the_source_is_an_error) {
  make(2);
  const Path shard = source_ / "all-000002.tar";
  auto file = File::open_read_write(shard);
  ASSERT_TRUE(file->write_at(5'000'000, std::as_bytes(std::span("damage", 6))).ok());
  run_all();
  std::vector<Status> found;
  for (const auto& node : nodes_) found.push_back(node->report.status());
  const Status& first = found[0].code() == Code::corrupt ? found[0] : found[1];
  EXPECT_EQ(first.code(), Code::corrupt);
  EXPECT_THAT(first.message(), HasSubstr("all-000002.tar: block 1 (bytes 4194304 to 8388608) has the hash"));
}

TEST_F(BroadcastTest, a_shard_that_another_process_removes_is_read_at_the_source) {
  make(1);
  on_usable_ = [](const Path& folder) {
    const Path link = folder / "all-000003.tar";
    ASSERT_TRUE(remove_file(folder / std::filesystem::read_symlink(link)).ok());
  };
  run_all();
  expect_right(*nodes_[0]);
  ASSERT_THAT(nodes_[0]->report->left, SizeIs(1));
  EXPECT_EQ(nodes_[0]->report->left[0].shard, "all-000003.tar");
  EXPECT_EQ(nodes_[0]->report->left[0].reason, "other processes remove it from the cache");
}

TEST_F(BroadcastTest, two_jobs_on_one_node_copy_each_shard_once) {
  make(2);
  nodes_[1]->cache = nodes_[0]->cache;
  run_all();
  expect_right(*nodes_[0]);
  expect_right(*nodes_[1]);
  EXPECT_EQ(nodes_[0]->report->copied + nodes_[1]->report->copied, std::uint64_t{kShards});
}

}  // namespace
}  // namespace stoker::stage
