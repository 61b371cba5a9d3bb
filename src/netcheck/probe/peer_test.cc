#include "netcheck/probe/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <gmock/gmock.h>

#include "net/message_auth.h"

namespace stoker::netcheck {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::Gt;

Deadline soon() { return Deadline::after(20s); }

struct Peers : ::testing::Test {
  Result<PeerServer> server = PeerServer::start(Rank(1), "secret", net::ListenScope::loopback);
  Caller caller{.rank = Rank(0), .secret = "secret"};

  void SetUp() override { ASSERT_TRUE(server.ok()); }
  std::string address() const { return server->addresses().at(0); }
  std::vector<Route> try_one(const std::string& to, const Caller& who, RouteTimeouts limits = {}) {
    auto tried = probe_routes({{.to = Rank(1), .address = to}}, who, limits);
    EXPECT_TRUE(tried.ok()) << tried.status().to_string();
    return tried.ok() ? *tried : std::vector<Route>{};
  }
};

// A loopback socket that listens and never accepts, or only holds its port.
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

TEST_F(Peers, working_connection_has_times) {
  EXPECT_THAT(try_one(address(), caller),
              ElementsAre(AllOf(Field(&Route::error, ""), Field(&Route::connect_s, Gt(0.0)),
                                Field(&Route::round_trip_s, Gt(0.0)))));
}

TEST_F(Peers, closed_port_is_refused) {
  const Silent bound(false);
  EXPECT_THAT(try_one(bound.address, caller), ElementsAre(Field(&Route::error, "connection refused")));
}

TEST_F(Peers, silent_process_differs_from_silent_host) {
  const Silent listening(true);
  EXPECT_THAT(try_one(listening.address, caller, {.connect = 5s, .answer = 200ms}),
              ElementsAre(Field(&Route::error, "accepts the connection, but sends nothing for 200 ms")));
}

TEST_F(Peers, who_does_not_know_the_secret_is_dropped) {
  const Caller stranger{.rank = Rank(0), .secret = "guess"};
  EXPECT_THAT(try_one(address(), stranger),
              ElementsAre(Field(&Route::error, "accepts the connection and closes it")));
}

TEST_F(Peers, a_call_for_another_rank_is_dropped) {
  auto tried = probe_routes({{.to = Rank(7), .address = address()}}, caller, {});
  ASSERT_TRUE(tried.ok());
  EXPECT_EQ(tried->at(0).error, "accepts the connection and closes it");
}

TEST_F(Peers, malformed_address_is_invalid) {
  EXPECT_THAT(try_one("nonsense", caller),
              ElementsAre(Field(&Route::error,
                                "address 'nonsense': expected the form 10.0.0.1:4000 or [fe80::1]:4000")));
}

TEST_F(Peers, noise_and_oversized_frames_are_harmless) {
  for (const std::string& noise : {std::string(5000, 'A'), std::string("STK1\xff\xff\xff\xff", 8),
                                   std::string("GET / HTTP/1.0\r\n\r\n"), std::string("STK1\1\0\0\0\0", 9)}) {
    auto channel = net::Channel::connect(address(), soon());
    ASSERT_TRUE(channel.ok());
    ASSERT_GT(::send(channel->fd(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
    EXPECT_THAT(try_one(address(), caller), ElementsAre(Field(&Route::error, "")));
  }
}

TEST_F(Peers, a_call_that_was_recorded_is_of_no_use) {
  net::ControlMessage call{"call", {}};
  call.with("from", std::int64_t{0}).with("to", std::int64_t{1}).with("purpose", "echo");
  const net::ControlMessage recorded = signed_message(call, "secret");
  const auto is_answered = [&] {
    auto channel = net::Channel::connect(address(), soon());
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
  std::vector<net::Channel> strangers;
  for (int i = 0; i < 300; ++i) {
    auto channel = net::Channel::connect(address(), soon());
    ASSERT_TRUE(channel.ok()) << channel.status().message();
    strangers.push_back(std::move(*channel));
  }
  EXPECT_THAT(try_one(address(), caller), ElementsAre(Field(&Route::error, "")));
}

TEST_F(Peers, a_flow_counts_what_arrived) {
  const auto flow = measure_bandwidth(Rank(1), address(), caller, 20s);
  ASSERT_TRUE(flow.ok()) << flow.status().to_string();
  EXPECT_EQ(flow->error, "");
  EXPECT_GE(flow->bytes, 64u << 10);
  EXPECT_GT(flow->bytes_per_s(), 0);
}

TEST_F(Peers, a_flow_to_a_process_that_stands_still_ends) {
  const Silent listening(true);
  const auto flow = measure_bandwidth(Rank(1), listening.address, caller, 200ms);
  ASSERT_TRUE(flow.ok());
  EXPECT_EQ(flow->error, "no answer within 200 ms");
}

TEST_F(Peers, waits_end_when_the_caller_wants_an_end) {
  const Silent listening(true);
  Caller impatient = caller;
  impatient.keep_going = [] { return false; };
  EXPECT_EQ(probe_routes({{.to = Rank(1), .address = listening.address}}, impatient, {}).status().code(),
            Code::cancelled);
  EXPECT_EQ(measure_bandwidth(Rank(1), listening.address, impatient, 20s).status().code(), Code::cancelled);
  EXPECT_EQ(server->accept_ring_connection(Rank(3), soon(), [] { return false; }).status().code(),
            Code::cancelled);
}

TEST_F(Peers, ring_connection_is_passed_on) {
  const auto ours = connect_ring(Rank(1), address(), caller, soon());
  ASSERT_TRUE(ours.ok()) << ours.status().to_string();
  const auto theirs = server->accept_ring_connection(Rank(0), soon(), [] { return true; });
  ASSERT_TRUE(theirs.ok());
  ASSERT_EQ(::send(ours->get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(
      server->accept_ring_connection(Rank(0), Deadline::after(50ms), [] { return true; }).status().message(),
      "rank 0: did not connect");
}

}  // namespace
}  // namespace stoker::netcheck
