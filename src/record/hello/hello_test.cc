#include "record/hello/hello.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::record {
namespace {

TEST(Hello, is_read_back) {
  const TempDirectory box;
  EXPECT_EQ(read_hello(box / "runs").status().code(), Code::not_found);
  HelloRecord hello{.time = 12.5, .job = "digits", .hosts = {"n1", "n2"}, .ranks = 8, .is_ready = true};
  hello.all_reduced = true;
  hello.interface = "ib0";
  hello.all_reduce_bytes_per_s = 2e9;
  ASSERT_TRUE(write_hello(box / "runs", hello).ok());
  const auto read = read_hello(box / "runs");
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->time, 12.5);
  EXPECT_EQ(read->job, "digits");
  EXPECT_EQ(read->hosts, hello.hosts);
  EXPECT_EQ(read->ranks, 8);
  EXPECT_TRUE(read->is_ready && read->all_reduced);
  EXPECT_EQ(read->interface, "ib0");
  EXPECT_EQ(read->all_reduce_bytes_per_s, 2e9);
}

TEST(Hello, reports_an_invalid_file) {
  const TempDirectory box;
  const std::string path = hello_path(box.path()).string();
  ASSERT_TRUE(write_file(path, "[1]").ok());
  EXPECT_EQ(read_hello(box.path()).status().message(), path + ": not a JSON object");
  ASSERT_TRUE(write_file(path, "{\"format\": \"stoker-hello\", \"version\": 2}").ok());
  EXPECT_EQ(read_hello(box.path()).status().message(), path + ": is not a stoker hello record of version 1");
  ASSERT_TRUE(write_file(path, "{\"format\": \"stoker-hello\", \"version\": 1, \"ranks\": -1e9}").ok());
  EXPECT_EQ(read_hello(box.path())->ranks, 0);
}

}  // namespace
}  // namespace stoker::record
