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

TEST(TorchProgram, prints_a_line_with_that_start) {
  EXPECT_NE(std::string_view(kTorchProgram).find(kTorchSummaryStart), std::string_view::npos);
}

}  // namespace
}  // namespace stoker::netcheck
