#include "netcheck/facts.h"

#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "base/file.h"
#include "net/channel.h"

namespace stoker::netcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

// A folder for PATH with a program of that name.
void write_program(const Path& folder, const std::string& name, const std::string& text) {
  ASSERT_TRUE(write_file(folder / name, "#!/bin/sh\n" + text).ok());
  std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
}

Environment path_of(const TempDirectory& folder) {
  return {{"PATH", folder.path().string() + ":/usr/bin:/bin"}};
}

TEST(Gpus, are_what_nvidia_smi_lists) {
  const TempDirectory folder;
  write_program(folder.path(), "nvidia-smi", "printf 'NVIDIA H100\\nNVIDIA A100\\n'");
  const GpuList list = list_gpus(path_of(folder), soon());
  EXPECT_THAT(list.gpus, ElementsAre("NVIDIA H100", "NVIDIA A100"));
  EXPECT_EQ(list.problem, "");
}

TEST(Gpus, names_without_end_are_cut) {
  const TempDirectory folder;
  write_program(folder.path(), "nvidia-smi", "head -c 500000 /dev/zero | tr '\\0' x");
  const GpuList list = list_gpus(path_of(folder), soon());
  EXPECT_THAT(list.gpus, ElementsAre(std::string(200, 'x')));
}

TEST(Gpus, missing_nvidia_smi_is_no_problem) {
  const TempDirectory folder;
  const GpuList list = list_gpus({{"PATH", folder.path().string()}}, soon());
  EXPECT_THAT(list.gpus, IsEmpty());
  EXPECT_EQ(list.problem, "");
}

TEST(Gpus, a_driver_that_fails_or_hangs_is_a_problem) {
  const TempDirectory folder;
  write_program(folder.path(), "nvidia-smi", "echo 'No devices were found'; exit 6");
  EXPECT_EQ(list_gpus(path_of(folder), soon()).problem, "nvidia-smi: exit code 6, No devices were found");
  write_program(folder.path(), "nvidia-smi", "exec sleep 60");
  EXPECT_EQ(list_gpus(path_of(folder), Deadline::after(std::chrono::milliseconds(200))).problem,
            "nvidia-smi did not answer within 200 ms");
}

TEST(Fabric, ports_and_their_states_are_read) {
  const TempDirectory sys;
  const Path ports = sys / "class/infiniband/mlx5_0/ports";
  ASSERT_TRUE(make_directories(ports / "1").ok());
  ASSERT_TRUE(make_directories(ports / "2").ok());
  ASSERT_TRUE(write_file(ports / "1/state", "4: ACTIVE\n").ok());
  ASSERT_TRUE(write_file(ports / "2/state", "1: DOWN\n").ok());
  EXPECT_THAT(fabric_ports(sys.path()),
              ElementsAre(FabricPort{"mlx5_0", 1, true, "ACTIVE"}, FabricPort{"mlx5_0", 2, false, "DOWN"}));
  EXPECT_THAT(fabric_ports(sys / "absent"), IsEmpty());
}

TEST(Variables, only_network_variables_are_reported) {
  EXPECT_THAT(network_variables({{"NCCL_NET", "IB"}, {"HOME", "/root"}}),
              ElementsAre(std::pair<const std::string, std::string>("NCCL_NET", "IB")));
}

TEST(PortHolder, is_the_process_that_listens) {
  const auto listener = net::Listener::open(net::ListenScope::loopback);
  ASSERT_TRUE(listener.ok());
  const std::string& address = listener->addresses().at(0);
  std::int64_t port = 0;
  ASSERT_TRUE(parse_number(std::string_view(address).substr(address.rfind(':') + 1), &port));
  EXPECT_THAT(port_holder(static_cast<int>(port)), ::testing::HasSubstr(format("(process {})", ::getpid())));
  EXPECT_EQ(port_holder(static_cast<int>(port), "/nowhere"), "");
}

TEST(UsableCores, are_some) { EXPECT_FALSE(usable_cores().empty()); }

}  // namespace
}  // namespace stoker::netcheck
