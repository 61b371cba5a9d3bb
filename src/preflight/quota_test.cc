#include "preflight/quota.h"

#include <chrono>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "base/file.h"
#include "preflight/free_space.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kGpfsHeader =
    "mmlsquota::HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:blockUsage:blockQuota:"
    "blockLimit:"
    "blockInDoubt:blockGrace:filesUsage:filesQuota:filesLimit:filesInDoubt:filesGrace:remarks:quota:defQuota:"
    "fid:"
    "filesetname:\n";

QuotaTarget me() { return {.user = 1234, .group = 500, .device = "gpfs01", .folder = "/gpfs/home/me"}; }

TEST(Quota, lfs_and_quota_output_is_parsed_on_one_or_two_lines) {
  const auto lustre = parse_quota(
      "         /lustre04  1048576  19000000000 20971520000       -   12345  1000000 1000000       -\n");
  ASSERT_TRUE(lustre.has_value());
  EXPECT_EQ(lustre->used, ByteCount{1048576ull << 10});
  EXPECT_EQ(lustre->bytes_limit, ByteCount{19000000000ull << 10});
  EXPECT_EQ(lustre->files, 12345u);
  EXPECT_EQ(lustre->files_limit, 1000000u);
  // A path of more than 15 characters, and usage over the limit.
  EXPECT_EQ(
      parse_quota(
          "/lustre04/scratch/me\n"
          "                1048576*  19000000000 20971520000  6d23h   12345  1000000 1000000       -\n"),
      lustre);
  const auto nfs = parse_quota(
      "Disk quotas for user me (uid 1000): \n"
      "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"
      "server:/home  5000*   4000   6000   0   10   0   0   0\n");
  ASSERT_TRUE(nfs.has_value());
  EXPECT_EQ(nfs->used, ByteCount{5000u << 10});
  EXPECT_EQ(nfs->bytes_limit, ByteCount{4000u << 10});
  EXPECT_EQ(nfs->files_limit, std::nullopt);
  EXPECT_EQ(parse_quota("Disk quotas for user me (uid 1000): none\n"), std::nullopt);
  EXPECT_EQ(parse_quota("/x 1 2 3 - 99999999999999999999 2 3 -\n"), std::nullopt);
  EXPECT_EQ(parse_quota(""), std::nullopt);
}

TEST(Quota, mmlsquota_output_is_parsed_by_column_names) {
  const std::string rows = std::string(kGpfsHeader) +
                           "mmlsquota::0:1:::gpfs01:USR:1234:me:2097152:10485760:12582912:1024:none:4000:0:"
                           "500000:7:none:e:on:off:::\n"
                           "mmlsquota::0:1:::gpfs01:GRP:501:other:1:1:1:0:none:1:1:1:0:none:e:on:off:::\n"
                           "mmlsquota::0:1:::gpfs02:USR:1234:me:1:1:1:0:none:1:1:1:0:none:e:on:off:::\n"
                           "mmlsquota::0:1:::gpfs01:USR:99:you:1:1:1:0:none:1:1:1:0:none:e:on:off:::\n";
  const Quota mine{.used = ByteCount{(2097152ull + 1024) << 10},
                   .bytes_limit = ByteCount{10485760ull << 10},
                   .files = 4007,
                   .files_limit = 500000};
  EXPECT_EQ(parse_gpfs_quota(rows, me()), mine);
  QuotaTarget with_dev = me();
  with_dev.device = "/dev/gpfs01";
  EXPECT_EQ(parse_gpfs_quota(rows, with_dev), mine);
  // Newer releases: a different first column and fewer columns.
  EXPECT_EQ(parse_gpfs_quota(
                "mmlsquota:user:HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:"
                "blockUsage:blockQuota:blockLimit:blockInDoubt:blockGrace:filesUsage:filesQuota:filesLimit:"
                "filesInDoubt:filesGrace:remarks:fid:filesetname:\n"
                "mmlsquota:user:0:1:::gpfs01:USR:1234:me:100:150:200:7:7 days:100:0:0:0:none::0:root:\n",
                me()),
            (Quota{.used = ByteCount{107u << 10},
                   .bytes_limit = ByteCount{150u << 10},
                   .files = 100,
                   .files_limit = {}}));
  EXPECT_EQ(parse_gpfs_quota("mmlsquota: command not found", me()), std::nullopt);
  EXPECT_EQ(parse_gpfs_quota(kGpfsHeader, me()), std::nullopt);
  EXPECT_EQ(parse_gpfs_quota("mmlsquota::0:1:::gpfs01:USR:1234:me:1:2:3\n", me()), std::nullopt);
}

