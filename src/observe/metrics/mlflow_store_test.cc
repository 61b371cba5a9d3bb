#include "observe/metrics/mlflow_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kId = "0123456789abcdef0123456789abcdef";
constexpr std::string_view kLater = "fedcba9876543210fedcba9876543210";

class MlflowStoreTest : public ::testing::Test {
 protected:
  void make_run(std::string_view id, std::string_view tag, std::string_view start = "2000000") {
    const Path run = box_ / "0" / id;
    ASSERT_TRUE(make_directories(run / "metrics/val").ok());
    ASSERT_TRUE(make_directories(run / "tags").ok());
    write(id, "meta.yaml", format("run_id: {}\nstart_time: {}\nstatus: 1\n", id, start));
    write(id, "tags/mlflow.runName", "calm-deer");
    if (!tag.empty()) write(id, "tags/stoker.run", tag);
  }
  void write(std::string_view id, std::string_view file, std::string_view text) {
    ASSERT_TRUE(write_file(box_ / "0" / id / file, text).ok());
  }
  std::vector<std::string> poll(MlflowStore& store) {
    std::vector<std::string> lines;
    (void)store.poll([&](const record::PointLine& point) {
      std::string line;
      record::append_point(point, &line);
      lines.push_back(line);
    });
    return lines;
  }
  MlflowStoreOptions options(double since = 1000) { return {box_.path(), "r1", "", since}; }

  TempDirectory box_;
};

TEST_F(MlflowStoreTest, reads_the_lines_that_are_new) {
  make_run(kId, "r1");
  write(kId, "metrics/loss", "2000500 0.5 1\n2000625 nan 2 data model\n20007");
  write(kId, "metrics/val/accuracy", "2000500 0.25\nbad\n");
  MlflowStore store(options());
  EXPECT_THAT(poll(store), ElementsAre("2000.500000,1,0.5,loss\n", "2000.625000,2,nan,loss\n",
                                       "2000.500000,0,0.25,val/accuracy\n"));
  EXPECT_THAT(poll(store), IsEmpty());
  write(kId, "metrics/loss", "2000500 0.5 1\n2000625 nan 2 data model\n2000750 0.125 3\n");
  EXPECT_THAT(poll(store), ElementsAre("2000.750000,3,0.125,loss\n"));
}

TEST_F(MlflowStoreTest, runs_of_other_ranks_and_jobs_are_not_read) {
  make_run(kId, "r1-rank1");
  make_run(kLater, "");
  write(kId, "metrics/loss", "2000500 0.5 1\n");
  write(kLater, "metrics/loss", "2000500 0.5 1\n");
  MlflowStore store(options());
  EXPECT_THAT(poll(store), IsEmpty());
  write(kLater, "tags/stoker.run", "r1");  // MLflow writes its tags last
  EXPECT_THAT(poll(store), ElementsAre("2000.500000,1,0.5,loss\n"));
}

TEST_F(MlflowStoreTest, of_a_continued_run_only_the_new_values_are_read) {
  make_run(kId, "");
  write(kId, "metrics/loss", "2000500 0.5 1\n3000000 0.25 2\n");
  MlflowStoreOptions continued = options(3000.0004);
  continued.run_id = kId;
  MlflowStore store(continued);
  EXPECT_THAT(poll(store), ElementsAre("3000.000000,2,0.25,loss\n"));
}

TEST_F(MlflowStoreTest, later_runs_have_their_name_before_the_metrics) {
  make_run(kId, "r1", "3000000");
  make_run(kLater, "r1", "2000000");
  write(kId, "metrics/loss", "3000500 0.5 1\n");
  write(kLater, "metrics/loss", "2000500 0.25 1\n");
  MlflowStore store(options());
  EXPECT_THAT(poll(store), ElementsAre("2000.500000,1,0.25,loss\n", "3000.500000,1,0.5,calm-deer/loss\n"));
}

TEST(mlflow_store_folder, follows_the_tracking_uri) {
  EXPECT_EQ(mlflow_store_folder("", "/data"), "/data/mlruns");
  EXPECT_EQ(mlflow_store_folder("store", "/data"), "/data/store");
  EXPECT_EQ(mlflow_store_folder("file:./store", "/data"), "/data/./store");
  EXPECT_EQ(mlflow_store_folder("file:///store", "/data"), "/store");
  EXPECT_EQ(mlflow_store_folder("http://server:5000", "/data"), "");
  EXPECT_EQ(mlflow_store_folder("sqlite:///mlflow.db", "/data"), "");
}

}  // namespace
}  // namespace stoker::observe
