#include "stage/broadcast/peer_list.h"

#include <gtest/gtest.h>

namespace stoker::stage {
namespace {

TEST(PeerList, lines_are_read_back_and_other_lines_are_ignored) {
  const std::string line = to_line(PeerAddress{3, {"10.0.0.1:4000", "[fe80::1]:4000"}});
  EXPECT_EQ(line,
            "{\"format\":\"stoker-peer\",\"node\":3,\"addresses\":[\"10.0.0.1:4000\",\"[fe80::1]:4000\"]}\n");
  const auto peer = parse_peer_address(line);
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->node, 3);
  EXPECT_EQ(peer->addresses, (std::vector<std::string>{"10.0.0.1:4000", "[fe80::1]:4000"}));
  const auto list = parse_peer_list(to_line(PeerList{{{"10.0.0.1:4000"}, {}}, "abc"}));
  ASSERT_TRUE(list);
  EXPECT_EQ(list->secret, "abc");
  EXPECT_EQ(list->addresses, (std::vector<std::vector<std::string>>{{"10.0.0.1:4000"}, {}}));
  for (const char* other :
       {"", "go", "{}", "[]", "3", "srun: job 7 queued", "{\"format\":\"stoker-peer\",\"node\":-1}",
        "{\"format\":\"stoker-peer\",\"node\":\"x\"}", "{\"format\":7}",
        "{\"format\":\"stoker-peers\",\"nodes\":[]}",
        "{\"format\":\"stoker-peers\",\"secret\":\"a\",\"nodes\":{}}"}) {
    EXPECT_FALSE(parse_peer_address(other)) << other;
    EXPECT_FALSE(parse_peer_list(other)) << other;
  }
}

}  // namespace
}  // namespace stoker::stage
