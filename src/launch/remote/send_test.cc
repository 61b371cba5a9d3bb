#include "launch/remote/send.h"

#include <unistd.h>

#include <gmock/gmock.h>

#include "base/process.h"
#include "launch/remote/serve.h"
#include "launch/start/sent_files.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A folder outside any repository (TempDirectory).
class SendTest : public ::testing::Test {
 protected:
  void put(const Path& name, const std::string& text = "x") const {
    ASSERT_TRUE(make_directories((folder_.path() / name).parent_path()).ok());
    ASSERT_TRUE(write_file(folder_.path() / name, text).ok());
  }
  const TempDirectory folder_;
};

TEST_F(SendTest, outside_of_a_repository_goes_what_looks_like_code) {
  for (const char* name : {"job.yaml", "train.py", "lib/a.py", "runs/r/log", ".git/HEAD", "venv/pyvenv.cfg",
                           "venv/bin/python", "lib/__pycache__/a.pyc", ".env"})
    put(name);
  put("data.tar", std::string(11 << 20, 'x'));
  const auto what = list_files_to_send("job.yaml", folder_.path());
  ASSERT_TRUE(what.ok()) << what.status().to_string();
  EXPECT_THAT(what->files, ElementsAre("job.yaml", "lib/a.py", "train.py"));
  EXPECT_THAT(what->left_out, ElementsAre("data.tar"));
  EXPECT_EQ(what->below, "");
  EXPECT_THAT(what->secret, ElementsAre(".env"));
  EXPECT_EQ(what->bytes, 3U);
}

TEST_F(SendTest, of_a_job_in_a_folder_below_only_that_goes) {
  for (const char* name : {"job.yaml", "exp/job.yaml", "exp/lib/a.py"}) put(name);
  const auto what = list_files_to_send("exp/job.yaml", folder_.path());
  ASSERT_TRUE(what.ok()) << what.status().to_string();
  EXPECT_THAT(what->files, ElementsAre("exp/job.yaml", "exp/lib/a.py"));
  EXPECT_EQ(what->below, "exp");
}

TEST_F(SendTest, a_job_elsewhere_is_refused) {
  put("job.yaml");
  put("exp/x");
  const Path here = folder_.path() / "exp";
  EXPECT_EQ(list_files_to_send("none.yaml", here).status().message(), "none.yaml: no such file");
  for (const std::string& job : {std::string("../job.yaml"), (folder_ / "exp/x").string()}) {
    EXPECT_EQ(list_files_to_send(job, here).status().message(),
              job + ": must be a relative path below the current folder (--host)");
  }
}

TEST_F(SendTest, what_was_sent_is_read_back_without_names_that_lead_out) {
  ASSERT_TRUE(write_sent(folder_.path(), {"a b", "c/d"}).ok());
  EXPECT_THAT(*read_sent(folder_.path()), ElementsAre("a b", "c/d"));
  ASSERT_TRUE(write_sent(folder_.path(), {"../x", "/etc/passwd", "a//b"}).ok());
  EXPECT_THAT(*read_sent(folder_.path()), IsEmpty());
  EXPECT_EQ(read_sent(folder_.path() / "none").status().code(), Code::not_found);
}

TEST(Incoming, gives_lines_and_then_bytes) {
  auto pipe = Pipe::create();
  ASSERT_TRUE(pipe.ok());
  const std::string sent = "a request\nbytes of a tar";
  ASSERT_EQ(::write(pipe->write.get(), sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
  Incoming in(pipe->read.get());
  const auto line = in.line(Deadline::after(std::chrono::seconds(10)));
  ASSERT_TRUE(line.ok()) << line.status().to_string();
  EXPECT_EQ(*line, "a request");
  const TempDirectory folder;
  auto file = File::create(folder / "tar");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(in.copy(5, *file).ok());
  EXPECT_EQ(*read_file(folder / "tar"), "bytes");
  pipe->write.reset();
  EXPECT_EQ(in.copy(100, *file).message(), "remote: the other end closed the connection");
  EXPECT_EQ(in.line(Deadline::after(std::chrono::seconds(10))).status().message(),
            "remote: the other end closed the connection");
}

}  // namespace
}  // namespace stoker::launch