TEST(Quota, gpfs_group_and_fileset_quotas_apply_too) {
  const std::string of_group =
      std::string(kGpfsHeader) +
      "mmlsquota::0:1:::gpfs01:USR:1234:me:100:0:0:0:none:1:0:0:0:none:e:on:off:::\n"
      "mmlsquota::0:1:::gpfs01:GRP:500:lab:900:1000:0:0:none:70:0:100:0:none:e:on:off:::\n";
  EXPECT_EQ(parse_gpfs_quota(of_group, me()), (Quota{.used = ByteCount{900u << 10},
                                                     .bytes_limit = ByteCount{1000u << 10},
                                                     .files = 70,
                                                     .files_limit = 100}));
  const std::string filesets =
      std::string(kGpfsHeader) +
      "mmlsquota::0:1:::gpfs01:USR:1234:me:10:20:20:0:none:1:0:0:0:none:e:on:off:1:software:\n"
      "mmlsquota::0:1:::gpfs01:USR:1234:me:30:90:90:0:none:2:0:0:0:none:e:on:off:2:home:\n";
  EXPECT_EQ(
      parse_gpfs_quota(filesets, me()),
      (Quota{
          .used = ByteCount{30u << 10}, .bytes_limit = ByteCount{90u << 10}, .files = 2, .files_limit = {}}));
  QuotaTarget elsewhere = me();
  elsewhere.folder = "/gpfs/project/x";
  EXPECT_EQ(parse_gpfs_quota(filesets, elsewhere), std::nullopt) << "two filesystems match";
}

TEST(Quota, beegfs_ctl_prints_commas) {
  const auto quota = parse_beegfs_csv(
      "name,id,size,hard,files,hard\nalice,1001,1073741824,10737418240,1000,unlimited\n", 1001);
  EXPECT_EQ(quota, (Quota{.used = 1_GiB, .bytes_limit = 10_GiB, .files = 1000, .files_limit = {}}));
  EXPECT_EQ(
      parse_beegfs_csv("name,id,size,hard,files,hard\nalice,1001,0 Byte,107374182400 Byte,12+,0\n", 1001),
      (Quota{.used = {}, .bytes_limit = 100_GiB, .files = 12, .files_limit = {}}));
  // The pool with the larger remaining quota.
  EXPECT_EQ(parse_beegfs_csv("Quota information for storage pool Default (ID: 1):\n\n"
                             "name,id,size,hard,files,hard\nalice,1001,9,10,1,-\n"
                             "Quota information for storage pool fast (ID: 2):\n\n"
                             "name,id,size,hard,files,hard\nalice,1001,1,100,1,50\n",
                             1001),
            (Quota{.used = {1}, .bytes_limit = ByteCount{100}, .files = 1, .files_limit = 50}));
  EXPECT_EQ(parse_beegfs_csv("name,id,size,hard,files,hard\nbob,1002,1,2,3,4\n", 1001), std::nullopt);
  EXPECT_EQ(parse_beegfs_csv("name,id,size,hard,files,hard\n", 1001), std::nullopt);
}

TEST(Quota, beegfs_8_prints_one_json_object_per_line) {
  const std::string lines =
      "INFO: Quota usage information is fetched every 30s from the server nodes\n"
      R"({"id":1234,"inode":"1000/9223372036854775807","name":"me","pool":"default","space":"1073741824/10737418240","type":"user"})"
      "\n"
      R"({"id":500,"inode":"5000/6000","name":"lab","pool":"default","space":"5/?","type":"group"})"
      "\n"
      R"({"id":77,"inode":"1/1","name":"you","pool":"default","space":"1/1","type":"group"})"
      "\n";
  EXPECT_EQ(parse_beegfs_lines(lines, me()),
            (Quota{.used = 1_GiB, .bytes_limit = 10_GiB, .files = 5000, .files_limit = 6000}));
  EXPECT_EQ(parse_beegfs_lines(R"({"id":"1234","type":"user","space":"7/∞","inode":"3/∞"})", me()),
            (Quota{.used = {7}, .bytes_limit = {}, .files = 3, .files_limit = {}}));
  EXPECT_EQ(parse_beegfs_lines("{\"id\":1234,\"type\":\"user\",\"space\":\"1.00GiB/2.00GiB\"}\n{broken\n[]\n",
                               me()),
            std::nullopt);
}

