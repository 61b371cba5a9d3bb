#include "netcheck/wire.h"

#include <gmock/gmock.h>

#include "netcheck/facts.h"

namespace stoker::netcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RankFacts some_facts() {
  RankFacts facts;
  facts.node = 1;
  facts.local_rank = 2;
  facts.cores = {0, 1, 2, 5};
  facts.visible_gpus = "0,1";
  facts.gpus = {"NVIDIA H100", "NVIDIA H100"};
  facts.gpu = 1;
  facts.gpu_uuid = "GPU-1";
  facts.unknown_gpu = "GPU-7";
  facts.gpu_bytes_per_s = 478e9;
  facts.gpu_links = {
      {.first = 0, .second = 1, .nvlinks = 18, .path = observe::GpuPath::numa_node, .has_peer_access = true},
      {.first = 0, .second = 2, .path = {}, .has_peer_access = {}}};
  facts.interfaces = {
      {.name = "lo", .address = "127.0.0.1", .prefix = 8, .is_loopback = true, .mtu = 65536},
      {.name = "eth0", .address = "10.0.0.2", .prefix = 24, .mtu = 1500, .speed_mbit = 10000}};
  facts.gloo = {facts.interfaces[1], ""};
  facts.nccl = {std::nullopt, "NCCL_SOCKET_IFNAME=x does not name an interface that is up"};
  facts.fabric = {{.device = "mlx5_0", .port = 1, .is_active = true, .state = "ACTIVE"}};
  facts.variables = {{"NCCL_SOCKET_IFNAME", "x"}};
  facts.addresses = {"10.0.0.2:4000", "10.1.0.2:4000"};
  facts.master_port = 29500;
  facts.master_problem = "port 29500: in use by another program on this host";
  facts.free_port = 12345;
  return facts;
}

TEST(Facts, round_trip) {
  RankFacts again;
  for (const net::ControlMessage& message : to_messages(some_facts()))
    ASSERT_TRUE(parse_fact(message, &again).ok());
  EXPECT_EQ(again, some_facts());
}

TEST(Facts, an_empty_variable_is_not_one_that_is_not_set) {
  RankFacts facts;
  facts.visible_gpus = "";
  RankFacts again;
  for (const net::ControlMessage& message : to_messages(facts)) ASSERT_TRUE(parse_fact(message, &again).ok());
  EXPECT_EQ(again.visible_gpus, "");
}

TEST(Facts, numbers_that_make_no_sense_are_refused) {
  RankFacts facts;
  net::ControlMessage place = to_messages(some_facts()).back();
  EXPECT_EQ(parse_fact(net::ControlMessage(place).with("master_port", std::int64_t{65536}), &facts).message(),
            "place: master_port is '65536'");
  EXPECT_EQ(parse_fact(net::ControlMessage(place).with("cores", "0-99999"), &facts).message(),
            "cores '0-99999': invalid (example: 0-3,8)");
  for (const std::string_view link :
       {"0 1 18 6 1", "0 1 18 4 2", "0 -1 0 4 1", "0 1 18 4", "0 1 18 4 x", "0 1 99 4 1"})
    EXPECT_EQ(parse_fact(net::ControlMessage(place).with("gpu_links", std::string(link)), &facts).message(),
              format("gpu_links: '{}'", link));
  EXPECT_EQ(parse_fact(net::ControlMessage(place).with("gpus_before", std::int64_t{65}), &facts).message(),
            "place: gpus_before is '65'");
  EXPECT_EQ(parse_fact({"gossip", {}}, &facts).message(), "unknown fact 'gossip'");
  EXPECT_EQ(parse_fact({"interface", {{"name", "eth0"}}}, &facts).message(), "interface: prefix is ''");
}

TEST(Facts, number_of_interfaces_is_bounded) {
  RankFacts facts;
  const net::ControlMessage one = to_messages(some_facts()).front();
  for (int i = 0; i < 1024; ++i) ASSERT_TRUE(parse_fact(one, &facts).ok());
  EXPECT_EQ(parse_fact(one, &facts).message(), "interface: more than 1024");
}

