#include <cmath>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "observe/node/cgroup.h"
#include "observe/node/cpus.h"
#include "observe/node/energy.h"
#include "observe/node/filesystems.h"
#include "observe/node/network.h"
#include "observe/node/node_tree.h"

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(Counter, accepts_only_whole_numbers_that_fit) {
  EXPECT_THAT(leading_number(" 12 kB\n"), Optional(12u));
  EXPECT_THAT(leading_number("18446744073709551615\n"), Optional(18446744073709551615u));
  for (std::string_view text : {"", "\n", "-1", "+1", "1.5", "0x10", "18446744073709551616", "nan", "12kB"})
    EXPECT_EQ(leading_number(text), std::nullopt) << text;
  EXPECT_EQ(read_counter("/nonexistent"), std::nullopt);
}

TEST(Counter, finds_the_value_of_a_key_at_the_start_of_a_line) {
  EXPECT_THAT(value_after("xoom 1\noom 2\noom_kill 3\n", "oom_kill"), Optional(3u));
  EXPECT_THAT(value_after("MemTotal:  1000 kB\n", "MemTotal"), Optional(1000u));
  EXPECT_EQ(value_after("oom_kill", "oom_kill"), std::nullopt);
  EXPECT_EQ(value_after("oom_kill -3\n", "oom_kill"), std::nullopt);
}

TEST(Counter, a_wrapped_reset_or_impossible_counter_has_no_rate) {
  EXPECT_THAT(rate_between(100, 300, 2), Optional(100.0));
  EXPECT_THAT(rate_between(100, 100, 2), Optional(0.0));
  EXPECT_EQ(rate_between(4294967295, 10, 1), std::nullopt);            // wrapped at 32 bits
  EXPECT_EQ(rate_between(5, 18446744073709551615u, 1), std::nullopt);  // more than any machine
  EXPECT_EQ(rate_between(std::nullopt, 10, 1), std::nullopt);
  EXPECT_EQ(rate_between(10, std::nullopt, 1), std::nullopt);
  EXPECT_EQ(rate_between(1, 2, 0), std::nullopt);
  EXPECT_EQ(rate_between(1, 2, std::nan("")), std::nullopt);
}

