#include "net/interface.h"

#include <gmock/gmock.h>

namespace stoker::net {
namespace {

const std::vector<Interface> kNode = {
    {.name = "lo", .address = "127.0.0.1", .prefix = 8, .is_loopback = true},
    {.name = "docker0", .address = "172.17.0.1", .prefix = 16},
    {.name = "eth0", .address = "10.0.0.1", .prefix = 24},
    {.name = "ib0", .address = "10.148.0.1", .prefix = 16},
};

std::string gloo(std::optional<std::string_view> variable, std::vector<std::string> own = {"10.0.0.1"}) {
  const InterfaceChoice choice = choose_gloo_interface(variable, own, kNode);
  return choice.chosen ? choice.chosen->name : choice.problem;
}

std::string nccl(std::optional<std::string_view> variable, std::span<const Interface> list = kNode) {
  const InterfaceChoice choice = choose_nccl_interface(variable, list);
  return choice.chosen ? choice.chosen->name : choice.problem;
}

TEST(GlooChoice, accepts_exact_names_that_all_must_exist) {
  EXPECT_EQ(gloo("ib0"), "ib0");
  EXPECT_EQ(gloo("ib0,eth0"), "ib0");
  EXPECT_EQ(gloo("ib"), "GLOO_SOCKET_IFNAME=ib does not name an interface that is up");
  EXPECT_EQ(gloo("ib0,eth7"), "GLOO_SOCKET_IFNAME=ib0,eth7 does not name an interface that is up");
  EXPECT_EQ(gloo("^lo"), "GLOO_SOCKET_IFNAME=^lo does not name an interface that is up");
}

TEST(GlooChoice, without_the_variable_uses_the_host_name) {
  EXPECT_EQ(gloo(std::nullopt), "eth0");
  EXPECT_EQ(gloo(""), "eth0");
  EXPECT_EQ(gloo(std::nullopt, {"10.9.9.9", "10.148.0.1"}), "ib0");
  EXPECT_EQ(gloo(std::nullopt, {"127.0.1.1", "10.0.0.1"}), "lo");
  EXPECT_EQ(gloo(std::nullopt, {}), "lo");
}

TEST(NcclChoice, reads_prefixes_exact_names_and_exceptions) {
  EXPECT_EQ(nccl("eth"), "eth0");
  EXPECT_EQ(nccl("=eth"), "NCCL_SOCKET_IFNAME==eth does not name an interface that is up");
  EXPECT_EQ(nccl("=eth0"), "eth0");
  EXPECT_EQ(nccl("^lo,docker"), "eth0");
  EXPECT_EQ(nccl("^lo,docker,eth"), "ib0");
  EXPECT_EQ(nccl("^=lo"), "docker0");
}

TEST(NcclChoice, without_the_variable_prefers_infiniband_then_real_networks) {
  EXPECT_EQ(nccl(std::nullopt), "ib0");
  EXPECT_EQ(nccl(std::nullopt, std::span(kNode).first(3)), "eth0");
  EXPECT_EQ(nccl(std::nullopt, std::span(kNode).first(2)), "docker0");
  EXPECT_EQ(nccl(std::nullopt, std::span(kNode).first(1)), "lo");
}

TEST(ShareNetwork, uses_the_longer_prefix) {
  const Interface a{.address = "10.0.0.1", .prefix = 24};
  EXPECT_TRUE(are_on_same_subnet(a, {.address = "10.0.0.200", .prefix = 24}));
  EXPECT_FALSE(are_on_same_subnet(a, {.address = "10.0.0.200", .prefix = 25}));
  EXPECT_FALSE(are_on_same_subnet(a, {.address = "10.0.1.1", .prefix = 16}));
  EXPECT_TRUE(are_on_same_subnet({.address = "fd00::1", .prefix = 64}, {.address = "fd00::2", .prefix = 64}));
  EXPECT_FALSE(are_on_same_subnet(a, {.address = "fd00::2", .prefix = 64}));
  EXPECT_FALSE(are_on_same_subnet(a, {.address = "nonsense", .prefix = 24}));
}

TEST(Interfaces, of_this_host_include_loopback) {
  EXPECT_THAT(interfaces(), ::testing::Contains(::testing::Field(&Interface::address, "127.0.0.1")));
}

}  // namespace
}  // namespace stoker::net
