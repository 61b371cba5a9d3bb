#include "diagnose/log_line.h"

#include <gmock/gmock.h>

namespace stoker::diagnose {
namespace {

TEST(LogLine, launcher_prefixes_name_the_rank) {
  for (const char* raw : {"[rank3]: boom", "[rank3]:boom", "[default3]:boom", "[trainer3]: boom",
                          "[1,3]<stderr>:boom", "3: boom", " 3: boom", "3: [rank3]: boom"}) {
    const LogLine line = read_log_line(raw);
    EXPECT_EQ(line.rank, 3) << raw;
    EXPECT_EQ(line.text, "boom") << raw;
  }
  EXPECT_EQ(read_log_line("(RayTrainWorker pid=71, ip=10.0.0.1) boom").text, "boom");
  EXPECT_EQ(read_log_line("loss 3: fine").rank, -1);
  // mpiexec -prepend-rank, and values of R.
  EXPECT_EQ(read_log_line("[3]   File \"a.py\", line 2").rank, 3);
  EXPECT_EQ(read_log_line("[3] [rank3]: boom").text, "boom");
  for (const char* raw : {"[1] 0.5 1.5", "[1] \"epoch 3\"", "[1] TRUE", "[1] -1", "[1]+  Done"})
    EXPECT_EQ(read_log_line(raw).rank, -1) << raw;
}

TEST(LogLine, escape_sequences_and_zero_bytes_are_removed) {
  EXPECT_EQ(read_log_line("\x1b[1;31mError\x1b[0m: no\x1b]0;own title\aw\r").text, "Error: now");
  EXPECT_EQ(read_log_line(std::string_view("a\0b\x1b", 4)).text, "ab");
  EXPECT_EQ(read_log_line("\x1b[").text, "");
}

TEST(LogLine, a_rank_named_inside_a_line_is_not_its_rank) {
  EXPECT_EQ(rank_named_in("[Rank 5] Watchdog caught collective operation timeout"), 5);
  EXPECT_EQ(rank_named_in("[PG ID 0 PG GUID 0(default_pg) Rank 12] Process group watchdog"), 12);
  EXPECT_EQ(rank_named_in("RANK 2 | step 7"), 2);
  EXPECT_EQ(rank_named_in("frank 2"), -1);
}

TEST(LogLine, timestamps_in_different_formats_are_compared) {
  const auto iso = time_of("2025-11-21 10:03:11,250 ERROR boom");
  ASSERT_TRUE(iso.has_value());
  EXPECT_EQ(time_of("[rank0]:[E1121 10:03:11.250000000 ProcessGroupNCCL.cpp:616] x"), iso);
  EXPECT_EQ(time_of("Nov 21 10:03:11.25 n1 kernel: boom"), iso);
  EXPECT_LT(*time_of("CANCELLED AT 2025-11-21T10:03:10 DUE TO TIME LIMIT"), *iso);
  EXPECT_EQ(time_of("step 2025 loss 10:03"), std::nullopt);
}

}  // namespace
}  // namespace stoker::diagnose
