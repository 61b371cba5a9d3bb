#include "netcheck/torch_program.h"

#include <gtest/gtest.h>

namespace stoker::netcheck {
namespace {

TEST(TorchProgram, its_summary_is_found_among_the_lines_of_nccl) {
  EXPECT_EQ(torch_summary("n1:7:7 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
                          "NCCL version 2.27.5+cuda12.9\n"
                          "exact by torch 2.9.1+cu129 over nccl, 1 MiB in 0.1 ms\n"
                          "n1:7:9 [0] NCCL INFO comm 0x55 rank 0 nranks 1 - Destroy COMPLETE\n"),
            "exact by torch 2.9.1+cu129 over nccl, 1 MiB in 0.1 ms");
}

TEST(TorchProgram, without_its_summary_other_lines_do_not_count) {
  EXPECT_EQ(torch_summary("NCCL version 2.27.5+cuda12.9\n"), "");
  EXPECT_EQ(torch_summary(""), "");
}

TEST(TorchProgram, its_timings_are_found_among_the_lines_of_nccl) {
  const std::vector<GpuTiming> timings = torch_timings(
      "NCCL version 2.27.5+cuda12.9\nn1:7:9 [0] nccl all-reduce 1048576 0.000052000\nnccl all-reduce "
      "16777216 "
      "0.00021\nnccl all-reduce 7\nnccl all-reduce x 1\nnccl all-reduce 8 -1\nnccl all-reduce 8 nan\n");
  ASSERT_EQ(timings.size(), 2U);
  EXPECT_EQ(timings[0].bytes, 1048576U);
  EXPECT_EQ(timings[1].seconds, 0.00021);
  EXPECT_EQ(torch_timings(to_text(timings)).size(), 2U);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "nccl all-reduce 8 1\n";
  EXPECT_EQ(torch_timings(many).size(), kMaxGpuTimings);
}

TEST(TorchProgram, speeds_are_defined_as_in_nccl_tests) {
  const GpuTiming timing{.bytes = 128 << 20, .seconds = 0.001, .bound_bytes_per_s = 0, .ranks = 4};
  EXPECT_NEAR(timing.algorithm_bytes_per_s(), 134.2e9, 1e8);
  EXPECT_NEAR(timing.bus_bytes_per_s(), 201.3e9, 1e8);
}

TEST(TorchProgram, prints_a_line_with_that_start) {
  EXPECT_NE(std::string_view(kTorchProgram).find(kTorchSummaryStart), std::string_view::npos);
}

}  // namespace
}  // namespace stoker::netcheck