TEST(Cpus, lists_of_cores_are_read_and_hostile_ones_ignored) {
  EXPECT_THAT(parse_cpu_list("0-2,8\n"), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
  EXPECT_THAT(parse_cpu_list("-1,5-,x,3-2,0-99999999,7"), ElementsAre(7));
}

TEST(Cpus, busy_time_is_of_the_given_cores_and_counts_iowait_as_idle) {
  constexpr std::string_view kStat =
      "cpu  100 10 20 500 70 1 2 3 50 50\ncpu0 40 0 0 60 0 0 0 0 0 0\ncpu1 10 0 0 50 40 0 0 0 0 0\n"
      "intr 5 6\n";
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(core_use(kStat, {})->total_s, 706 / ticks);
  EXPECT_DOUBLE_EQ(core_use(kStat, {})->busy_s, 136 / ticks);
  EXPECT_DOUBLE_EQ(core_use(kStat, {0, 1})->total_s, 200 / ticks);
  EXPECT_DOUBLE_EQ(core_use(kStat, {0, 1})->busy_s, 50 / ticks);
  EXPECT_DOUBLE_EQ(core_use(kStat, {1})->busy_s, 10 / ticks);
  EXPECT_FALSE(core_use(kStat, {9}).has_value());
  EXPECT_FALSE(core_use("intr 5\n", {}).has_value());
}

TEST(JobCgroup, v2_below_slurm_is_the_group_of_the_whole_job_with_the_smallest_limit_above) {
  NodeTree node;
  node.proc("self/cgroup", "0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_1\n");
  const std::string job = "fs/cgroup/system.slice/slurmstepd.scope/job_12/";
  node.sys(job + "memory.current", "3000\n");
  node.sys(job + "memory.max", "max\n");
  node.sys("fs/cgroup/system.slice/slurmstepd.scope/memory.max", "9000\n");
  node.sys("fs/cgroup/system.slice/memory.max", "10000\n");
  node.sys(job + "memory.events", "low 0\noom 4\noom_kill 2\noom_group_kill 0\n");
  node.sys(job + "cpu.stat", "usage_usec 2500000\nuser_usec 2000000\n");
  node.sys(job + "step_0/user/task_1/memory.current", "10\n");
  const JobCgroup group = JobCgroup::find(node.roots());
  EXPECT_EQ(group.name(), "cgroup v2 /system.slice/slurmstepd.scope/job_12");
  const CgroupUse use = group.read();
  EXPECT_THAT(use.memory_bytes, Optional(3000u));
  EXPECT_THAT(use.limit_bytes, Optional(9000u));
  EXPECT_THAT(use.oom_kills, Optional(2u));
  EXPECT_THAT(use.cpu_s, Optional(2.5));
}

TEST(JobCgroup, v1_adds_the_kills_of_steps_and_tasks) {
  NodeTree node;
  node.proc(
      "self/cgroup",
      "9:cpuacct,cpu:/slurm/uid_7/job_12/step_0/task_0\n7:memory:/slurm/uid_7/job_12/step_0/task_0\n0::/\n");
  const std::string job = "fs/cgroup/memory/slurm/uid_7/job_12/";
  node.sys(job + "memory.usage_in_bytes", "100\n");
  node.sys(job + "memory.limit_in_bytes", "9223372036854771712\n");
  node.sys(job + "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  node.sys(job + "step_0/memory.oom_control", "oom_kill 1\n");
  node.sys(job + "step_0/task_0/memory.oom_control", "oom_kill 2\n");
  node.sys("fs/cgroup/cpuacct/slurm/uid_7/job_12/cpuacct.usage", "1500000000\n");
  const CgroupUse use = JobCgroup::find(node.roots()).read();
  EXPECT_THAT(use.memory_bytes, Optional(100u));
  EXPECT_EQ(use.limit_bytes, std::nullopt);
  EXPECT_THAT(use.oom_kills, Optional(3u));
  EXPECT_THAT(use.cpu_s, Optional(1.5));
}

TEST(JobCgroup, without_slurm_it_is_the_own_group_and_in_a_container_the_visible_root) {
  NodeTree node;
  node.proc("self/cgroup", "0::/user.slice/shell\n");
  node.sys("fs/cgroup/user.slice/shell/memory.current", "4096\n");
  node.sys("fs/cgroup/memory.current", "8192\n");
  node.sys("fs/cgroup/memory.max", "16384\n");
  EXPECT_THAT(JobCgroup::find(node.roots()).read().memory_bytes, Optional(4096u));
  node.proc("self/cgroup", "0::/not/visible/here\n");
  EXPECT_THAT(JobCgroup::find(node.roots()).read().memory_bytes, Optional(8192u));
  EXPECT_THAT(JobCgroup::find(node.roots()).read().limit_bytes, Optional(16384u));
}

TEST(JobCgroup, damaged_and_missing_files_give_no_values) {
  NodeTree node;
  EXPECT_EQ(JobCgroup::find(node.roots()).read().memory_bytes, std::nullopt);
  node.proc("self/cgroup", "0::/a\n::\nx\n");
  EXPECT_EQ(JobCgroup::find(node.roots()).name(), "");
  node.sys("fs/cgroup/a/memory.current", "-5\n");
  node.sys("fs/cgroup/a/memory.max", "99999999999999999999999\n");
  node.sys("fs/cgroup/a/memory.events", "oom_kill");
  const CgroupUse use = JobCgroup::find(node.roots()).read();
  EXPECT_EQ(use.memory_bytes, std::nullopt);
  EXPECT_EQ(use.limit_bytes, std::nullopt);
  EXPECT_EQ(use.oom_kills, std::nullopt);
  EXPECT_EQ(use.cpu_s, std::nullopt);
}

constexpr std::string_view kNetDev =
    "Inter-|   Receive                          |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop\n"
    "    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0\n"
    "  eth0: 1000000     100    0    0    0     0          0         0     2000      50    0    0\n"
    "  ib0:5000 1 0 0 0 0 0 0 6000 1 0 0 0 0 0 0\n";

TEST(Network, interfaces_with_a_device_and_active_ports_are_counted) {
  NodeTree node;
  node.proc("net/dev", kNetDev);
  for (std::string_view name : {"lo", "docker0", "eth0", "ib0"})
    node.sys(format("class/net/{}/mtu", name), "1500\n");
  node.sys("class/net/eth0/device/vendor", "x");
  node.sys("class/net/ib0/device/vendor", "x");
  node.sys("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  node.sys("class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "250\n");
  node.sys("class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "18446744073709551615\n");
  node.sys("class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
  const NetworkReader reader = NetworkReader::find(node.roots());
  EXPECT_THAT(reader.names(), ElementsAre("net.eth0", "net.ib0", "ib.mlx5_0/1"));
  const auto links = reader.read();
  ASSERT_EQ(links.size(), 3u);
  EXPECT_THAT(links[0].received_bytes, Optional(1000000u));
  EXPECT_THAT(links[0].sent_bytes, Optional(2000u));
  EXPECT_THAT(links[1].received_bytes, Optional(5000u));
  EXPECT_THAT(links[2].received_bytes, Optional(1000u));
  EXPECT_EQ(links[2].sent_bytes, std::nullopt);  // four times that is no number of bytes
}

TEST(Network, virtual_interfaces_count_where_there_is_no_device) {
  NodeTree node;
  node.sys("class/net/lo/mtu", "1500\n");
  node.sys("class/net/lab0/mtu", "1500\n");
  node.sys("class/net/a,b/mtu", "1500\n");  // not a column name
  const NetworkReader reader = NetworkReader::find(node.roots());
  EXPECT_THAT(reader.names(), ElementsAre("net.lab0"));
  EXPECT_EQ(reader.read().at(0).received_bytes, std::nullopt);
  node.proc("net/dev", "  lab0: 12 3\n");
  EXPECT_EQ(reader.read().at(0).received_bytes, std::nullopt);
}

constexpr std::string_view kMountinfo =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw\n"
    "40 27 0:50 / /project rw shared:3 - nfs4 server:/project rw,vers=4.2\n"
    "41 27 0:50 / /again rw - nfs4 server:/project rw\n"
    "42 27 0:52 / /scratch\\040old rw - lustre 10.0.0.1@o2ib:/scratch rw\n"
    "43 27 0:53 / /gpfs rw - gpfs gpfs rw\n"
    "44 27 0:54 / /var/lib/lxcfs rw - fuse.lxcfs lxcfs rw\n"
    "damaged - nfs\n";

TEST(Filesystems, mounts_are_read_with_their_kind) {
  const auto mounts = parse_mounts(kMountinfo);
  ASSERT_EQ(mounts.size(), 7u);
  EXPECT_EQ(mounts[4].point, "/scratch old");
  EXPECT_EQ(mounts[2].device, "0:50");
  std::vector<std::string> shared;
  for (const MountedFilesystem& mount : mounts) {
    if (is_shared_kind(mount.kind)) shared.push_back(mount.point);
  }
  EXPECT_THAT(shared, ElementsAre("/project", "/again", "/scratch old", "/gpfs"));
  EXPECT_TRUE(is_shared_kind("fuse.sshfs"));
  EXPECT_FALSE(is_shared_kind("tmpfs"));
}

TEST(Filesystems, lustre_counts_bytes_and_opens) {
  const FilesystemUse use = parse_lustre_stats(
      "snapshot_time             1600000000.123456789 secs.nsecs\n"
      "read_bytes                12 samples [bytes] 1 4194304 56789012 99999999\n"
      "write_bytes               3 samples [bytes] 4 8 20\n"
      "open                      42 samples [usec] 1 9 100\n");
  EXPECT_THAT(use.read_bytes, Optional(56789012u));
  EXPECT_THAT(use.write_bytes, Optional(20u));
  EXPECT_THAT(use.opens, Optional(42u));
  const FilesystemUse idle = parse_lustre_stats("snapshot_time 1.2 secs.nsecs\n");
  EXPECT_THAT(idle.read_bytes, Optional(0u));
  for (std::string_view text : {"", "read_bytes 12 samples [bytes] 1 2 3\n"})
    EXPECT_EQ(parse_lustre_stats(text).read_bytes, std::nullopt) << text;
  EXPECT_EQ(parse_lustre_stats("snapshot_time 1\nread_bytes 12 samples [bytes] 1 2 -3\n").read_bytes,
            std::nullopt);
  EXPECT_EQ(parse_lustre_stats("snapshot_time 1\nread_bytes 12 samples [bytes] 1\n").read_bytes,
            std::nullopt);
}

constexpr std::string_view kMountstats =
    "device rootfs mounted on / with fstype rootfs\n"
    "device server:/project mounted on /project with fstype nfs4 statvers=1.1\n"
    "\topts:\trw,vers=4.2\n"
    "\tbytes:\t5069 10 0 0 5000 20 4 0\n"
    "\tper-op statistics\n"
    "\t        READ: 2 2 0 348 5069 0 1 1 0\n"
    "\t        OPEN: 7 7 0 1 1 0 1 1 0\n"
    "\t OPEN_NOATTR: 3 3 0 1 1 0 1 1 0\n"
    "device server:/project mounted on /again with fstype nfs4 statvers=1.1\n"
    "\tbytes:\t5069 10 0 0 5000 20 4 0\n"
    "device tmpfs mounted on /tmp with fstype tmpfs\n"
    "\tbytes:\t1 1 1 1 1 1 1 1\n";

TEST(Filesystems, nfs_counts_what_servers_sent_once_per_filesystem) {
  const FilesystemUse use = parse_nfs_stats(kMountstats, parse_mounts(kMountinfo));
  EXPECT_THAT(use.read_bytes, Optional(5000u));
  EXPECT_THAT(use.write_bytes, Optional(20u));
  EXPECT_THAT(use.opens, Optional(10u));
  EXPECT_EQ(parse_nfs_stats("device x mounted on /y with fstype nfs\n\tbytes:\t1 2\n", {}).read_bytes,
            std::nullopt);
  EXPECT_EQ(parse_nfs_stats("\tbytes:\t1 2 3 4 5 6 7 8\n", {}).read_bytes, std::nullopt);
}

TEST(Filesystems, disks_count_sectors_of_512_bytes_without_partitions) {
  const FilesystemUse use = parse_disk_stats(
      " 254 0 vda 38195 9209 10 17360 8833 45144 20 21819 0 1 2 3\n"
      " 254 1 vda1 38195 9209 10 17360 8833 45144 20 21819 0 1 2 3\n"
      " 259 0 nvme0n1 1 1 1 1 1 1 1 1 0 0 0\n damaged\n",
      {"nvme0n1", "vda"});
  EXPECT_THAT(use.read_bytes, Optional(11u * 512));
  EXPECT_THAT(use.write_bytes, Optional(21u * 512));
  EXPECT_EQ(parse_disk_stats("", {"vda"}).read_bytes, std::nullopt);
  EXPECT_EQ(parse_disk_stats("8 0 sda 1 1 18446744073709551615 1 1 1 1 1\n", {"sda"}).read_bytes,
            std::nullopt);
}

TEST(Filesystems, a_node_with_lustre_nfs_and_gpfs_names_those_without_counters) {
  NodeTree node;
  node.proc("self/mountinfo", kMountinfo);
  node.proc("self/mountstats", kMountstats);
  node.proc("fs/lustre/llite/scratch-ffff/stats",
            "snapshot_time 1\nread_bytes 1 samples [bytes] 1 1 100\nopen 5 samples [regs]\n");
  node.proc("diskstats", " 254 0 vda 1 1 2 1 1 1 4 1 0 1 1\n 7 0 loop0 1 1 9 1 1 1 9 1 0 1 1\n");
  for (std::string_view name : {"vda", "loop0", "dm-0", "zram0", "md127"})
    node.sys(format("block/{}/size", name), "1\n");
  const FilesystemReader reader = FilesystemReader::find(node.roots());
  EXPECT_EQ(reader.counted(), "nfs4 /project, lustre /scratch old");
  EXPECT_EQ(reader.uncounted(), "gpfs /gpfs");
  EXPECT_THAT(reader.shared().read_bytes, Optional(5100u));
  EXPECT_THAT(reader.shared().write_bytes, Optional(20u));
  EXPECT_THAT(reader.shared().opens, Optional(15u));
  EXPECT_THAT(reader.local().read_bytes, Optional(1024u));
  EXPECT_THAT(reader.local().write_bytes, Optional(2048u));
  EXPECT_FALSE(FilesystemReader::find(NodeTree().roots()).has_shared());
}

void put_rapl(NodeTree& node, std::string_view name, std::string_view what, std::string_view energy) {
  node.sys(format("class/powercap/{}/name", name), format("{}\n", what));
  node.sys(format("class/powercap/{}/energy_uj", name), energy);
  node.sys(format("class/powercap/{}/max_energy_range_uj", name), "262143000000\n");
}

TEST(Energy, rapl_wraps_at_its_range_and_leaves_out_cores_and_psys) {
  NodeTree node;
  put_rapl(node, "intel-rapl:0", "package-0", "262142000000\n");
  put_rapl(node, "intel-rapl:0:0", "core", "1\n");
  put_rapl(node, "intel-rapl:0:1", "dram", "1000000\n");
  put_rapl(node, "intel-rapl:1", "package-1", "5000000\n");
  put_rapl(node, "intel-rapl:2", "psys", "1\n");
  EnergyReader reader = EnergyReader::find(node.roots());
  EXPECT_EQ(reader.source(), "cpu: RAPL package-0, package-1; memory: RAPL dram");
  EXPECT_THAT(reader.read(10).cpu_j, Optional(0.0));
  put_rapl(node, "intel-rapl:0", "package-0", "99000000\n");
  put_rapl(node, "intel-rapl:0:1", "dram", "3000000\n");
  put_rapl(node, "intel-rapl:1", "package-1", "7000000\n");
  const EnergyUse use = reader.read(11);
  EXPECT_THAT(use.cpu_j, Optional(::testing::DoubleNear(102, 1e-9)));
  EXPECT_THAT(use.memory_j, Optional(::testing::DoubleNear(2, 1e-9)));
  EXPECT_EQ(use.node_j, std::nullopt);
}

TEST(Energy, a_reset_or_impossible_counter_adds_nothing) {
  NodeTree node;
  node.sys("cray/pm_counters/energy", "1000000 J 1700000000000000 us\n");
  node.sys("cray/pm_counters/power", "400 W\n");
  node.sys("cray/pm_counters/cpu_energy", "500 J\n");
  EnergyReader reader = EnergyReader::find(node.roots());
  EXPECT_EQ(reader.source(), "node: pm_counters energy; cpu: pm_counters cpu_energy");
  EXPECT_FALSE(reader.has_memory());
  (void)reader.read(1);
  node.sys("cray/pm_counters/energy", "1000600 J\n");
  EXPECT_THAT(reader.read(2).node_j, Optional(600.0));
  node.sys("cray/pm_counters/energy", "5 J\n");  // the controller restarted
  EXPECT_THAT(reader.read(3).node_j, Optional(600.0));
  node.sys("cray/pm_counters/energy", "-7 J\n");
  EXPECT_THAT(reader.read(4).node_j, Optional(600.0));
  node.sys("cray/pm_counters/energy", "805 J\n");  // since it was last readable
  EXPECT_THAT(reader.read(5).node_j, Optional(1400.0));
  node.sys("cray/pm_counters/energy", "18446744073709551615 J\n");
  EXPECT_THAT(reader.read(6).node_j, Optional(1400.0));
}

TEST(Energy, a_pause_longer_than_a_counter_can_count_has_no_value) {
  NodeTree node;
  put_rapl(node, "intel-rapl:0", "package-0", "1\n");
  EnergyReader reader = EnergyReader::find(node.roots());
  (void)reader.read(0);
  EXPECT_EQ(reader.read(3600).cpu_j, std::nullopt);
  EXPECT_EQ(reader.read(3601).cpu_j, std::nullopt);
}

TEST(Energy, power_meters_are_integrated) {
  NodeTree node;
  node.sys("class/hwmon/hwmon0/name", "coretemp\n");
  node.sys("class/hwmon/hwmon1/name", "power_meter\n");
  node.sys("class/hwmon/hwmon1/power1_average", "500000000\n");
  node.sys("class/hwmon/hwmon2/name", "power_meter\n");
  node.sys("class/hwmon/hwmon2/power1_average", "1\n");
  node.sys("class/hwmon/hwmon2/power1_oem_info", "CPU Power Socket 0\n");  // its socket has no module meter
  EnergyReader reader = EnergyReader::find(node.roots());
  EXPECT_EQ(reader.source(), "node: power meter of hwmon, integrated");
  (void)reader.read(0);
  node.sys("class/hwmon/hwmon1/power1_average", "700000000\n");
  EXPECT_THAT(reader.read(2).node_j, Optional(1200.0));
  EXPECT_EQ(EnergyReader::find(NodeTree().roots()).source(), "");
}

}  // namespace
}  // namespace stoker::observe
