#include "net/world.h"

#include <poll.h>

#include <gmock/gmock.h>

#include "net/message_auth.h"

namespace stoker::net {
namespace {

using ::testing::ElementsAre;
using Kind = WorldEvent::Kind;

Deadline soon() { return Deadline::after(std::chrono::seconds(5)); }

Hello hello(int rank, int size = 2) { return {Rank(rank), WorldSize(size), "node1", 100 + rank}; }

TEST(RankRegistry, is_complete_once_every_rank_has_joined) {
  RankRegistry registry(WorldSize(2));
  EXPECT_THAT(registry.missing(), ElementsAre(Rank(0), Rank(1)));
  EXPECT_TRUE(registry.admit(hello(1)).ok());
  EXPECT_THAT(registry.missing(), ElementsAre(Rank(0)));
  EXPECT_TRUE(registry.admit(hello(0)).ok());
  EXPECT_TRUE(registry.is_complete());
}

TEST(RankRegistry, refuses_n_worlds_of_one) {
  RankRegistry registry(WorldSize(4));
  EXPECT_EQ(registry.admit(hello(0, 1)).to_string(),
            "rank 0 (node1, process 100): was started with a world size of 1, this run has 4\n"
            "  try: start all ranks with a single `stoker run`");
}

TEST(RankRegistry, refuses_doubles_and_numbers_out_of_range) {
  RankRegistry registry(WorldSize(2));
  ASSERT_TRUE(registry.admit(hello(1)).ok());
  EXPECT_EQ(registry.admit(hello(1)).message(),
            "rank 1 (node1, process 101): rank 1 already exists (node1, process 101)");
  EXPECT_EQ(registry.admit(hello(2)).message(), "rank 2 (node1, process 102): there are only ranks 0 to 1");
  Hello hindered = hello(0);
  hindered.problem = "port 29500: in use by another program on this host";
  EXPECT_EQ(registry.admit(hindered).message(),
            "rank 0 (node1, process 100): port 29500: in use by another program on this host");
  EXPECT_FALSE(registry.is_complete());
}

TEST(Hello, reads_back_and_refuses_invalid_numbers) {
  const auto again = parse_hello(to_message(hello(1)));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->rank, Rank(1));
  EXPECT_EQ(again->pid, 101);
  ControlMessage damaged = to_message(hello(1));
  damaged.with("rank", "-1");
  EXPECT_EQ(parse_hello(damaged).status().message(), "hello: rank is '-1'");
  EXPECT_EQ(parse_hello(ControlMessage{"beat", {}}).status().message(), "hello: got 'beat' instead");
}

// Waits until the server has reported `count` events.
std::vector<WorldEvent> events(WorldServer& server, std::size_t count) {
  std::vector<WorldEvent> all;
  const Deadline deadline = soon();
  while (all.size() < count && !deadline.passed()) {
    pollfd waiting{server.fd(), POLLIN, 0};
    ::poll(&waiting, 1, deadline.poll_ms(100));
    for (WorldEvent& event : server.poll_events()) all.push_back(std::move(event));
  }
  return all;
}

// The answer to a client that is not admitted.
std::string answer_to(Channel& channel, WorldServer& server) {
  const Deadline deadline = soon();
  while (!deadline.passed()) {
    EXPECT_TRUE(server.poll_events().empty());
    const auto received = channel.receive();
    if (!received.ok() || !received->empty())
      return received.ok() ? std::string(received->at(0).text("why")) : "";
  }
  return "";
}

std::vector<ControlMessage> messages(Channel& channel) {
  pollfd waiting{channel.fd(), POLLIN, 0};
  ::poll(&waiting, 1, soon().poll_ms());
  auto received = channel.receive();
  return received.ok() ? *received : std::vector<ControlMessage>{};
}

struct World : ::testing::Test {
  Result<WorldServer> server = WorldServer::listen(WorldSize(2), "secret", ListenScope::loopback);
};

TEST_F(World, joins_exchanges_messages_and_detects_departures) {
  ASSERT_TRUE(server.ok());
  auto rank = join(server->invitation(), hello(1), soon());
  ASSERT_TRUE(rank.ok()) << rank.status().to_string();
  auto seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].kind, Kind::joined);
  EXPECT_EQ(seen[0].rank, Rank(1));
  EXPECT_EQ(seen[0].hello.address, "127.0.0.1");
  server->broadcast(ControlMessage{"welcome", {{"port", "4"}}});
  EXPECT_THAT(messages(*rank), ElementsAre(ControlMessage{"welcome", {{"port", "4"}}}));
  ASSERT_TRUE(rank->send(ControlMessage{"beat", {{"step", "3"}}}).ok());
  seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].message.integer("step"), 3);
  *rank = Channel();
  seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].kind, Kind::left);
}

