#include "net/world.h"

#include <poll.h>

#include <gmock/gmock.h>

#include "net/seal.h"

namespace stoker::net {
namespace {

using ::testing::ElementsAre;
using Kind = WorldEvent::Kind;

Deadline soon() { return Deadline::after(std::chrono::seconds(5)); }

Hello hello(int rank, int size = 2) { return {Rank(rank), WorldSize(size), "node1", 100 + rank}; }

TEST(Roster, is_complete_when_every_rank_came_once) {
  Roster roster(WorldSize(2));
  EXPECT_THAT(roster.missing(), ElementsAre(Rank(0), Rank(1)));
  EXPECT_TRUE(roster.admit(hello(1)).ok());
  EXPECT_THAT(roster.missing(), ElementsAre(Rank(0)));
  EXPECT_TRUE(roster.admit(hello(0)).ok());
  EXPECT_TRUE(roster.is_complete());
}

TEST(Roster, refuses_n_worlds_of_one) {
  Roster roster(WorldSize(4));
  EXPECT_EQ(roster.admit(hello(0, 1)).to_string(),
            "rank 0 (node1, process 100): is in a world of 1, this run has 4\n"
            "  try: start all ranks by one `stoker run`, not each by its own");
}

TEST(Roster, refuses_doubles_and_numbers_out_of_range) {
  Roster roster(WorldSize(2));
  ASSERT_TRUE(roster.admit(hello(1)).ok());
  EXPECT_EQ(roster.admit(hello(1)).message(),
            "rank 1 (node1, process 101): rank 1 is there already (node1, process 101)");
  EXPECT_EQ(roster.admit(hello(2)).message(), "rank 2 (node1, process 102): there are only ranks 0 to 1");
  Hello hindered = hello(0);
  hindered.problem = "port 29500: taken by another program on this host";
  EXPECT_EQ(roster.admit(hindered).message(),
            "rank 0 (node1, process 100): port 29500: taken by another program on this host");
  EXPECT_FALSE(roster.is_complete());
}

TEST(Hello, reads_back_and_refuses_what_is_no_number) {
  const auto again = parse_hello(to_message(hello(1)));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->rank, Rank(1));
  EXPECT_EQ(again->pid, 101);
  Message damaged = to_message(hello(1));
  damaged.with("rank", "-1");
  EXPECT_EQ(parse_hello(damaged).status().message(), "hello: rank is '-1'");
  EXPECT_EQ(parse_hello(Message{"beat", {}}).status().message(), "hello: got 'beat' instead");
}

// Waits until the server has reported `count` events.
std::vector<WorldEvent> events(WorldServer& server, std::size_t count) {
  std::vector<WorldEvent> all;
  const Deadline deadline = soon();
  while (all.size() < count && !deadline.passed()) {
    pollfd waiting{server.fd(), POLLIN, 0};
    ::poll(&waiting, 1, deadline.poll_ms(100));
    for (WorldEvent& event : server.take()) all.push_back(std::move(event));
  }
  return all;
}

// What the server answers to somebody it lets do nothing.
std::string answer_to(Channel& channel, WorldServer& server) {
  const Deadline deadline = soon();
  while (!deadline.passed()) {
    EXPECT_TRUE(server.take().empty());
    const auto received = channel.receive();
    if (!received.ok() || !received->empty())
      return received.ok() ? std::string(received->at(0).text("why")) : "";
  }
  return "";
}

std::vector<Message> messages(Channel& channel) {
  pollfd waiting{channel.fd(), POLLIN, 0};
  ::poll(&waiting, 1, soon().poll_ms());
  auto received = channel.receive();
  return received.ok() ? *received : std::vector<Message>{};
}

struct World : ::testing::Test {
  Result<WorldServer> server = WorldServer::listen(WorldSize(2), "secret", Reach::this_host);
};

TEST_F(World, joins_exchanges_messages_and_notices_who_leaves) {
  ASSERT_TRUE(server.ok());
  auto rank = join(server->invitation(), hello(1), soon());
  ASSERT_TRUE(rank.ok()) << rank.status().to_string();
  auto seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].kind, Kind::joined);
  EXPECT_EQ(seen[0].rank, Rank(1));
  EXPECT_EQ(seen[0].hello.address, "127.0.0.1");
  server->broadcast(Message{"welcome", {{"port", "4"}}});
  EXPECT_THAT(messages(*rank), ElementsAre(Message{"welcome", {{"port", "4"}}}));
  ASSERT_TRUE(rank->send(Message{"beat", {{"step", "3"}}}).ok());
  seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].message.integer("step"), 3);
  *rank = Channel();
  seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].kind, Kind::left);
}