// Fake programs, first in PATH during its lifetime.
class FakePrograms {
 public:
  FakePrograms() : before_(std::getenv("PATH")) {
    ::setenv("PATH", (box_.path().string() + ":/usr/bin:/bin").c_str(), 1);
  }
  ~FakePrograms() { ::setenv("PATH", before_.c_str(), 1); }
  FakePrograms(const FakePrograms&) = delete;
  FakePrograms& operator=(const FakePrograms&) = delete;

  void add(const std::string& name, const std::string& body) {
    ASSERT_TRUE(write_file(box_ / name, "#!/bin/sh\n" + body).ok());
    ASSERT_EQ(::chmod((box_ / name).c_str(), 0755), 0);
  }
  const Path& folder() const { return box_.path(); }

 private:
  TempDirectory box_;
  std::string before_;
};

Deadline soon() { return Deadline::after(std::chrono::milliseconds(700)); }

TEST(Quota, the_quota_program_of_the_filesystem_is_run) {
  FakePrograms programs;
  const std::string uid = std::to_string(::getuid());
  const std::string gid = std::to_string(::getegid());
  programs.add("lfs",
               "[ \"$1 $2 $3 $4\" = \"quota -q -u " + uid + "\" ] && echo \"$5 10 20 30 - 4 5 6 -\"\n");
  programs.add("beegfs-ctl",
               "[ \"$3\" = --csv ] || [ \"$2\" = --csv ] || exit 2\necho name,id,size,hard,files,hard\n"
               "case \"$3 $4\" in\n  '--uid " +
                   uid + "') echo me," + uid + ",100,1000,1,9;;\n  '--gid " + gid + "') echo us," + gid +
                   ",700,800,2,unlimited;;\nesac\n");
  EXPECT_EQ(
      query_quota(Filesystem::lustre, programs.folder(), soon()).quota,
      (Quota{
          .used = ByteCount{10u << 10}, .bytes_limit = ByteCount{20u << 10}, .files = 4, .files_limit = 5}));
  const QuotaResult beegfs = query_quota(Filesystem::beegfs, programs.folder(), soon());
  EXPECT_EQ(beegfs.quota,
            (Quota{.used = {700}, .bytes_limit = ByteCount{800}, .files = 1, .files_limit = 9}));
  EXPECT_EQ(beegfs.error, "");
  programs.add("beegfs",
               "[ \"$*\" = 'quota list-usage --raw --output ndjson' ] || exit 2\n"
               "echo '{\"id\":" +
                   uid + ",\"type\":\"user\",\"space\":\"1/50\",\"inode\":\"1/∞\"}'\n");
  EXPECT_EQ(query_quota(Filesystem::beegfs, programs.folder(), soon()).quota,
            (Quota{.used = {1}, .bytes_limit = ByteCount{50}, .files = 1, .files_limit = {}}));
}

TEST(Quota, missing_hanging_and_failing_programs_are_reported) {
  FakePrograms programs;
  EXPECT_EQ(query_quota(Filesystem::gpfs, programs.folder(), soon()).error, "mmlsquota: not found in PATH");
  EXPECT_EQ(query_quota(Filesystem::lustre, programs.folder(), soon()).error, "lfs: not found in PATH");
  EXPECT_EQ(query_quota(Filesystem::beegfs, programs.folder(), soon()).error,
            "beegfs-ctl: not found in PATH");
  // Few NFS servers report quotas.
  EXPECT_EQ(query_quota(Filesystem::nfs, programs.folder(), soon()).error, "");
  programs.add("mmlsquota", "exec sleep 60\n");
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(query_quota(Filesystem::gpfs, programs.folder(), soon()).error, "mmlsquota: no answer in time");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  programs.add("mmlsquota", "echo 'mmlsquota: no file system' >&2\nexit 1\n");
  EXPECT_EQ(query_quota(Filesystem::gpfs, programs.folder(), soon()).error, "mmlsquota: exit code 1");
  // Endless output is truncated and ignored.
  programs.add("mmlsquota", "exec yes mmlsquota::0:1\n");
  EXPECT_EQ(query_quota(Filesystem::gpfs, programs.folder(), soon()).quota, std::nullopt);
}

}  // namespace
}  // namespace stoker::preflight
