#include "preflight/gpus.h"

#include <gmock/gmock.h>

namespace stoker::preflight {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StrEq;

Preflight checked(const job::Job& job, const HostContext& host) {
  Notes notes(job);
  check_gpus(job, host, notes);
  return notes.take();
}

job::Job job_with(std::uint32_t ranks, std::uint32_t gpus) {
  job::Job job;
  job.resources.nodes = 1;
  job.resources.ranks_per_node = ranks;
  job.resources.gpus_per_rank = gpus;
  return job;
}

HostContext machine(std::vector<observe::GpuDevice> gpus) {
  HostContext host;
  host.gpus = std::move(gpus);
  return host;
}

TEST(CheckGpus, the_gpus_of_this_machine_are_listed) {
  const Preflight found =
      checked(job_with(2, 1),
              machine({{.name = "H100"}, {.name = "H100"}, {.name = "A30", .mig_uuids = {"a", "b"}}}));
  ASSERT_THAT(found.facts, SizeIs(1));
  EXPECT_EQ(found.facts[0].text.english(), "2 x H100, 1 x A30 (2 MIG devices); 3 visible, 2 requested");
  EXPECT_THAT(found.findings, IsEmpty());
}

TEST(CheckGpus, a_local_job_that_asks_for_more_is_lost) {
  const Preflight none = checked(job_with(2, 1), machine({}));
  EXPECT_EQ(none.facts.at(0).text.english(), "none on this machine; 0 visible, 2 requested");
  ASSERT_THAT(none.findings, SizeIs(1));
  EXPECT_EQ(none.findings[0].rule, "few-gpus");
  EXPECT_THAT(none.findings[0].what.english(), StrEq("resources.gpus_per_rank: 2 ranks need 2 GPUs, this "
                                                     "machine has none (CUDA_VISIBLE_DEVICES is not set)"));
  HostContext hidden = machine({{.name = "H100"}, {.name = "H100"}});
  hidden.visible_gpus = "1";
  EXPECT_THAT(checked(job_with(2, 1), hidden).findings, SizeIs(1)) << "CUDA_VISIBLE_DEVICES hides one";
}

TEST(CheckGpus, a_job_for_a_cluster_is_not_compared_with_this_machine) {
  HostContext login = machine({});
  login.has_queue = true;
  const Preflight found = checked(job_with(2, 1), login);
  EXPECT_THAT(found.facts, IsEmpty());
  EXPECT_THAT(found.findings, IsEmpty());
}

TEST(CheckGpus, a_job_without_gpus_on_a_machine_without_gpus_has_no_fact) {
  EXPECT_THAT(checked(job_with(2, 0), machine({})).facts, IsEmpty());
}

}  // namespace
}  // namespace stoker::preflight
