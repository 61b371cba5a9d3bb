#include "launch/start/container.h"

#include <sys/stat.h>

#include <gmock/gmock.h>

#include "base/file.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;

job::Job job_in(const Path& image) {
  job::Job job;
  job.working_directory = "/project/me/code";
  job.record.directory = "/project/me/code/runs";
  job.environment.container = image;
  job.data["train"].source = "/tmp/packed";
  job.data["more"].source = "/scratch/more";
  return job;
}

TEST(Container, job_folders_are_mounted) {
  EXPECT_THAT(wrap_in_container(job_in("/images/py"), {"python", "a b.py"}),
              ElementsAre("ch-run", "--cd=/project/me/code", "--bind=/project/me/code",
                          "--bind=/scratch/more", "/images/py", "--", "python", "a b.py"));
  job::Job bare;
  EXPECT_THAT(wrap_in_container(bare, {"true"}), ElementsAre("true"));
}

TEST(Container, missing_image_or_program_is_reported_with_a_cure) {
  TempDirectory box;
  const std::string bin = (box / "bin").string();
  ASSERT_TRUE(write_file(box / "file", "").ok() && make_directories(bin).ok());
  EXPECT_EQ(
      check_container(job_in(box / "image"), bin).to_string(),
      format(
          "environment.container: {0}/image: no such image\n  try: ch-convert docker://python:3.11 {0}/image",
          box.path()));
  ASSERT_TRUE(make_directories(box / "image/project/me/code").ok());
  EXPECT_EQ(check_container(job_in(box / "image"), bin).to_string(),
            "environment.container: there is no ch-run in PATH (Charliecloud)\n"
            "  try: module load charliecloud, or Debian's package charliecloud");
  ASSERT_TRUE(write_file(box / "bin/ch-run", "").ok());
  ASSERT_EQ(::chmod((box / "bin/ch-run").c_str(), 0755), 0);
  EXPECT_EQ(check_container(job_in(box / "image"), bin).to_string(),
            format("data: /scratch/more cannot be seen in the container: the image has no folder with that "
                   "name\n  try: mkdir -p {}/image/scratch/more",
                   box.path()));
  ASSERT_TRUE(make_directories(box / "image/scratch/more").ok());
  EXPECT_TRUE(check_container(job_in(box / "image"), bin).ok());
  EXPECT_TRUE(check_container(job_in(box / "file"), bin).ok());
}

}  // namespace
}  // namespace stoker::launch
