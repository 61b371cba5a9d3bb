#include "stage/broadcast/broadcast_tree.h"

#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stage/broadcast/test_swarm.h"
#include "stage/broadcast/tree_list.h"

namespace stoker::stage {
namespace {

using testing::IsEmpty;

// Nodes in one process, each with its own folder.
class TreeBroadcastTest : public testing::Test {
 protected:
  struct Node {
    Path folder;
    StageRequest request;
    std::unique_ptr<SwarmServer> server;
    std::unique_ptr<TreeBroadcast> broadcast;
    Result<TransferStats> stats = unavailable("has not run");
    Thread thread;
  };

  Path source(std::string_view name) const { return box_ / "source" / name; }
  void write(std::string_view name, std::string_view text) const {
    ASSERT_TRUE(make_directories(source(name).parent_path()).ok());
    ASSERT_TRUE(write_file(source(name), text).ok());
  }
  // Like a virtual environment, with a file of several blocks.
  void make_environment() const {
    for (int i = 0; i < 300; ++i) write(format("env/lib/module-{}.py", i), format("x = {}\n", i));
    std::string large(9'000'000, '.');
    for (std::size_t i = 0; i < large.size(); i += 997) large[i] = static_cast<char>(i / 997);
    write("env/lib/libcuda.so", large);
    write("env/bin/python3.12", "#!/bin/sh\n");
    write("env/odd \n\xff name", "odd");
    write("env/empty-file", "");
    ASSERT_EQ(::chmod(source("env/bin/python3.12").c_str(), 0755), 0);
    ASSERT_EQ(::chmod(source("env/empty-file").c_str(), 0640), 0);
    ASSERT_EQ(::symlink("python3.12", source("env/bin/python").c_str()), 0);
    ASSERT_EQ(::symlink("/nowhere", source("env/bin/outside").c_str()), 0);
    ASSERT_EQ(::link(source("env/lib/module-0.py").c_str(), source("env/lib/same.py").c_str()), 0);
    ASSERT_TRUE(make_directories(source("env/empty/inner")).ok());
    ASSERT_EQ(::chmod(source("env/empty").c_str(), 0750), 0);
  }

