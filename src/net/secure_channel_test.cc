#include "net/secure_channel.h"

#include <optional>
#include <poll.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "base/thread.h"
#include "net/channel.h"

namespace stoker::net {
namespace {

using namespace std::chrono_literals;

Deadline in_time() { return Deadline::after(20s); }

std::pair<Fd, Fd> sockets() {
  int pair[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  return {Fd(pair[0]), Fd(pair[1])};
}

struct Ends {
  Result<SecureChannel> client = unavailable("not connected");
  Result<SecureChannel> server = unavailable("not connected");
};

Ends connect_ends(Fd client, Fd server, std::string_view client_secret, std::string_view server_secret) {
  Ends ends;
  Thread other([&, fd = std::move(server)](const StopToken&) mutable {
    ends.server = SecureChannel::accept(std::move(fd), server_secret, in_time());
  });
  ends.client = SecureChannel::connect(std::move(client), client_secret, in_time());
  other.join();
  return ends;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string text_of(const SecureFrame& frame) {
  return {reinterpret_cast<const char*>(frame.bytes.data()), frame.bytes.size()};
}

// A man in the middle: passes bytes on and changes one.
class Tamperer {
 public:
  Tamperer(Fd left, Fd right, std::optional<std::size_t> changed) {
    forward_ = Thread(
        [this, from = left.get(), to = right.get(), changed](const StopToken&) { copy(from, to, changed); });
    back_ = Thread([this, from = right.get(), to = left.get()](const StopToken&) { copy(from, to, {}); });
    left_ = std::move(left);
    right_ = std::move(right);
  }
  ~Tamperer() {
    ::shutdown(left_.get(), SHUT_RDWR);
    ::shutdown(right_.get(), SHUT_RDWR);
  }
  std::string seen;

 private:
  void copy(int from, int to, std::optional<std::size_t> changed) {
    char buffer[4096];
    std::size_t at = 0;
    ssize_t got = 0;
    while ((got = ::recv(from, buffer, sizeof buffer, 0)) > 0) {
      if (changed && *changed >= at && *changed < at + static_cast<std::size_t>(got))
        buffer[*changed - at] ^= 0x20;
      at += static_cast<std::size_t>(got);
      if (changed) seen.append(buffer, static_cast<std::size_t>(got));
      if (::send(to, buffer, static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) break;
    }
    ::shutdown(to, SHUT_WR);
  }
  Fd left_, right_;
  Thread forward_, back_;
};

TEST(SecureChannel, frames_arrive_in_order_in_both_directions) {
  auto [left, right] = sockets();
  Ends ends = connect_ends(std::move(left), std::move(right), "secret", "secret");
  ASSERT_TRUE(ends.client.ok() && ends.server.ok());
  ASSERT_TRUE(ends.client->send(7, bytes_of("head "), bytes_of("body")).ok());
  ASSERT_TRUE(ends.client->send(8, {}).ok());
  ASSERT_TRUE(ends.server->send(9, bytes_of("answer")).ok());
  auto frame = ends.server->receive(in_time());
  EXPECT_EQ(frame->kind, 7);
  EXPECT_EQ(text_of(*frame), "head body");
  frame = ends.server->receive(in_time());
  EXPECT_EQ(frame->kind, 8);
  EXPECT_EQ(text_of(*frame), "");
  EXPECT_EQ(text_of(*ends.client->receive(in_time())), "answer");
  EXPECT_EQ(ends.client->receive(Deadline::after(1ms)).status().code(), Code::timeout);
}

TEST(SecureChannel, a_frame_has_at_most_4_mib) {
  auto [left, right] = sockets();
  Ends ends = connect_ends(std::move(left), std::move(right), "secret", "secret");
  const std::string block(4u << 20, 'x');
  Thread sender([&](const StopToken&) {
    EXPECT_TRUE(ends.client->send(1, bytes_of("0123456789ab"), bytes_of(block)).ok());
  });
  EXPECT_EQ(text_of(*ends.server->receive(in_time())), "0123456789ab" + block);
  sender.join();
  EXPECT_EQ(ends.client->send(1, {}, bytes_of(block + block)).code(), Code::internal);
}

TEST(SecureChannel, a_different_secret_is_refused_by_both_ends) {
  auto [left, right] = sockets();
  const Ends ends = connect_ends(std::move(left), std::move(right), "secret", "Secret");
  EXPECT_EQ(ends.server.status().code(), Code::invalid);
  EXPECT_FALSE(ends.client.ok());
}

TEST(SecureChannel, a_different_program_is_refused) {
  auto [left, right] = sockets();
  const std::string request = "GET / HTTP/1.1\r\nHost: node0001\r\n\r\n";
  ASSERT_GT(::send(left.get(), request.data(), request.size(), 0), 0);
  EXPECT_EQ(SecureChannel::accept(std::move(right), "secret", in_time()).status().code(), Code::invalid);
  auto [silent, waiting] = sockets();
  EXPECT_EQ(SecureChannel::accept(std::move(waiting), "secret", Deadline::after(50ms)).status().code(),
            Code::timeout);
}

TEST(SecureChannel, frames_cannot_be_read_on_the_way) {
  auto [client, left] = sockets();
  auto [right, server] = sockets();
  Tamperer tamperer(std::move(left), std::move(right), 1u << 30);
  Ends ends = connect_ends(std::move(client), std::move(server), "the secret itself", "the secret itself");
  ASSERT_TRUE(ends.client.ok() && ends.server.ok());
  ASSERT_TRUE(ends.client->send(1, bytes_of("pixels of a patient")).ok());
  EXPECT_EQ(text_of(*ends.server->receive(in_time())), "pixels of a patient");
  EXPECT_EQ(tamperer.seen.find("patient"), std::string::npos);
  EXPECT_EQ(tamperer.seen.find("secret"), std::string::npos);
}

TEST(SecureChannel, each_changed_byte_is_noticed) {
  // The hello has 29 bytes, the proof 21, then a frame of 4 + 1 + 6 + 16.
  for (std::size_t changed = 0; changed < 29 + 21 + 27; ++changed) {
    if (changed >= 50 && changed < 54)
      continue;  // a length of gigabytes is refused, a smaller one waits for more
    auto [client, left] = sockets();
    auto [right, server] = sockets();
    const Tamperer tamperer(std::move(left), std::move(right), changed);
    Ends ends;
    Thread other([&, fd = std::move(server)](const StopToken&) mutable {
      ends.server = SecureChannel::accept(std::move(fd), "secret", Deadline::after(300ms));
    });
    ends.client = SecureChannel::connect(std::move(client), "secret", Deadline::after(300ms));
    other.join();
    if (!ends.client.ok() || !ends.server.ok()) continue;
    EXPECT_GE(changed, 50u);
    (void)ends.client->send(1, bytes_of("sample"));
    EXPECT_EQ(ends.server->receive(in_time()).status().code(), Code::corrupt) << changed;
  }
}

TEST(SecureChannel, a_closed_connection_is_unavailable) {
  auto [left, right] = sockets();
  Ends ends = connect_ends(std::move(left), std::move(right), "secret", "secret");
  Thread waiting([&](const StopToken&) {
    EXPECT_EQ(ends.server->receive(in_time()).status().code(), Code::unavailable);
  });
  ends.client->shut_down();
  waiting.join();
  EXPECT_FALSE(ends.client->send(1, {}).ok());
}

}  // namespace
}  // namespace stoker::net