TEST_F(World, a_refused_rank_and_the_run_receive_the_reason) {
  auto rank = join(server->invitation(), hello(0, 1), soon());
  ASSERT_TRUE(rank.ok());
  const auto seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].kind, Kind::refused);
  const auto received = messages(*rank);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].kind, "refused");
  EXPECT_EQ(received[0].text("why"), seen[0].text);
}

TEST_F(World, unknown_clients_have_no_effect) {
  const std::string address = server->invitation().substr(7);
  auto noise = Channel::connect(address, soon());
  ASSERT_TRUE(noise.ok());
  auto guesser = join("guess@" + address, hello(0), soon());
  ASSERT_TRUE(guesser.ok());
  ASSERT_TRUE(noise->send(ControlMessage{"stop", {}}).ok());
  auto rank = join(server->invitation(), hello(0), soon());
  const auto seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].kind, Kind::joined);
}

TEST_F(World, too_many_unknown_clients_do_not_block_a_rank) {
  const std::string address = server->invitation().substr(7);
  std::vector<Channel> strangers;
  for (int i = 0; i < 300; ++i) {
    auto channel = Channel::connect(address, soon());
    ASSERT_TRUE(channel.ok()) << channel.status().message();
    strangers.push_back(std::move(*channel));
    if (i % 100 == 99) {
      EXPECT_TRUE(server->poll_events().empty());
    }
  }
  // The connection is accepted before the client sends its hello.
  auto rank = Channel::connect(address, soon());
  ASSERT_TRUE(rank.ok());
  EXPECT_TRUE(server->poll_events().empty());
  ASSERT_TRUE(rank->send(signed_message(to_message(hello(0)), "secret")).ok());
  const auto seen = events(*server, 1);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].kind, Kind::joined);
}

TEST_F(World, a_replayed_hello_is_refused) {
  const std::string address = server->invitation().substr(7);
  const ControlMessage recorded = signed_message(to_message(hello(0)), "secret");
  auto first = Channel::connect(address, soon());
  ASSERT_TRUE(first.ok() && first->send(recorded).ok());
  ASSERT_EQ(events(*server, 1).at(0).kind, Kind::joined);
  *first = Channel();
  ASSERT_EQ(events(*server, 1).at(0).kind, Kind::left);
  auto again = Channel::connect(address, soon());
  ASSERT_TRUE(again.ok() && again->send(recorded).ok());
  EXPECT_EQ(answer_to(*again, *server), "rank 0 (node1, process 100): repeated message");
}

TEST_F(World, an_unknown_client_receives_the_reason_but_the_run_does_not) {
  auto guesser = join("guess@" + server->invitation().substr(7), hello(0), soon());
  ASSERT_TRUE(guesser.ok());
  EXPECT_EQ(answer_to(*guesser, *server), "rank 0 (node1, process 100): has the wrong secret for this run");
}

TEST_F(World, a_missing_server_is_an_error_with_the_address) {
  const std::string invitation = server->invitation();
  *server = *WorldServer::listen(WorldSize(2), "secret", ListenScope::loopback);
  const auto rank = join(invitation, hello(0), soon());
  EXPECT_EQ(rank.status().message(),
            format("cannot reach the run: {}: connection refused", invitation.substr(7)));
}

TEST(Join, a_malformed_invitation_is_named) {
  EXPECT_EQ(join("nonsense", hello(0), soon()).status().message(),
            "invitation 'nonsense': not <secret>@<addresses>");
  EXPECT_EQ(join("t@nonsense", hello(0), soon()).status().message(),
            "cannot reach the run: address 'nonsense': expected the form 10.0.0.1:4000 or [fe80::1]:4000");
}

}  // namespace
}  // namespace stoker::net