  void make(std::uint32_t nodes, const StageRequest& request) {
    for (std::uint32_t i = 0; i < nodes; ++i) {
      auto node = std::make_unique<Node>();
      node->folder = box_ / format("node-{}", i);
      ASSERT_TRUE(make_directories(node->folder).ok());
      node->request = request;
      node->server = *SwarmServer::listen(net::ListenScope::loopback);
      node->server->serve("the secret");
      addresses_.push_back(node->server->addresses());
      nodes_.push_back(std::move(node));
    }
    auto list = list_request(request, progress_);
    ASSERT_TRUE(list.ok()) << list.status().to_string();
    list_ = encode_tree_list(*list);
  }
  void start(std::uint32_t i) {
    Node& node = *nodes_[i];
    node.broadcast = std::make_unique<TreeBroadcast>(node.request, node.folder,
                                                     BroadcastNodes{.server = node.server.get(),
                                                                    .node = i,
                                                                    .addresses = addresses_,
                                                                    .secret = "the secret",
                                                                    .rate = {},
                                                                    .limits = limits_});
    node.thread = Thread([this, i, &node](const StopToken&) {
      node.stats = node.broadcast->run(head_of(list_), i == 0 ? list_ : std::string(), progress_);
      if (!node.stats.ok()) progress_.has_failed = true;
    });
  }
  Path make_folder(std::string_view name) const {
    EXPECT_TRUE(make_directories(box_ / name).ok());
    return box_ / name;
  }
  void run_all() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) start(i);
    for (auto& node : nodes_) node->thread.join();
  }
  // Names, kinds, modes, times and contents of a tree, a line each.
  static std::string described(const Path& root) {
    std::vector<std::string> lines;
    for (const auto& each : std::filesystem::recursive_directory_iterator(root)) {
      struct stat info{};
      EXPECT_EQ(::lstat(each.path().c_str(), &info), 0);
      std::string line =
          format("{} {:o} {}", each.path().lexically_relative(root).string(), info.st_mode, info.st_nlink);
      if (S_ISLNK(info.st_mode)) line += std::filesystem::read_symlink(each.path()).string();
      if (!S_ISDIR(info.st_mode)) line += format(" {}.{}", info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
      if (S_ISREG(info.st_mode)) line += " " + hex(sha256(*read_file(each.path())));
      lines.push_back(line);
    }
    std::ranges::sort(lines);
    return join(lines, "\n");
  }
  std::uint64_t bytes_read() const {
    std::uint64_t sum = 0;
    for (const auto& node : nodes_) sum += node->stats->bytes - node->stats->received_bytes;
    return sum;
  }

  TempDirectory box_;
  StopAfterError progress_;
  SwarmLimits limits_ = kPatient;
  std::string list_;
  std::vector<std::vector<std::string>> addresses_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

TEST_F(TreeBroadcastTest, each_byte_is_read_once_and_each_node_has_the_same_tree) {
  make_environment();
  write("image.sif", std::string(5'000'000, 'i'));
  make(4, {.unpack = {}, .copy = {source("env/"), source("image.sif")}, .back = {}});
  run_all();
  for (const auto& node : nodes_) {
    ASSERT_TRUE(node->stats.ok()) << node->stats.status().to_string();
    EXPECT_EQ(node->broadcast->note(), "");
    EXPECT_EQ(described(node->folder / "env"), described(source("env")));
    EXPECT_EQ(*read_file(node->folder / "image.sif"), std::string(5'000'000, 'i'));
    EXPECT_EQ(node->stats->fingerprint, nodes_[0]->stats->fingerprint);
  }
  EXPECT_EQ(bytes_read(), nodes_[0]->stats->bytes);
  // A node that copies alone has the same fingerprint.
  const auto alone = stage_in(nodes_[0]->request, make_folder("alone"), progress_);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->fingerprint, nodes_[0]->stats->fingerprint);
  EXPECT_EQ(alone->files, nodes_[0]->stats->files);
  EXPECT_EQ(described(box_ / "alone/env"), described(source("env")));
  // What peers needed is gone with the broadcast.
  for (const auto& node : nodes_) {
    node->broadcast.reset();
    EXPECT_THAT(*list_directory(node->folder), testing::ElementsAre("env", "image.sif"));
  }
}

TEST_F(TreeBroadcastTest, archives_are_exchanged_as_files_and_unpacked_on_each_node) {
  write("words/a", "first");
  write("words/b", std::string(6'000'000, 'b'));
  write("notes", "read me");
  const std::string make_tar =
      format("tar -C {} -czf {} words", box_ / "source", (box_ / "words.tar.gz").string());
  ASSERT_EQ(std::system(make_tar.c_str()), 0);
  ASSERT_EQ(::symlink("words.tar.gz", (box_ / "latest.tar").c_str()), 0);
  make(3, {.unpack = {box_ / "latest.tar"}, .copy = {source("notes")}, .back = {}});
  run_all();
  for (const auto& node : nodes_) {
    ASSERT_TRUE(node->stats.ok()) << node->stats.status().to_string();
    EXPECT_EQ(*read_file(node->folder / "words/a"), "first");
    EXPECT_EQ(read_file(node->folder / "words/b")->size(), 6'000'000u);
    EXPECT_EQ(*read_file(node->folder / "notes"), "read me");
    EXPECT_EQ(node->stats->bytes, 6'000'012u);
    EXPECT_EQ(node->stats->fingerprint, nodes_[0]->stats->fingerprint);
  }
  const auto alone = stage_in(nodes_[0]->request, make_folder("alone"), progress_);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->fingerprint, nodes_[0]->stats->fingerprint);
}

