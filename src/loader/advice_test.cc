#include "loader/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::loader {
namespace {

using ::testing::ElementsAre;

// A machine's files in a folder.
class MachineFiles {
 public:
  void put(const std::string& name, std::string_view text) {
    const Path path = root_ / name;
    EXPECT_TRUE(make_directories(path.parent_path()).ok());
    EXPECT_TRUE(write_file(path, text).ok());
  }
  Machine read(const Environment& environment = {}) const {
    return detect_machine(root_.path(), environment);
  }

 private:
  TempDirectory root_;
};

TEST(ThisMachine, free_memory_is_bounded_by_every_cgroup_above) {
  MachineFiles files;
  files.put("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n");
  EXPECT_EQ(files.read().memory, ByteCount{4000 * 1024});
  files.put("proc/self/cgroup", "0::/job/step\n");
  files.put("sys/fs/cgroup/job/step/memory.max", "max\n");
  files.put("sys/fs/cgroup/job/memory.max", "3000000\n");
  files.put("sys/fs/cgroup/job/memory.current", "1000000\n");
  EXPECT_EQ(files.read().memory, ByteCount{2'000'000});
  files.put("sys/fs/cgroup/job/memory.current", "5000000\n");
  EXPECT_EQ(files.read().memory, ByteCount{0});
}

TEST(ThisMachine, a_cgroups_quota_is_rounded_up_to_whole_cores) {
  MachineFiles files;
  files.put("proc/self/cgroup", "0::/job\n");
  files.put("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_EQ(files.read().cores_from, "affinity");
  files.put("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
  const Machine machine = files.read();
  EXPECT_EQ(machine.cores, 1u);
  if (machine.cores_from == "affinity") GTEST_SKIP() << "needs two cores: this process has one";
  EXPECT_EQ(machine.cores_from, "cgroup");
}

TEST(ThisMachine, ranks_share_the_cores_unless_slurm_bound_each) {
  const MachineFiles files;
  const std::string cores = std::to_string(files.read().cores);
  EXPECT_EQ(files.read({{"LOCAL_WORLD_SIZE", "4"}}).ranks, 4u);
  EXPECT_EQ(files.read({{"LOCAL_WORLD_SIZE", "4"}, {"SLURM_CPUS_PER_TASK", cores}}).ranks, 1u);
  EXPECT_EQ(files.read({{"LOCAL_WORLD_SIZE", "many"}}).ranks, 1u);
}

const Machine kMachine{.cores = 16, .cores_from = "affinity", .ranks = 4, .memory = {8'000'000'000}};

TEST(Advise, gives_reasons) {
  const LoaderWorkload small{.samples = 50'000, .stored = {50'000'000}, .batch = 128, .sample = {12'288}};
  const Advice advice = advise(kMachine, small, {});
  EXPECT_EQ(advice.threads, 4u);
  EXPECT_EQ(advice.prefetch, 4u);
  EXPECT_EQ(advice.resident, small.stored);
  EXPECT_THAT(
      advice.reasons,
      ElementsAre(
          "threads 4: 16 cores (affinity) shared by 4 ranks",
          "prefetch 4: keeps all threads busy; batches of 1.57 MB, 6.29 MB in all",
          "resident 50.0 MB: small samples (1.00 kB) are read from the storage in large blocks, once"));
}

TEST(Advise, batches_ahead_take_no_more_than_an_eighth_of_the_memory) {
  const LoaderWorkload photographs{
      .samples = 1000, .stored = {110'000'000}, .batch = 256, .sample = {602'112}};
  const Advice advice = advise(kMachine, photographs, {});
  EXPECT_EQ(advice.prefetch, 2u);  // large batches: one ready batch is enough
  EXPECT_EQ(advice.reasons[1], "prefetch 2: keeps all threads busy; batches of 154 MB, 308 MB in all");
  Machine little = kMachine;
  little.memory = {4'000'000'000 / 64};
  const LoaderWorkload thumbnails{.samples = 1000, .stored = {1'000'000}, .batch = 64, .sample = {12'288}};
  EXPECT_EQ(advise(little, thumbnails, {}).reasons[1],
            "prefetch 2: an eighth of the free memory; batches of 786 kB, 1.57 MB in all");
  EXPECT_EQ(advice.resident, ByteCount{0});
  EXPECT_EQ(advice.reasons[2], "resident 0 B: samples of 110 kB are read one by one");
}

TEST(Advise, a_split_over_a_quarter_of_the_memory_stays_on_disk) {
  const LoaderWorkload large{.samples = 10'000'000, .stored = {10'000'000'000}, .batch = 1, .sample = {100}};
  const Advice advice = advise(kMachine, large, {});
  EXPECT_EQ(advice.resident, ByteCount{0});
  EXPECT_EQ(advice.reasons[2], "resident 0 B: the 10.0 GB of this split exceed a quarter of the free memory");
  EXPECT_EQ(advice.prefetch, 17u);  // batches of one sample: each thread needs several
}

TEST(Advise, overrides_win) {
  const Advice advice = advise(kMachine, {.samples = 1, .stored = {1}},
                               {.threads = 3, .prefetch = 7, .resident = ByteCount{5}});
  EXPECT_EQ(advice.threads, 3u);
  EXPECT_EQ(advice.prefetch, 7u);
  EXPECT_EQ(advice.resident, ByteCount{5});
  EXPECT_EQ(advice.reasons[0], "threads 3: as requested");
}

}  // namespace
}  // namespace stoker::loader
