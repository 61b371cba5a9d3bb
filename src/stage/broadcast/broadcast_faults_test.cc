#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <list>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "dataset/test_dataset.h"
#include "net/channel.h"
#include "stage/broadcast/broadcast_dataset.h"
#include "stage/cache/eviction.h"
#include "stage/cache/use_lease.h"

namespace stoker::stage {
namespace {

using namespace std::chrono_literals;
using dataset::TestSample;

constexpr std::uint32_t kNodes = 3;
constexpr int kSmallShards = 5;
constexpr std::size_t kLargePicture = 9'000'000;  // several blocks
constexpr std::size_t kSmallPicture = 60'000;

// The network before a node's server: it passes bytes on, cuts connections and flips bits.
class FaultyNetwork {
 public:
  explicit FaultyNetwork(std::string target)
      : target_(std::move(target)), listener_(*net::Listener::open(net::ListenScope::loopback)) {
    acceptor_ = Thread([this](const StopToken& stop) { accept_all(stop); });
  }
  ~FaultyNetwork() {
    acceptor_.join();
    cut();
    connections_.clear();
  }

  std::vector<std::string> addresses() const { return listener_.addresses(); }
  void flip_a_bit() { flips_ += 1; }
  void cut() {
    const MutexLock lock(mutex_);
    for (auto& one : connections_) one->end();
  }

 private:
  struct Connection {
    Fd client, server;
    Thread forward, back;
    void end() const {
      ::shutdown(client.get(), SHUT_RDWR);
      ::shutdown(server.get(), SHUT_RDWR);
    }
  };

  void accept_all(const StopToken& stop) {
    while (!stop.stop_requested()) {
      pollfd waiting{listener_.fd(), POLLIN, 0};
      if (::poll(&waiting, 1, 20) <= 0) continue;
      Fd client = listener_.accept();
      auto server = net::Channel::connect(target_, Deadline::after(1s));
      if (!client || !server.ok()) continue;
      auto connection = std::make_unique<Connection>();
      connection->client = std::move(client);
      connection->server = std::move(*server).release();
      const Connection& one = *connection;
      connection->forward =
          Thread([this, &one](const StopToken&) { pass(one, one.client.get(), one.server.get()); });
      connection->back =
          Thread([this, &one](const StopToken&) { pass(one, one.server.get(), one.client.get()); });
      const MutexLock lock(mutex_);
      connections_.push_back(std::move(connection));
    }
  }

  void pass(const Connection& connection, int from, int to) {
    std::vector<char> buffer(256 << 10);
    for (;;) {
      pollfd waiting{from, POLLIN, 0};
      ::poll(&waiting, 1, 1000);
      const ssize_t got = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) return connection.end();
      if (int left = flips_.load(); left > 0 && flips_.compare_exchange_strong(left, left - 1))
        buffer[static_cast<std::size_t>(got) / 2] ^= 4;
      for (ssize_t sent = 0; sent < got;) {
        pollfd ready{to, POLLOUT, 0};
        ::poll(&ready, 1, 1000);
        const ssize_t now = ::send(to, buffer.data() + sent, static_cast<std::size_t>(got - sent),
                                   MSG_NOSIGNAL | MSG_DONTWAIT);
        if (now < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (now <= 0) return connection.end();
        sent += now;
      }
    }
  }

  const std::string target_;
  net::Listener listener_;
  std::atomic<int> flips_{0};
  Mutex mutex_;
  std::list<std::unique_ptr<Connection>> connections_ STOKER_GUARDED_BY(mutex_);
  Thread acceptor_;
};

class Stoppable final : public Progress {
 public:
  void report(const ProgressState&) override {}
  bool stop_requested() const override { return is_stopped; }
  std::atomic<bool> is_stopped = false;
};

struct FaultyNode {
  std::optional<CacheFolder> cache;
  std::unique_ptr<SwarmServer> server;
  std::unique_ptr<FaultyNetwork> network;
  std::optional<OwnLease> lease;
  std::unique_ptr<DatasetBroadcast> broadcast;
  Stoppable progress;
  CacheLimits limits{.quota = {}, .reserve = {}};
  std::uint32_t allocated = SwarmLimits().allocated;
  Result<CacheReport> report = unavailable("has not run");
  std::atomic<bool> is_done = false;
  Thread thread;
};

class BroadcastFaults : public testing::Test {
 protected:
  Path make_dataset(const std::string& name, char fill) {
    const Path folder = box_ / name;
    EXPECT_TRUE(make_directories(folder).ok());
    std::vector<std::vector<TestSample>> shards;
    for (int i = 0; i <= kSmallShards; ++i) {
      std::string picture(i == 2 ? kLargePicture : kSmallPicture, static_cast<char>(fill + i));
      for (std::size_t at = 0; at < picture.size(); at += 997)
        picture[at] = static_cast<char>(at / 997 + static_cast<std::size_t>(i));
      shards.push_back(
          {{.key = format("{}-{}", fill, i), .label = i, .files = {{"jpg", std::move(picture)}}}});
    }
    dataset::write_test_dataset(folder, shards);
    return folder;
  }

