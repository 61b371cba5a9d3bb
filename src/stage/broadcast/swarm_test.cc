#include "stage/broadcast/swarm.h"

#include <map>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "base/thread.h"
#include "net/channel.h"
#include "stage/broadcast/swarm_server.h"
#include "stage/broadcast/test_swarm.h"

namespace stoker::stage {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBlock = 64 << 10;
constexpr std::uint64_t kPieceBytes = 3 * kBlock + 100;

// The bytes of a dataset.
std::byte byte_at(std::uint32_t piece, std::uint64_t offset) {
  return static_cast<std::byte>(piece * 31 + offset * 7 + offset / 251);
}

// What all nodes read; counts.
struct Source {
  Mutex mutex;
  std::map<std::uint32_t, int> reads;
  std::optional<std::uint32_t> damaged = std::nullopt;
  int total() {
    const MutexLock lock(mutex);
    int sum = 0;
    for (const auto& [piece, count] : reads) sum += count;
    return sum;
  }
};

class MemoryStore final : public PieceStore {
 public:
  MemoryStore(Source& source, const std::vector<ShardPiece>& pieces) : source_(source), pieces_(pieces) {}

  Status fetch(std::uint32_t piece) override {
    if (cannot_fetch) return unavailable("the source does not answer");
    if (source_.damaged == piece) return corrupt("piece {} of the source", piece);
    if (fetch_time > Duration::zero()) std::this_thread::sleep_for(fetch_time);
    {
      const MutexLock lock(source_.mutex);
      source_.reads[piece] += 1;
    }
    std::vector<std::byte> bytes(pieces_[piece].bytes);
    for (std::uint64_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(piece, i);
    const MutexLock lock(mutex_);
    kept_[piece] = std::move(bytes);
    return {};
  }
  Status write(std::uint32_t piece, std::uint64_t offset, std::span<const std::byte> bytes) override {
    for (std::uint64_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != byte_at(piece, offset + i)) return corrupt("piece {}", piece);
    }
    const MutexLock lock(mutex_);
    kept_[piece].resize(pieces_[piece].bytes);
    std::ranges::copy(bytes, kept_[piece].begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }
  void written(std::uint32_t piece) override {
    const MutexLock lock(mutex_);
    received.push_back(piece);
  }
  void unreachable(std::uint32_t) override { is_lost = true; }
  Status read(std::uint32_t piece, std::uint64_t offset, std::span<std::byte> out) override {
    const MutexLock lock(mutex_);
    const auto found = kept_.find(piece);
    if (found == kept_.end()) return not_found("piece {}", piece);
    std::copy_n(found->second.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    if (serves_damage) out[0] ^= std::byte{1};
    return {};
  }
  void keep(std::uint32_t piece) {
    std::vector<std::byte> bytes(pieces_[piece].bytes);
    for (std::uint64_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(piece, i);
    const MutexLock lock(mutex_);
    kept_[piece] = std::move(bytes);
  }
  bool is_complete() {
    const MutexLock lock(mutex_);
    if (kept_.size() != pieces_.size()) return false;
    for (const auto& [piece, bytes] : kept_) {
      for (std::uint64_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != byte_at(piece, i)) return false;
      }
    }
    return true;
  }

  std::atomic<bool> cannot_fetch = false;
  std::atomic<bool> serves_damage = false;
  Duration fetch_time = Duration::zero();
  std::vector<std::uint32_t> received;
  std::atomic<bool> is_lost = false;

 private:
  Source& source_;
  const std::vector<ShardPiece>& pieces_;
  Mutex mutex_;
  std::map<std::uint32_t, std::vector<std::byte>> kept_;
};

// Nodes in one process.
class SwarmTest : public ::testing::Test {
 protected:
  struct Node {
    std::unique_ptr<SwarmServer> server;
    std::unique_ptr<MemoryStore> store;
    std::unique_ptr<Swarm> swarm;
    ~Node() {
      if (swarm) server->remove(*swarm);
    }
  };

  void make(std::uint32_t nodes, std::uint32_t pieces) {
    pieces_ = divide_shards(std::vector<std::uint64_t>(pieces, kPieceBytes), {4u << 20}, 65'536);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      auto node = std::make_unique<Node>();
      node->server = *SwarmServer::listen(net::ListenScope::loopback);
      node->server->serve("the secret");
      node->store = std::make_unique<MemoryStore>(source_, pieces_);
      addresses_.push_back(node->server->addresses());
      nodes_.push_back(std::move(node));
    }
  }
  SwarmPlan plan(std::uint32_t node) const {
    return {.node = node,
            .addresses = addresses_,
            .secret = "the secret",
            .dataset = "digits",
            .pieces = pieces_,
            .rate = rate_,
            .limits = limits_};
  }
  Swarm& start(std::uint32_t i) {
    Node& node = *nodes_[i];
    node.swarm = std::make_unique<Swarm>(plan(i), *node.store);
    node.server->add(*node.swarm);
    return *node.swarm;
  }
  void start_all() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      start(i).wants({0, static_cast<std::uint32_t>(pieces_.size())});
      nodes_[i]->swarm->joined();
    }
  }
  // The first error, or Timeout.
  static Status finish(Swarm& swarm) {
    const Deadline deadline = Deadline::after(100s);
    while (swarm.left() > 0) {
      STOKER_RETURN_IF_ERROR(swarm.wait(Deadline::after(100ms)));
      if (deadline.passed()) return timeout("{} pieces left", swarm.left());
    }
    return {};
  }
  static Status finish_or_timeout(Swarm& swarm) {
    const Deadline deadline = Deadline::after(3s);
    while (swarm.left() > 0) {
      STOKER_RETURN_IF_ERROR(swarm.wait(Deadline::after(100ms)));
      if (deadline.passed()) return timeout("{} pieces left", swarm.left());
    }
    return swarm.wait(Deadline::after(100ms));
  }
  void stop_server(std::uint32_t i) { nodes_[i]->server.reset(); }
  void stop(std::uint32_t i) {
    Node& node = *nodes_[i];
    node.server->remove(*node.swarm);
    node.swarm.reset();
    node.server.reset();
  }

