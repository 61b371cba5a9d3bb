#include "record/background_sync.h"

#include <atomic>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "record/metrics.h"
#include "record/test_fsync.h"

namespace stoker::record {
namespace {

using namespace std::chrono_literals;

class BackgroundSyncTest : public testing::Test {
 protected:
  TempDirectory box_;
  const Path first_ = box_ / "metrics-0000.csv";
  const Path second_ = box_ / "epochs.csv";
};

TEST_F(BackgroundSyncTest, syncs_each_file_after_a_request) {
  ASSERT_TRUE(write_file(first_, "a\n").ok());
  ASSERT_TRUE(write_file(second_, "b\n").ok());
  const int before = synced_files();
  BackgroundSync sync({first_, second_});
  ASSERT_TRUE(sync.wait(Deadline::after(0s)).ok()) << "nothing was requested";
  EXPECT_EQ(synced_files(), before);
  sync.request();
  ASSERT_TRUE(sync.wait(Deadline::after(30s)).ok());
  EXPECT_EQ(synced_files(), before + 2);
}

TEST_F(BackgroundSyncTest, an_error_is_reported_and_other_files_are_synced) {
  ASSERT_TRUE(write_file(second_, "b\n").ok());
  const int before = synced_files();
  BackgroundSync sync({first_, second_});
  sync.request();
  EXPECT_EQ(sync.wait(Deadline::after(30s)).code(), Code::not_found);
  EXPECT_EQ(synced_files(), before + 1);
}

TEST_F(BackgroundSyncTest, ends_with_a_request_that_nothing_waits_for) {
  ASSERT_TRUE(write_file(first_, "a\n").ok());
  for (int i = 0; i < 50; ++i) {
    BackgroundSync sync({first_});
    sync.request();
  }
}

}  // namespace
}  // namespace stoker::record
