#include "rank/gpu_binding.h"

#include <gmock/gmock.h>

namespace stoker::rank {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StrEq;

RankPlacement local_rank(int rank, int ranks) { return {Rank(rank), WorldSize(ranks), rank, ranks, 0}; }

std::string gpus(const GpuShare& share, const VisibleGpus& visible, const RankPlacement& place) {
  const auto found = gpus_of_rank(share, visible, place);
  if (!found.ok()) return std::string(found.error().message());
  return found->value_or("unchanged");
}

TEST(GpuBinding, ranks_see_the_gpus_of_their_node_and_no_others) {
  const GpuShare two{.gpus_per_rank = 2};
  EXPECT_EQ(gpus(two, "4,5,6,7,8", local_rank(0, 2)), "4,5,6,7");
  EXPECT_EQ(gpus(two, "4,5,6,7,8", local_rank(1, 2)), "4,5,6,7");
  EXPECT_EQ(gpus(two, {}, local_rank(1, 2)), "0,1,2,3") << "all GPUs are visible";
  EXPECT_EQ(gpus({}, "4,5", local_rank(1, 2)), "unchanged");
}

TEST(GpuBinding, ids_are_kept) {
  const GpuShare one{.gpus_per_rank = 1};
  EXPECT_EQ(gpus(one, " GPU-a , GPU-b,GPU-c", local_rank(0, 2)), "GPU-a,GPU-b");
}

TEST(GpuBinding, each_rank_has_its_own_mig_devices) {
  const GpuShare one{.gpus_per_rank = 1};
  EXPECT_EQ(gpus(one, "GPU-5c0e,MIG-GPU-5c0e/1/0", local_rank(1, 2)), "MIG-GPU-5c0e/1/0");
  EXPECT_EQ(gpus(one, "MIG-a,MIG-b", local_rank(0, 2)), "MIG-a");
}

TEST(GpuBinding, ranks_share_gpus_in_turn) {
  const GpuShare shared{.ranks_per_gpu = 2};
  EXPECT_EQ(gpus(shared, "3,7", local_rank(0, 4)), "3");
  EXPECT_EQ(gpus(shared, "3,7", local_rank(1, 4)), "7");
  EXPECT_EQ(gpus(shared, "3,7", local_rank(2, 4)), "3");
  EXPECT_EQ(gpus(shared, {}, local_rank(3, 4)), "1");
  EXPECT_EQ(gpus(shared, "GPU-a,GPU-b,GPU-c", local_rank(3, 4)), "GPU-b");
}

TEST(GpuBinding, the_gpus_that_slurm_bound_to_a_task_are_kept) {
  EXPECT_EQ(gpus({.gpus_per_rank = 1, .is_in_step = true}, "0", local_rank(1, 4)), "unchanged");
  EXPECT_EQ(gpus({.gpus_per_rank = 1, .is_in_step = true}, "0,1,2,3", local_rank(1, 4)), "0,1,2,3");
}

TEST(GpuBinding, too_few_gpus_of_a_node_are_refused) {
  EXPECT_EQ(
      gpus({.gpus_per_rank = 1}, "0", local_rank(1, 4)),
      "4 ranks of this node need 4 GPUs, but 1 is visible (resources.gpus_per_rank, CUDA_VISIBLE_DEVICES=0)");
  EXPECT_EQ(gpus({.ranks_per_gpu = 2}, "", local_rank(1, 4)),
            "4 ranks of this node need 2 GPUs, but none is visible (resources.ranks_per_gpu, "
            "CUDA_VISIBLE_DEVICES is "
            "empty)");
}

TEST(GpuBinding, entries_end_where_cuda_stops_reading) {
  EXPECT_THAT(visible_entries("0,-1,2"), ElementsAre("0"));
  EXPECT_THAT(visible_entries("NoDevFiles"), IsEmpty());
  EXPECT_THAT(visible_entries(""), IsEmpty());
}

TEST(GpuBinding, usable_gpus_are_visible_and_exist) {
  const std::vector<observe::GpuDevice> two(2);
  EXPECT_THAT(usable_gpus({}, two), ElementsAre("0", "1"));
  EXPECT_THAT(usable_gpus("1,5,0", two), ElementsAre("1")) << "CUDA stops at a GPU that does not exist";
  EXPECT_THAT(usable_gpus("", two), IsEmpty());
  EXPECT_THAT(usable_gpus("1,5,0", {}), ElementsAre("1", "5", "0")) << "without a driver the list counts";
  EXPECT_THAT(usable_gpus({}, {}), IsEmpty());
}

TEST(GpuBinding, mig_devices_have_ids) {
  const std::vector<observe::GpuDevice> gpus = {
      {.uuid = "GPU-a", .has_mig = true, .mig_uuids = {"MIG-1", "MIG-2"}},
      {.uuid = "GPU-b", .has_mig = false}};
  EXPECT_THAT(usable_gpus({}, gpus), ElementsAre("MIG-1", "MIG-2", "GPU-b"));
}

TEST(GpuBinding, a_machine_with_too_few_gpus_is_refused_with_a_cure) {
  Plan plan;
  plan.ranks_of_node = {4};
  plan.gpus_per_rank = 1;
  EXPECT_TRUE(check_gpus(plan, {}, {"0", "1", "2", "3"}).ok());
  const Status few = check_gpus(plan, "0,1", {"0", "1"});
  EXPECT_THAT(
      few.message(),
      StrEq("resources.gpus_per_rank: 4 ranks need 4 GPUs, this machine has 2 (CUDA_VISIBLE_DEVICES=0,1)"));
  EXPECT_THAT(few.cure(), StrEq("stoker run --set resources.ranks_per_node=2"));
  const Status none = check_gpus(plan, {}, {});
  EXPECT_THAT(none.message(), StrEq("resources.gpus_per_rank: 4 ranks need 4 GPUs, this machine has none "
                                    "(CUDA_VISIBLE_DEVICES is not set)"));
  EXPECT_THAT(none.cure(),
              StrEq("stoker run --set resources.gpus_per_rank=0      (without GPUs), or stoker submit"));
  plan.gpus_per_rank = 0;
  plan.ranks_per_gpu = 2;
  EXPECT_THAT(check_gpus(plan, {}, {"0"}).cure(), StrEq("stoker run --set resources.ranks_per_gpu=4"));
  plan.ranks_per_gpu = 1;
  EXPECT_TRUE(check_gpus(plan, {}, {}).ok()) << "the job asks for none";
}

}  // namespace
}  // namespace stoker::rank