  static std::string bytes_of(const Path& folder) {
    std::string all;
    for (int i = 0; i <= kSmallShards; ++i) {
      const auto shard = read_file(folder / format("all-00000{}.tar", i));
      all += shard.ok() ? *shard : "unreadable";
    }
    return all;
  }

  void start(FaultyNode& node, std::uint32_t number, const std::vector<std::vector<std::string>>& addresses,
             const Path& source) {
    auto opened = dataset::open_dataset(source);
    ASSERT_TRUE(opened.ok());
    node.lease.emplace(*OwnLease::begin(*node.cache, opened->manifest.version));
    node.broadcast = std::make_unique<DatasetBroadcast>(
        *node.cache, std::make_shared<const dataset::OpenDataset>(std::move(*opened)),
        CacheRequest{.source = source,
                     .splits = {},
                     .limits = node.limits,
                     .check = HitCheck::full,
                     .on_usable = [](const Path&) {}},
        BroadcastNodes{.server = node.server.get(),
                       .node = number,
                       .addresses = addresses,
                       .secret = "the secret",
                       .rate = {},
                       .limits = {.late_request_s = 0.5,
                                  .missed_s = 0.5,
                                  .alone_s = 2,
                                  .join_s = 2,
                                  .allocated = node.allocated}});
    node.thread = Thread([&node](const StopToken&) {
      node.report = node.broadcast->run(node.progress);
      if (node.progress.is_stopped) node.broadcast.reset();  // a dead node serves nothing
      node.is_done = true;
    });
  }

  // A bit of a shard that the cache has, with its time kept.
  static void flip_on_disk(const CacheFolder& cache, std::mt19937& chance) {
    for (const Path& folder : {cache.shards(), cache.partial()}) {
      const auto names = list_directory(folder);
      if (!names.ok() || names->empty()) continue;
      const Path path = folder / (*names)[chance() % names->size()];
      struct stat before{};
      if (::stat(path.c_str(), &before) != 0 || before.st_size < 1) continue;
      const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
      if (fd < 0) continue;
      const off_t at = static_cast<off_t>(chance()) % before.st_size;
      char byte = 0;
      if (::pread(fd, &byte, 1, at) == 1) {
        byte = static_cast<char>(byte ^ 1);
        (void)!::pwrite(fd, &byte, 1, at);
      }
      const timespec times[] = {before.st_atim, before.st_mtim};
      ::futimens(fd, times);
      ::close(fd);
      return;
    }
  }

