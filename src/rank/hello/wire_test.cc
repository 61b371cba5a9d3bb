#include "rank/hello/wire.h"

#include <gmock/gmock.h>

#include "rank/hello/facts.h"

namespace stoker::rank::hello {
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
  facts.interfaces = {
      {.name = "lo", .address = "127.0.0.1", .prefix = 8, .is_loopback = true, .mtu = 65536},
      {.name = "eth0", .address = "10.0.0.2", .prefix = 24, .mtu = 1500, .speed_mbit = 10000}};
  facts.gloo = {facts.interfaces[1], ""};
  facts.nccl = {std::nullopt, "NCCL_SOCKET_IFNAME=x names no interface that is up"};
  facts.fabric = {{.device = "mlx5_0", .port = 1, .is_active = true, .state = "ACTIVE"}};
  facts.variables = {{"NCCL_SOCKET_IFNAME", "x"}};
  facts.addresses = {"10.0.0.2:4000", "10.1.0.2:4000"};
  facts.master_port = 29500;
  facts.master_problem = "port 29500: taken by another program on this host";
  facts.free_port = 12345;
  return facts;
}

TEST(Facts, read_back_as_they_were_sent) {
  RankFacts again;
  for (const net::Message& message : to_messages(some_facts())) ASSERT_TRUE(take_in(message, &again).ok());
  EXPECT_EQ(again, some_facts());
}

TEST(Facts, an_empty_variable_is_not_one_that_is_not_set) {
  RankFacts facts;
  facts.visible_gpus = "";
  RankFacts again;
  for (const net::Message& message : to_messages(facts)) ASSERT_TRUE(take_in(message, &again).ok());
  EXPECT_EQ(again.visible_gpus, "");
}

TEST(Facts, numbers_that_make_no_sense_are_refused) {
  RankFacts facts;
  net::Message place = to_messages(some_facts()).back();
  EXPECT_EQ(take_in(net::Message(place).with("master_port", std::int64_t{65536}), &facts).message(),
            "place: master_port is '65536'");
  EXPECT_EQ(take_in(net::Message(place).with("cores", "0-99999"), &facts).message(),
            "cores '0-99999': not like 0-3,8");
  EXPECT_EQ(take_in({"gossip", {}}, &facts).message(), "no fact 'gossip'");
  EXPECT_EQ(take_in({"interface", {{"name", "eth0"}}}, &facts).message(), "interface: prefix is ''");
}

TEST(Facts, no_host_has_more_interfaces_than_we_have_room_for) {
  RankFacts facts;
  const net::Message one = to_messages(some_facts()).front();
  for (int i = 0; i < 1024; ++i) ASSERT_TRUE(take_in(one, &facts).ok());
  EXPECT_EQ(take_in(one, &facts).message(), "interface: more than 1024");
}

TEST(Answers, read_back_as_they_were_sent) {
  const net::Resolved name{
      .name = "n3", .addresses = {"10.0.0.3"}, .seconds = 0.5, .reverse_seconds = 2, .error = ""};
  EXPECT_EQ(*parse_resolved(to_message(name)), name);
  const net::Way way{
      .to = Rank(3), .address = "10.0.0.3:4000", .error = "no route", .connect_s = 0.25, .round_trip_s = 0.5};
  EXPECT_EQ(*parse_way(to_message(way)), way);
  const net::Flow flow{.to = Rank(3), .bytes = 1 << 20, .seconds = 0.25, .error = ""};
  EXPECT_EQ(*parse_flow(to_message(flow)), flow);
  EXPECT_EQ(parse_way({"way", {{"to", "-1"}}}).status().message(), "way: to is '-1'");
  EXPECT_EQ(parse_flow({"flow", {{"to", "1"}, {"bytes", "x"}}}).status().message(), "flow: bytes is 'x'");
}

TEST(Lines, read_back_and_are_refused_when_they_are_none) {
  const std::vector<net::Way> ways = {{.to = Rank(0), .address = "10.0.0.1:1"},
                                      {.to = Rank(12), .address = "[::1]:2"}};
  EXPECT_EQ(*parse_lines(to_lines(ways)), ways);
  EXPECT_THAT(*parse_lines(""), IsEmpty());
  EXPECT_EQ(parse_lines("x 10.0.0.1:1\n").status().message(), "ways: 'x 10.0.0.1:1' is none");
  EXPECT_EQ(parse_lines("7\n").status().message(), "ways: '7' is none");
}

TEST(Cores, are_written_short_and_read_back) {
  EXPECT_EQ(core_text({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(core_text({}), "");
  EXPECT_THAT(*parse_cores("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*parse_cores(""), IsEmpty());
  for (const char* bad : {"a", "3-1", "1-", ",", "-1", "0-65536"}) EXPECT_FALSE(parse_cores(bad).ok()) << bad;
}

TEST(Storage, paths_read_back_and_those_that_are_no_line_are_left_out) {
  const std::vector<AskedPath> paths = {
      {.key = "data.train.source", .path = "/data/a b", .inode = 12, .changed = -5},
      {.key = "record.directory", .path = "/runs", .is_written = true, .probe = ".stoker-x"},
  };
  std::vector<AskedPath> sent = paths;
  sent.push_back({.key = "stage.copy", .path = "/with\nline"});
  sent.push_back({.key = "stage.copy", .path = "/" + std::string(5000, 'x')});
  EXPECT_EQ(*parse_paths(to_lines(sent)), paths);
  EXPECT_EQ(parse_paths("r\t1\t2\t\tkey\trelative\n").status().message(),
            "paths: 'r\\x091\\x092\\x09\\x09key\\x09relative' is none");
  EXPECT_FALSE(parse_paths("r\t1\t2\t../x\tkey\t/a\n").ok());
  std::vector<AskedPath> many(100'000, paths[0]);
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
}  // namespace stoker::rank::hello
