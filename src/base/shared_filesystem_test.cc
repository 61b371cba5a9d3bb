#include "base/shared_filesystem.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// The numbers of statfs(2) and of the filesystems' own headers.
TEST(SharedFilesystem, is_known_by_its_type) {
  EXPECT_EQ(shared_filesystem(0x6969), "NFS");
  EXPECT_EQ(shared_filesystem(0x0BD00BD0), "Lustre");
  EXPECT_EQ(shared_filesystem(0x65735546), "FUSE");
  EXPECT_EQ(shared_filesystem(0x01021994), "");  // tmpfs
  EXPECT_EQ(shared_filesystem(0xEF53), "");      // ext4
}

TEST(SharedFilesystem, of_this_machine_is_none) {
  EXPECT_EQ(*shared_filesystem_at("/proc"), "");
  EXPECT_EQ(shared_filesystem_at("/no/folder").status().code(), Code::not_found);
}

}  // namespace
}  // namespace stoker