  std::vector<ShardPiece> pieces_;
  std::vector<std::vector<std::string>> addresses_;
  SwarmLimits limits_{.late_request_s = 0.5, .missed_s = 0.5, .alone_s = 2, .join_s = 10};
  ByteCount rate_;
  Source source_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_F(SwarmTest, nodes_read_each_piece_once_and_exchange_them) {
  limits_ = kPatient;
  make(4, 60);
  start_all();
  std::uint64_t read = 0;
  for (auto& node : nodes_) {
    ASSERT_TRUE(finish(*node->swarm).ok());
    EXPECT_TRUE(node->store->is_complete());
    const SwarmTraffic traffic = node->swarm->traffic();
    EXPECT_EQ(traffic.read_bytes + traffic.received_bytes, 60 * kPieceBytes);
    read += traffic.read_bytes;
  }
  EXPECT_EQ(source_.total(), 60);
  EXPECT_EQ(read, 60 * kPieceBytes);
}

TEST_F(SwarmTest, one_node_reads_everything) {
  limits_ = kPatient;
  make(1, 5);
  start_all();
  ASSERT_TRUE(finish(*nodes_[0]->swarm).ok());
  EXPECT_TRUE(nodes_[0]->store->is_complete());
  EXPECT_EQ(source_.total(), 5);
}

TEST_F(SwarmTest, what_is_granted_before_its_shard_is_open_is_read_later) {
  limits_ = kPatient;
  limits_.missed_s = 900;  // nothing else would read it
  make(2, 20);
  for (std::uint32_t i = 0; i < 2; ++i) {
    start(i).wants({0, 1});
    nodes_[i]->swarm->joined();
  }
  std::this_thread::sleep_for(50ms);
  for (auto& node : nodes_) node->swarm->wants({1, 18});
  nodes_[0]->swarm->gives_up({19, 1});
  nodes_[1]->swarm->wants({19, 1});
  for (auto& node : nodes_) ASSERT_TRUE(finish(*node->swarm).ok());
  EXPECT_TRUE(nodes_[1]->store->is_complete());
  EXPECT_EQ(source_.total(), 20);
}

TEST_F(SwarmTest, what_a_node_has_in_its_cache_is_not_read) {
  limits_ = kPatient;
  make(3, 20);
  for (std::uint32_t i = 0; i < 3; ++i) start(i);
  for (std::uint32_t piece = 0; piece < 20; ++piece) nodes_[2]->store->keep(piece);
  nodes_[0]->swarm->wants({0, 20});
  nodes_[1]->swarm->wants({0, 20});
  nodes_[0]->swarm->joined();
  nodes_[1]->swarm->joined();
  std::this_thread::sleep_for(50ms);  // readings do not begin before the last node has joined
  nodes_[2]->swarm->has({0, 20});
  nodes_[2]->swarm->joined();
  ASSERT_TRUE(finish(*nodes_[0]->swarm).ok());
  ASSERT_TRUE(finish(*nodes_[1]->swarm).ok());
  EXPECT_EQ(source_.total(), 0);
  EXPECT_TRUE(nodes_[1]->store->is_complete());
}

TEST_F(SwarmTest, a_node_that_cannot_read_the_source_gets_everything_from_others) {
  limits_ = kPatient;
  make(3, 20);
  nodes_[1]->store->cannot_fetch = true;
  start_all();
  for (auto& node : nodes_) {
    ASSERT_TRUE(finish(*node->swarm).ok());
    EXPECT_TRUE(node->store->is_complete());
  }
  EXPECT_EQ(nodes_[1]->swarm->traffic().read_bytes, 0u);
  EXPECT_EQ(source_.total(), 20);
}

TEST_F(SwarmTest, a_dead_node_does_not_stop_others) {
  make(4, 40);
  for (auto& node : nodes_) node->store->fetch_time = 10ms;
  start_all();
  while (nodes_[3]->swarm->traffic().read_bytes == 0) std::this_thread::sleep_for(1ms);
  stop(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(finish(*nodes_[i]->swarm).ok());
    EXPECT_TRUE(nodes_[i]->store->is_complete());
  }
}

TEST_F(SwarmTest, without_the_first_node_each_reads_on_its_own) {
  make(3, 6);
  start(1).wants({0, 6});
  start(2).wants({0, 6});
  stop_server(0);
  for (const std::uint32_t i : {1u, 2u}) {
    nodes_[i]->swarm->joined();
    ASSERT_TRUE(finish(*nodes_[i]->swarm).ok());
    EXPECT_TRUE(nodes_[i]->store->is_complete());
  }
}

TEST_F(SwarmTest, damaged_bytes_of_a_peer_are_not_kept) {
  make(3, 12);
  nodes_[1]->store->serves_damage = true;
  start_all();
  for (const std::uint32_t i : {0u, 2u}) {
    ASSERT_TRUE(finish(*nodes_[i]->swarm).ok());
    EXPECT_TRUE(nodes_[i]->store->is_complete());
  }
}

TEST_F(SwarmTest, a_damaged_source_ends_the_broadcast) {
  make(2, 12);
  source_.damaged = 7;
  start_all();
  Status first = finish_or_timeout(*nodes_[0]->swarm);
  if (first.ok() || first.code() == Code::timeout) first = finish_or_timeout(*nodes_[1]->swarm);
  EXPECT_EQ(first.code(), Code::corrupt);
}

TEST_F(SwarmTest, what_no_node_can_read_is_given_up) {
  make(2, 3);
  for (auto& node : nodes_) node->store->cannot_fetch = true;
  start_all();
  const Deadline deadline = Deadline::after(60s);
  while (!(nodes_[0]->store->is_lost && nodes_[1]->store->is_lost) && !deadline.passed())
    std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(nodes_[0]->store->is_lost);
  EXPECT_TRUE(nodes_[1]->store->is_lost);
}

TEST_F(SwarmTest, a_node_that_reaches_neither_others_nor_the_source_gives_up) {
  limits_ = {.missed_s = 0.2, .alone_s = 0.3};
  make(2, 20);
  nodes_[1]->store->cannot_fetch = true;
  addresses_ = {{}, {}};
  start(1).wants({0, 20});
  nodes_[1]->swarm->joined();
  while (!nodes_[1]->store->is_lost) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(source_.total(), 0);
}

TEST_F(SwarmTest, a_node_that_waits_for_its_rate_can_be_stopped) {
  rate_ = {1};  // bytes per second: a piece takes days
  make(2, 20);
  start_all();
  while (nodes_[0]->swarm->traffic().read_bytes + nodes_[1]->swarm->traffic().read_bytes <
         20 * kPieceBytes / 2)
    std::this_thread::sleep_for(5ms);
  stop(0);
  stop(1);
  EXPECT_GT(source_.total(), 0);
}

TEST_F(SwarmTest, a_different_dataset_or_secret_gets_no_connection) {
  make(2, 3);
  start(0);
  SwarmPlan other = plan(1);
  other.dataset = "letters";
  Swarm stranger(other, *nodes_[1]->store);
  other = plan(1);
  other.secret = "a guess";
  Swarm thief(other, *nodes_[1]->store);
  nodes_[0]->store->keep(0);
  nodes_[0]->swarm->has({0, 3});
  stranger.wants({0, 3});
  thief.wants({0, 3});
  EXPECT_TRUE(stranger.wait(Deadline::after(1s)).ok());
  EXPECT_EQ(stranger.left(), 3u);
  EXPECT_EQ(thief.left(), 3u);
  EXPECT_EQ(nodes_[0]->swarm->traffic().sent_bytes, 0u);
}

}  // namespace
}  // namespace stoker::stage
