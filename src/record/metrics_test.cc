#include "record/metrics.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::record {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kTwo[] = {"time", "loss"};

std::vector<double> to_vector(std::span<const double> values) { return {values.begin(), values.end()}; }

TEST(Metrics, rows_are_read_back_exactly) {
  TempDirectory box;
  auto writer = MetricWriter::create(box / "m.csv", kTwo);
  ASSERT_TRUE(writer.ok());
  std::mt19937_64 random(7);
  std::vector<double> written = {0.0,
                                 -0.0,
                                 0.1,
                                 1e300,
                                 5e-324,
                                 1'763'719'391.123456,
                                 2.3e-05,
                                 1e22,
                                 1e23,
                                 -17,
                                 9007199254740993.0,
                                 0.30000000000000004,
                                 1.0 / 3,
                                 1e-22,
                                 1e-23,
                                 123456789012345678.0};
  std::uniform_real_distribution<double> uniform(-10, 10);
  for (int i = 0; i < 2000; ++i) written.push_back(uniform(random));
  for (double value : written) {
    const double row[] = {1, value};
    ASSERT_TRUE(writer->append(row).ok());
  }
  const auto table = read_metrics(box / "m.csv");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(to_vector(table->column("loss")), written);
  EXPECT_EQ(table->damaged, 0u);
  EXPECT_FALSE(table->torn);
}

TEST(Metrics, a_nan_loss_is_kept) {
  TempDirectory box;
  auto writer = MetricWriter::create(box / "m.csv", kTwo);
  const double rows[][2] = {{1, std::nan("")}, {2, std::numeric_limits<double>::infinity()}};
  for (const auto& row : rows) ASSERT_TRUE(writer->append(row).ok());
  EXPECT_EQ(*read_file(box / "m.csv"), "time,loss\n1,nan\n2,inf\n");
  const auto table = read_metrics(box / "m.csv");
  EXPECT_TRUE(std::isnan(table->column("loss")[0]));
  EXPECT_TRUE(std::isinf(table->column("loss")[1]));
}

TEST(Metrics, one_file_has_one_writer) {
  TempDirectory box;
  const std::string file = (box / "m.csv").string();
  ASSERT_TRUE(MetricWriter::create(file, kTwo).ok());
  EXPECT_EQ(MetricWriter::create(file, kTwo).status().message(), file + ": file exists");
}

TEST(Metrics, a_writer_without_a_file_ignores_rows) {
  MetricWriter none;
  const double row[] = {1, 2, 3};
  EXPECT_TRUE(none.append(row).ok());
}

TEST(Metrics, skips_a_torn_last_line) {
  for (std::string_view end : {"3,0.", "3", "3,0.25", "x"}) {
    const auto table = parse_metrics("m", "time,loss\n1,0.5\n2,0.25\n" + std::string(end));
    ASSERT_TRUE(table.ok());
    EXPECT_THAT(to_vector(table->column("loss")), ElementsAre(0.5, 0.25));
    EXPECT_TRUE(table->torn);
    EXPECT_EQ(table->damaged, 0u);
  }
}

TEST(Metrics, damaged_lines_are_counted_and_the_rest_is_kept) {
  const auto table = parse_metrics("m", "time,loss\r\n1,0.5\r\n2\n3,4,5\nx,y\n\n,7\n8, 9\n10,+1\n11,0.125\n");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->rows(), 3u);
  EXPECT_TRUE(std::isnan(table->column("time")[1]));
  EXPECT_THAT(to_vector(table->column("loss")), ElementsAre(0.5, 7, 0.125));
  EXPECT_EQ(table->damaged, 5u);
  EXPECT_THAT(table->column("absent"), IsEmpty());
  EXPECT_FALSE(table->has("absent"));
}