TEST(Answers, round_trip) {
  const netcheck::ResolvedName name{
      .name = "n3", .addresses = {"10.0.0.3"}, .seconds = 0.5, .reverse_seconds = 2, .error = ""};
  EXPECT_EQ(*parse_resolved(to_message(name)), name);
  const netcheck::Route way{
      .to = Rank(3), .address = "10.0.0.3:4000", .error = "no route", .connect_s = 0.25, .round_trip_s = 0.5};
  EXPECT_EQ(*parse_way(to_message(way)), way);
  const netcheck::FlowResult flow{.to = Rank(3), .bytes = 1 << 20, .seconds = 0.25, .error = ""};
  EXPECT_EQ(*parse_flow(to_message(flow)), flow);
  EXPECT_EQ(parse_way({"way", {{"to", "-1"}}}).status().message(), "way: to is '-1'");
  EXPECT_EQ(parse_flow({"flow", {{"to", "1"}, {"bytes", "x"}}}).status().message(), "flow: bytes is 'x'");
}

TEST(Lines, round_trip_and_malformed_lines_are_refused) {
  const std::vector<netcheck::Route> ways = {{.to = Rank(0), .address = "10.0.0.1:1"},
                                             {.to = Rank(12), .address = "[::1]:2"}};
  EXPECT_EQ(*parse_targets(to_lines(ways)), ways);
  EXPECT_THAT(*parse_targets(""), IsEmpty());
  EXPECT_EQ(parse_targets("x 10.0.0.1:1\n").status().message(), "ways: invalid line 'x 10.0.0.1:1'");
  EXPECT_EQ(parse_targets("7\n").status().message(), "ways: invalid line '7'");
}

TEST(Cores, are_written_short_and_read_back) {
  EXPECT_EQ(core_text({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(core_text({}), "");
  EXPECT_THAT(*parse_cores("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*parse_cores(""), IsEmpty());
  for (const char* bad : {"a", "3-1", "1-", ",", "-1", "0-65536"}) EXPECT_FALSE(parse_cores(bad).ok()) << bad;
}

TEST(Storage, paths_round_trip_and_malformed_paths_are_skipped) {
  const std::vector<CheckedPath> paths = {
      {.key = "data.train.source", .path = "/data/a b", .inode = 12, .changed = -5},
      {.key = "record.directory", .path = "/runs", .is_written = true, .probe = ".stoker-x"},
  };
  std::vector<CheckedPath> sent = paths;
  sent.push_back({.key = "stage.copy", .path = "/with\nline"});
  sent.push_back({.key = "stage.copy", .path = "/" + std::string(5000, 'x')});
  EXPECT_EQ(*parse_paths(to_lines(sent)), paths);
  EXPECT_EQ(parse_paths("r\t1\t2\t\tkey\trelative\n").status().message(),
            "paths: invalid line 'r\\x091\\x092\\x09\\x09key\\x09relative'");
  EXPECT_FALSE(parse_paths("r\t1\t2\t../x\tkey\t/a\n").ok());
  std::vector<CheckedPath> many(100'000, paths[0]);
  EXPECT_THAT(*parse_paths(to_lines(many)), ::testing::SizeIs(256));
}

TEST(Storage, what_a_node_sees_reads_back) {
  NodeView view{.problems = {"", "is not there", ""}, .local = "/tmp"};
  view.local_free = ByteCount{5'000'000'000};
  view.is_memory = true;
  std::int64_t wall = 0;
  const auto again = parse_view(to_message(view, 1'763'719'411'000'000'000), &wall);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, view);
  EXPECT_EQ(wall, 1'763'719'411'000'000'000);
  EXPECT_THAT(parse_view(to_message(NodeView{}, 1), &wall)->problems, IsEmpty());
}

}  // namespace
}  // namespace stoker::netcheck