  // As if a clock jumped by hours: the times of all leases and uses.
  static void skew_clocks(const CacheFolder& cache, std::mt19937& chance) {
    const time_t shift = (chance() % 2 == 0 ? 1 : -1) * static_cast<time_t>(chance() % 200'000);
    for (const Path& folder : {cache.leases(), cache.partial(), cache.path() / "uses"}) {
      const auto names = list_directory(folder);
      for (std::size_t i = 0; names.ok() && i < names->size(); ++i) {
        if (folder == cache.partial() && !(*names)[i].ends_with(".lease")) continue;
        const timespec time{std::time(nullptr) + shift, 0};
        const timespec times[] = {time, time};
        (void)::utimensat(AT_FDCWD, (folder / (*names)[i]).c_str(), times, AT_SYMLINK_NOFOLLOW);
      }
    }
  }

  static void purge_all(const CacheFolder& cache) {
    const auto datasets = cached_datasets(cache);
    for (std::size_t i = 0; datasets.ok() && i < datasets->size(); ++i)
      (void)purge_dataset(cache, (*datasets)[i]);
  }

  void round(unsigned seed) {
    SCOPED_TRACE(format("seed {}", seed));
    std::mt19937 chance(seed);
    const Path base = box_ / format("round-{}", seed);
    const Path source = box_ / "photos";
    std::vector<std::unique_ptr<FaultyNode>> nodes;
    std::vector<std::vector<std::string>> addresses;
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      auto node = std::make_unique<FaultyNode>();
      if (chance() % 2 == 0) node->allocated = 1;
      node->cache = *CacheFolder::open(base / format("cache-{}", i));
      node->server = *SwarmServer::listen(net::ListenScope::loopback);
      node->server->serve("the secret");
      node->network = std::make_unique<FaultyNetwork>(node->server->addresses().front());
      addresses.push_back(node->network->addresses());
      nodes.push_back(std::move(node));
    }
    // An older version with the same names, another job, files of other programs.
    NoProgress quiet;
    if (chance() % 2 == 0) {
      const auto old = dataset::open_dataset(box_ / "old");
      ASSERT_TRUE(
          stage_dataset(*nodes[1]->cache, *old, {.source = box_ / "old", .splits = {}, .limits = {}}, quiet)
              .ok());
    }
    if (chance() % 3 == 0) nodes[2]->cache = nodes[1]->cache;
    if (chance() % 3 == 0) nodes[0]->limits.quota = {kLargePicture / 2};
    const Path foreign = nodes[0]->cache->path() / "notes.txt";
    ASSERT_TRUE(write_file(foreign, "mine").ok());

    for (std::uint32_t i = 0; i < kNodes; ++i) start(*nodes[i], i, addresses, source);
    bool has_flipped_disk = false;
    for (int fault = 0; fault < 3; ++fault) {
      std::this_thread::sleep_for(std::chrono::milliseconds(chance() % 150));
      FaultyNode& node = *nodes[chance() % kNodes];
      switch (chance() % 6) {
        case 0:
          node.network->cut();
          break;
        case 1:
          node.network->flip_a_bit();
          break;
        case 2:
          node.progress.is_stopped = true;
          break;
        case 3:
          flip_on_disk(*node.cache, chance);
          has_flipped_disk = true;
          break;
        case 4:
          skew_clocks(*node.cache, chance);
          break;
        case 5:
          purge_all(*node.cache);
          break;
      }
    }
    const Deadline deadline = Deadline::after(120s);
    for (auto& node : nodes) {
      while (!node->is_done && !deadline.passed()) std::this_thread::sleep_for(5ms);
      ASSERT_TRUE(node->is_done) << "hangs";
      node->thread.join();
    }
    for (auto& node : nodes) {
      if (node->progress.is_stopped) continue;
      ASSERT_TRUE(node->report.ok()) << node->report.status().to_string();
      // What was flipped after it was checked is found by the next job.
      if (has_flipped_disk) {
        const auto opened = dataset::open_dataset(source);
        node->report = stage_dataset(
            *node->cache, *opened,
            {.source = source, .splits = {}, .limits = node->limits, .check = HitCheck::full}, quiet);
        ASSERT_TRUE(node->report.ok()) << node->report.status().to_string();
      }
      EXPECT_TRUE(bytes_of(node->report->folder) == bytes_of(source));
    }
    EXPECT_EQ(*read_file(foreign), "mine");
    // Connections end before the servers, whatever the order above.
    for (auto& node : nodes) node->broadcast.reset();
  }

  TempDirectory box_;
};

TEST_F(BroadcastFaults, the_data_is_right_and_nothing_hangs) {
  make_dataset("photos", 'a');
  make_dataset("old", 'k');
  const char* const rounds = std::getenv("STOKER_FAULT_ROUNDS");
  const unsigned count = rounds != nullptr ? static_cast<unsigned>(std::atoi(rounds)) : 4;
  for (unsigned seed = 1; seed <= count && !HasFatalFailure(); ++seed) round(seed);
}

}  // namespace
}  // namespace stoker::stage
