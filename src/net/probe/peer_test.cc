#include "net/probe/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <gmock/gmock.h>

#include "net/seal.h"

namespace stoker::net {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::Gt;

Deadline soon() { return Deadline::after(20s); }

struct Peers : ::testing::Test {
  Result<PeerServer> server = PeerServer::start(Rank(1), "secret", Reach::this_host);
  Caller caller{.rank = Rank(0), .secret = "secret"};

  void SetUp() override { ASSERT_TRUE(server.ok()); }
  std::string address() const { return server->addresses().at(0); }
  std::vector<Way> try_one(const std::string& to, const Caller& who, WayLimits limits = {}) {
    auto tried = try_ways({{.to = Rank(1), .address = to}}, who, limits);
    EXPECT_TRUE(tried.ok()) << tried.status().to_string();
    return tried.ok() ? *tried : std::vector<Way>{};
  }
};

// A socket on loopback that listens and never accepts, or only holds its port.
struct Silent {
  Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string address;

  explicit Silent(bool listens) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    auto* raw = reinterpret_cast<sockaddr*>(&any);
    EXPECT_EQ(::bind(fd.get(), raw, size), 0);
    if (listens) {
      EXPECT_EQ(::listen(fd.get(), 8), 0);
    }
    EXPECT_EQ(::getsockname(fd.get(), raw, &size), 0);
    address = format("127.0.0.1:{}", ntohs(any.sin_port));
  }
};

TEST_F(Peers, a_way_that_works_tells_its_times) {
  EXPECT_THAT(try_one(address(), caller),
              ElementsAre(AllOf(Field(&Way::error, ""), Field(&Way::connect_s, Gt(0.0)),
                                Field(&Way::round_trip_s, Gt(0.0)))));
}

TEST_F(Peers, a_port_that_nobody_listens_on_is_refused) {
  const Silent bound(false);
  EXPECT_THAT(try_one(bound.address, caller), ElementsAre(Field(&Way::error, "connection refused")));
}

TEST_F(Peers, a_process_that_says_nothing_is_told_from_a_host_that_does_not_answer) {
  const Silent listening(true);
  EXPECT_THAT(try_one(listening.address, caller, {.connect = 5s, .answer = 200ms}),
              ElementsAre(Field(&Way::error, "connects, but says nothing for 200 ms")));
}

TEST_F(Peers, who_does_not_know_the_secret_is_dropped) {
  const Caller stranger{.rank = Rank(0), .secret = "guess"};
  EXPECT_THAT(try_one(address(), stranger),
              ElementsAre(Field(&Way::error, "connects, and is closed by the other end")));
}

TEST_F(Peers, a_call_for_another_rank_is_dropped) {
  auto tried = try_ways({{.to = Rank(7), .address = address()}}, caller, {});
  ASSERT_TRUE(tried.ok());
  EXPECT_EQ(tried->at(0).error, "connects, and is closed by the other end");
}

TEST_F(Peers, an_address_that_is_none_is_the_caller_s_mistake) {
  EXPECT_THAT(
      try_one("nonsense", caller),
      ElementsAre(Field(&Way::error, "address 'nonsense': not like 10.0.0.1:4000 or [fe80::1]:4000")));
}

TEST_F(Peers, noise_and_too_large_frames_disturb_nobody) {
  for (const std::string& noise : {std::string(5000, 'A'), std::string("STK1\xff\xff\xff\xff", 8),
                                   std::string("GET / HTTP/1.0\r\n\r\n"), std::string("STK1\1\0\0\0\0", 9)}) {
    auto channel = Channel::connect(address(), soon());
    ASSERT_TRUE(channel.ok());
    ASSERT_GT(::send(channel->fd(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
    EXPECT_THAT(try_one(address(), caller), ElementsAre(Field(&Way::error, "")));
  }
}

TEST_F(Peers, a_call_that_was_recorded_is_of_no_use) {
  Message call{"call", {}};
  call.with("from", std::int64_t{0}).with("to", std::int64_t{1}).with("purpose", "echo");
  const Message recorded = sealed(call, "secret");
  const auto is_answered = [&] {
    auto channel = Channel::connect(address(), soon());
    EXPECT_TRUE(channel.ok() && channel->send(recorded).ok());
    for (const Deadline deadline = soon(); !deadline.passed();) {
      const auto received = channel->receive();
      if (received.ok() && !received->empty()) return true;
      if (channel->is_closed()) return false;
    }
    return false;
  };
  EXPECT_TRUE(is_answered());
  EXPECT_FALSE(is_answered());
}

TEST_F(Peers, more_strangers_than_there_is_room_for_do_not_keep_a_rank_out) {
  std::vector<Channel> strangers;
  for (int i = 0; i < 300; ++i) {
    auto channel = Channel::connect(address(), soon());
    ASSERT_TRUE(channel.ok()) << channel.status().message();
    strangers.push_back(std::move(*channel));
  }
  EXPECT_THAT(try_one(address(), caller), ElementsAre(Field(&Way::error, "")));
}

TEST_F(Peers, a_flow_counts_what_arrived) {
  const auto flow = measure_flow(Rank(1), address(), caller, 20s);
  ASSERT_TRUE(flow.ok()) << flow.status().to_string();
  EXPECT_EQ(flow->error, "");
  EXPECT_GE(flow->bytes, 64u << 10);
  EXPECT_GT(flow->bytes_per_s(), 0);
}

TEST_F(Peers, a_flow_to_a_process_that_stands_still_ends) {
  const Silent listening(true);
  const auto flow = measure_flow(Rank(1), listening.address, caller, 200ms);
  ASSERT_TRUE(flow.ok());
  EXPECT_EQ(flow->error, "no answer within 200 ms");
}

TEST_F(Peers, waits_end_when_the_caller_wants_an_end) {
  const Silent listening(true);
  Caller impatient = caller;
  impatient.keep_going = [] { return false; };
  EXPECT_EQ(try_ways({{.to = Rank(1), .address = listening.address}}, impatient, {}).status().code(),
            Code::cancelled);
  EXPECT_EQ(measure_flow(Rank(1), listening.address, impatient, 20s).status().code(), Code::cancelled);
  EXPECT_EQ(server->take_ring(Rank(3), soon(), [] { return false; }).status().code(), Code::cancelled);
}

TEST_F(Peers, a_call_for_a_ring_is_handed_over) {
  const auto ours = call_for_ring(Rank(1), address(), caller, soon());
  ASSERT_TRUE(ours.ok()) << ours.status().to_string();
  const auto theirs = server->take_ring(Rank(0), soon(), [] { return true; });
  ASSERT_TRUE(theirs.ok());
  ASSERT_EQ(::send(ours->get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(server->take_ring(Rank(0), Deadline::after(50ms), [] { return true; }).status().message(),
            "rank 0: did not call");
}

}  // namespace
}  // namespace stoker::net