TEST_F(World, a_refused_rank_hears_why_and_the_run_too) {
  auto rank = join(server->invitation(), hello(0, 1), soon());
  ASSERT_TRUE(rank.ok());
  const auto seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].kind, Kind::refused);
  const auto heard = messages(*rank);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].kind, "refused");
  EXPECT_EQ(heard[0].text("why"), seen[0].text);
}

TEST_F(World, strangers_change_nothing) {
  const std::string address = server->invitation().substr(7);
  auto noise = Channel::connect(address, soon());
  ASSERT_TRUE(noise.ok());
  auto guesser = join("guess@" + address, hello(0), soon());
  ASSERT_TRUE(guesser.ok());
  ASSERT_TRUE(noise->send(Message{"stop", {}}).ok());
  auto rank = join(server->invitation(), hello(0), soon());
  const auto seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].kind, Kind::joined);
}

TEST_F(World, more_strangers_than_there_is_room_for_do_not_keep_a_rank_out) {
  const std::string address = server->invitation().substr(7);
  std::vector<Channel> strangers;
  for (int i = 0; i < 300; ++i) {
    auto channel = Channel::connect(address, soon());
    ASSERT_TRUE(channel.ok()) << channel.status().message();
    strangers.push_back(std::move(*channel));
    if (i % 100 == 99) {
      EXPECT_TRUE(server->take().empty());
    }
  }
  // Connected, and seen by the run before it says hello.
  auto rank = Channel::connect(address, soon());
  ASSERT_TRUE(rank.ok());
  EXPECT_TRUE(server->take().empty());
  ASSERT_TRUE(rank->send(sealed(to_message(hello(0)), "secret")).ok());
  const auto seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].kind, Kind::joined);
}

TEST_F(World, a_hello_that_was_recorded_is_of_no_use) {
  const std::string address = server->invitation().substr(7);
  const Message recorded = sealed(to_message(hello(0)), "secret");
  auto first = Channel::connect(address, soon());
  ASSERT_TRUE(first.ok() && first->send(recorded).ok());
  ASSERT_EQ(events(*server, 1).at(0).kind, Kind::joined);
  *first = Channel();
  ASSERT_EQ(events(*server, 1).at(0).kind, Kind::left);
  auto again = Channel::connect(address, soon());
  ASSERT_TRUE(again.ok() && again->send(recorded).ok());
  EXPECT_EQ(answer_to(*again, *server), "rank 0 (node1, process 100): said this before");
}

TEST_F(World, a_stranger_is_told_why_and_the_run_is_not) {
  auto guesser = join("guess@" + server->invitation().substr(7), hello(0), soon());
  ASSERT_TRUE(guesser.ok());
  EXPECT_EQ(answer_to(*guesser, *server),
            "rank 0 (node1, process 100): does not know the secret of this run");
}

TEST_F(World, nobody_there_is_an_error_with_the_address) {
  const std::string invitation = server->invitation();
  *server = *WorldServer::listen(WorldSize(2), "secret", Reach::this_host);
  const auto rank = join(invitation, hello(0), soon());
  EXPECT_EQ(rank.status().message(),
            format("cannot reach the run: {}: connection refused", invitation.substr(7)));
}

TEST(Join, a_malformed_invitation_is_named) {
  EXPECT_EQ(join("nonsense", hello(0), soon()).status().message(),
            "invitation 'nonsense': not <secret>@<addresses>");
  EXPECT_EQ(join("t@nonsense", hello(0), soon()).status().message(),
            "cannot reach the run: address 'nonsense': not like 10.0.0.1:4000 or [fe80::1]:4000");
}

}  // namespace
}  // namespace stoker::net
