#include "rank/process/tcp_table.h"

#include <filesystem>
#include <unistd.h>

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::rank {
namespace {

constexpr const char* kHeader =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
// 10.77.1.2:50000 to 10.77.1.3:29500, sent again 5 times.
constexpr const char* kStuck =
    "   1: 02014D0A:C350 03014D0A:733C 01 00001000:00000000 01:00000400 00000005     0        0 4711 2 0 20 "
    "4 30 10 -1\n";
constexpr const char* kFine =
    "   2: 02014D0A:C351 04014D0A:733C 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 "
    "4 30 10 -1\n";
constexpr const char* kLoopback =
    "   3: 0100007F:C352 0100007F:733C 01 00001000:00000000 01:00000400 00000009     0        0 4713 1 0 20 "
    "4 30 10 -1\n";

TEST(TcpLine, has_ends_retransmits_and_inode) {
  const auto socket = parse_tcp_line(kStuck);
  ASSERT_TRUE(socket);
  EXPECT_EQ(*socket, (TcpSocket{50000, "10.77.1.3", 29500, true, 5, "4711"}));
}

TEST(TcpLine, an_address_of_ipv4_in_ipv6_is_shown_as_ipv4) {
  const auto socket = parse_tcp_line(
      "  0: 0000000000000000FFFF00000200A8C0:1F90 0000000000000000FFFF00000300A8C0:1F91 01 00000000:00000000 "
      "00:00000000 00000000     0        0 99 1 0 20 4 30 10 -1");
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->peer, "192.168.0.3");
  const auto v6 = parse_tcp_line(
      "  0: 00000000000000000000000000000000:1F90 000080FE000000000000000001000000:1F91 01 00000000:00000000 "
      "00:00000000 00000000     0        0 99 1 0 20 4 30 10 -1");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->peer, "fe80::1");
}

TEST(TcpLine, what_is_no_socket_is_nothing) {
  for (const char* line : {kHeader, "", "1: x y 01 0:0 0:0 0 0 0 5", "1: 0:0 0:0 01 0:0 0:0 zz 0 0 5",
                           "1: 02014D0A:1C350 03014D0A:733C 01 0:0 0:0 0 0 0 5"}) {
    EXPECT_FALSE(parse_tcp_line(line)) << line;
  }
}

// A /proc in which process 7 has the sockets of these inodes open.
void make_proc(const TempDirectory& proc, const std::string& table, const std::vector<std::string>& inodes) {
  ASSERT_TRUE(make_directories(proc / "7/net").ok());
  ASSERT_TRUE(make_directories(proc / "7/fd").ok());
  ASSERT_TRUE(write_file(proc / "7/net/tcp", table).ok());
  int fd = 3;
  for (const std::string& inode : inodes)
    std::filesystem::create_symlink("socket:[" + inode + "]", proc / "7/fd" / std::to_string(fd++));
}

TEST(UnresponsivePeer, is_the_one_that_acknowledges_nothing) {
  const TempDirectory proc;
  make_proc(proc, format("{}{}{}{}", kHeader, kFine, kStuck, kLoopback), {"4711", "4712", "4713"});
  EXPECT_EQ(unresponsive_peer({7}, 4, proc.path()), "10.77.1.3");
  EXPECT_EQ(unresponsive_peer({7}, 6, proc.path()), "");
}

TEST(UnresponsivePeer, of_other_processes_is_not_ours) {
  const TempDirectory proc;
  make_proc(proc, format("{}{}", kHeader, kStuck), {"4712"});
  EXPECT_EQ(unresponsive_peer({7}, 4, proc.path()), "");
  EXPECT_EQ(unresponsive_peer({8}, 4, proc.path()), "");
  EXPECT_EQ(unresponsive_peer({}, 4, proc.path()), "");
}

TEST(HoldsSocket, sees_what_is_open) {
  const TempDirectory proc;
  make_proc(proc, "", {"12"});
  EXPECT_TRUE(holds_socket(7, {"11", "12"}, proc.path()));
  EXPECT_FALSE(holds_socket(7, {"1"}, proc.path()));
  EXPECT_FALSE(holds_socket(9, {"12"}, proc.path()));
}

}  // namespace
}  // namespace stoker::rank