TEST(Metrics, reports_a_bad_first_line) {
  const auto message = [](std::string_view text) {
    return std::string(parse_metrics("m", text).status().message());
  };
  EXPECT_EQ(message(""), "m: empty: the line of column names is missing");
  EXPECT_EQ(message("time,loss"), "m: its first line has no end");
  EXPECT_EQ(message("a,,b\n"), "m: '' in its first line is not a column name");
  EXPECT_EQ(message("a,<script>\n"), "m: '<script>' in its first line is not a column name");
  EXPECT_EQ(message("a,b,a\n"), "m: column 'a' twice in its first line");
  EXPECT_EQ(message("a,\x01\xff\n"), "m: '\\x01\\xff' in its first line is not a column name");
}

TEST(Metrics, size_is_bounded) {
  const MetricLimits limits{.columns = 2, .rows = 3, .line_bytes = 16};
  EXPECT_EQ(parse_metrics("m", "a,b,c\n", limits).status().message(),
            "m: 3 columns in its first line, at most 2 are read");
  const auto table = parse_metrics("m", "a,b\n1,2\n1,00000000000000000000\n3,4\n5,6\n7,8\n", limits);
  EXPECT_EQ(table->rows(), 3u);
  EXPECT_EQ(table->damaged, 1u);
  EXPECT_TRUE(table->truncated);
}

TEST(Metrics, refuses_a_pipe_or_folder_without_blocking) {
  TempDirectory box;
  const std::string pipe = (box / "p.csv").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_metrics(pipe).status().message(), pipe + ": expected a file, got a pipe");
  EXPECT_EQ(read_metrics(box.path()).status().message(), box.path().string() + ": is a directory");
  EXPECT_EQ(read_metrics(box / "none.csv").status().code(), Code::not_found);
}

TEST(Metrics, a_full_disk_is_an_error_and_the_next_row_starts_on_its_own_line) {
  TempDirectory box;
  auto writer = MetricWriter::create(box / "m.csv", kTwo);
  const double row[] = {1, 0.123456789};
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{15, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Status full = writer->append(row);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(full.message(), (box / "m.csv").string() + ": file too large");
  ASSERT_TRUE(writer->append(row).ok());
  EXPECT_EQ(*read_file(box / "m.csv"), "time,loss\n1,0.1\n1,0.123456789\n");
}

TEST(Metrics, kill_9_loses_no_complete_row) {
  TempDirectory box;
  int progress[2];
  ASSERT_EQ(::pipe(progress), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto writer = MetricWriter::create(box / "m.csv", kTwo);
    for (double i = 0;; ++i) {
      const double row[] = {i, i / 3};
      if (!writer->append(row).ok() || ::write(progress[1], "x", 1) != 1) _exit(1);
    }
  }
  ::close(progress[1]);
  std::size_t confirmed = 0;
  char byte = 0;
  while (confirmed < 5000 && ::read(progress[0], &byte, 1) == 1) ++confirmed;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  while (::read(progress[0], &byte, 1) == 1) ++confirmed;
  ::close(progress[0]);
  const auto table = read_metrics(box / "m.csv");
  ASSERT_TRUE(table.ok());
  EXPECT_GE(table->rows(), confirmed);
  EXPECT_LE(table->rows(), confirmed + 1);
  EXPECT_EQ(table->damaged, 0u);
  for (std::size_t i = 0; i < table->rows(); ++i)
    ASSERT_EQ(table->column("loss")[i], static_cast<double>(i) / 3);
}

TEST(Metrics, every_truncated_file_reads_as_its_complete_rows) {
  const std::string whole = "time,loss\n1,0.5\n2,0.25\n3,0.125\n";
  for (std::size_t cut = 10; cut <= whole.size(); ++cut) {
    const auto table = parse_metrics("m", std::string_view(whole).substr(0, cut));
    ASSERT_TRUE(table.ok());
    EXPECT_EQ(table->rows(),
              static_cast<std::size_t>(
                  std::count(whole.begin() + 10, whole.begin() + static_cast<std::ptrdiff_t>(cut), '\n')));
    EXPECT_EQ(table->damaged, 0u);
  }
}

}  // namespace
}  // namespace stoker::record