TEST_F(TreeBroadcastTest, a_source_that_changes_after_it_was_listed_is_an_error_and_nothing_appears) {
  make_environment();
  make(2, {.unpack = {}, .copy = {source("env")}, .back = {}});
  write("env/lib/module-7.py", "x = 8\n");
  limits_ = {.missed_s = 0.2, .alone_s = 90, .join_s = 90};
  run_all();
  const auto is_named = [&](const std::unique_ptr<Node>& node) {
    return !node->stats.ok() &&
           node->stats.status().message() ==
               format("{}: changed while it was being copied", source("env/lib/module-7.py"));
  };
  EXPECT_TRUE(std::ranges::any_of(nodes_, is_named)) << nodes_[0]->stats.status().to_string() << "\n"
                                                     << nodes_[1]->stats.status().to_string();
  for (const auto& node : nodes_) {
    EXPECT_FALSE(node->stats.ok());
    node->broadcast.reset();
    EXPECT_THAT(*list_directory(node->folder), IsEmpty());
  }
}

TEST_F(TreeBroadcastTest, a_node_that_cannot_read_the_source_gets_it_from_its_peers) {
  make_environment();
  make(3, {.unpack = {}, .copy = {source("env")}, .back = {}});
  nodes_[2]->request.copy = {box_ / "not mounted/env"};
  run_all();
  for (const auto& node : nodes_) {
    ASSERT_TRUE(node->stats.ok()) << node->stats.status().to_string();
    EXPECT_EQ(described(node->folder / "env"), described(source("env")));
  }
  EXPECT_EQ(nodes_[2]->stats->received_bytes, nodes_[2]->stats->bytes);
}

TEST_F(TreeBroadcastTest, a_node_that_reaches_no_other_copies_alone) {
  make_environment();
  make(2, {.unpack = {}, .copy = {source("env")}, .back = {}});
  limits_ = {.late_request_s = 90, .missed_s = 0.2, .alone_s = 0.3, .join_s = 0.3};
  start(0);
  addresses_ = {{}, {}};
  start(1);
  for (auto& node : nodes_) node->thread.join();
  EXPECT_EQ(nodes_[0]->broadcast->note(), "");
  EXPECT_EQ(nodes_[1]->broadcast->note(), "only the first node has the list");
  for (const auto& node : nodes_) {
    ASSERT_TRUE(node->stats.ok()) << node->stats.status().to_string();
    EXPECT_EQ(described(node->folder / "env"), described(source("env")));
    EXPECT_EQ(node->stats->fingerprint, nodes_[0]->stats->fingerprint);
  }
}

TEST_F(TreeBroadcastTest, nodes_do_not_wait_for_one_that_never_starts) {
  make_environment();
  make(3, {.unpack = {}, .copy = {source("env")}, .back = {}});
  limits_ = {.late_request_s = 90, .missed_s = 90, .alone_s = 90, .join_s = 0.3};
  start(0);
  start(1);
  for (const std::size_t i : {0, 1}) {
    nodes_[i]->thread.join();
    ASSERT_TRUE(nodes_[i]->stats.ok()) << nodes_[i]->stats.status().to_string();
    EXPECT_EQ(described(nodes_[i]->folder / "env"), described(source("env")));
  }
}

TEST_F(TreeBroadcastTest, empty_folders_and_files_need_no_exchange) {
  ASSERT_TRUE(make_directories(source("env/a/b")).ok());
  write("env/none", "");
  make(2, {.unpack = {}, .copy = {source("env")}, .back = {}});
  run_all();
  for (const auto& node : nodes_) {
    ASSERT_TRUE(node->stats.ok()) << node->stats.status().to_string();
    EXPECT_EQ(described(node->folder / "env"), described(source("env")));
  }
}

TEST_F(TreeBroadcastTest, what_exists_in_the_folder_is_not_replaced) {
  write("notes", "new");
  make(2, {.unpack = {}, .copy = {source("notes")}, .back = {}});
  ASSERT_TRUE(write_file(nodes_[1]->folder / "notes", "old").ok());
  run_all();
  EXPECT_EQ(nodes_[1]->stats.status().code(), Code::exists);
  EXPECT_EQ(*read_file(nodes_[1]->folder / "notes"), "old");
}

}  // namespace
}  // namespace stoker::stage
