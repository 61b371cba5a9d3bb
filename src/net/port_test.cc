#include "net/port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

namespace stoker::net {
namespace {

// Listens on a port with or without SO_REUSEADDR; returns 0 or errno.
int listen_on(std::uint16_t port, bool reuse, Fd* keep) {
  *keep = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (reuse) ::setsockopt(keep->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  if (::bind(keep->get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0) return errno;
  return ::listen(keep->get(), 1) == 0 ? 0 : errno;
}

TEST(Port, two_reservations_from_one_seed_differ) {
  const auto first = PortReservation::find(7);
  const auto second = PortReservation::find(7);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->port(), second->port());
  EXPECT_LT(first->port(), first_ephemeral_port());
}

TEST(Port, a_reserved_port_is_available_only_to_its_program) {
  auto reserved = PortReservation::find(99);
  ASSERT_TRUE(reserved.ok());
  Fd other;
  EXPECT_EQ(listen_on(reserved->port(), false, &other), EADDRINUSE);
  EXPECT_EQ(PortReservation::reserve(reserved->port()).status().message(),
            format("port {}: in use by another program on this host", reserved->port()));
  EXPECT_EQ(listen_on(reserved->port(), true, &other), 0);
}

TEST(Port, skips_a_port_in_use) {
  auto reserved = PortReservation::find(1234);
  ASSERT_TRUE(reserved.ok());
  const std::uint16_t port = reserved->port();
  *reserved = PortReservation();
  Fd other;
  ASSERT_EQ(listen_on(port, true, &other), 0);
  EXPECT_EQ(PortReservation::reserve(port).status().code(), Code::unavailable);
  auto next = PortReservation::find(1234);
  ASSERT_TRUE(next.ok());
  EXPECT_NE(next->port(), port);
}

TEST(Port, the_ephemeral_range_is_read_from_proc) {
  const TempDirectory proc;
  ASSERT_TRUE(make_directories(proc / "sys/net/ipv4").ok());
  ASSERT_TRUE(write_file(proc / "sys/net/ipv4/ip_local_port_range", "15000\t60999\n").ok());
  EXPECT_EQ(first_ephemeral_port(proc.path()), 15000);
  EXPECT_EQ(first_ephemeral_port(proc / "absent"), 32768);
}

TEST(Host, the_name_has_no_domain) {
  EXPECT_FALSE(host_name().empty());
  EXPECT_EQ(host_name().find('.'), std::string::npos);
}

TEST(Port, stays_within_the_range_of_the_site) {
  auto held = PortReservation::find(11);
  ASSERT_TRUE(held.ok());
  const PortRange range{held->port(), held->port()};
  const std::string refused = PortReservation::find(5, range).status().to_string();
  EXPECT_TRUE(refused.starts_with(
      format("ports {} to {}: none of 1 tried is free on this host (", range.first, range.last)))
      << refused;
  *held = PortReservation();
  EXPECT_EQ(PortReservation::find(5, range)->port(), range.first);
}

TEST(PortRange, reads_back_and_refuses_invalid_text) {
  EXPECT_EQ(parse_port_range(to_text({21000, 21999})), (PortRange{21000, 21999}));
  for (std::string_view text : {"", "21000", "5-4", "0-9", "1-70000", "a-b"})
    EXPECT_EQ(parse_port_range(text), std::nullopt) << text;
}

TEST(Names, distinguishes_numeric_addresses_from_names) {
  EXPECT_TRUE(is_numeric_address("10.0.0.1"));
  EXPECT_TRUE(is_numeric_address("::1"));
  EXPECT_FALSE(is_numeric_address("node1"));
  EXPECT_FALSE(is_numeric_address("10.0.0"));
}

}  // namespace
}  // namespace stoker::net
