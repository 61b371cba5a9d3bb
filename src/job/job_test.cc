#include "job/job.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::job {
namespace {

// A job file in a folder of its own.
class Sandbox {
 public:
  Path write(std::string_view text, std::string_view name = "job.yaml") {
    const Path path = folder_ / name;
    EXPECT_TRUE(write_file(path, text).ok());
    return path;
  }
  Path operator/(std::string_view name) const { return folder_ / name; }
  Path folder() const { return folder_.path(); }

 private:
  TempDirectory folder_;
};

constexpr std::string_view kTrain = R"(name: cifar
train: {model: cifar-resnet20, epochs: 5}
data:
  train: {source: packed, split: train}
  validation: {source: packed, split: test}
)";

TEST(Job, effective_file_loads_back_as_an_equal_job) {
  Sandbox box;
  const Path file = box.write(R"(name: r50
run: python 'my train.py' --lr ${params.lr} --note '$${HOME}' ""
params: {lr: 0.1, note: "two words: \"a\"\n\u2028", yes: "no"}
resources: {nodes: 2, ranks_per_node: 4, cpus_per_rank: 8, time: 2-12:00:00}
environment: {venv: .venv, variables: {A: "", B: "a #b", NO: "null"}}
data: {train: {source: x y/z}}
checkpoint: {directory: ckpt, every: 90s, keep: 2}
launcher: single
record: {directory: out, metrics: false, receipts: true, sample_every: 250ms}
timeouts: {grace: 1500ms}
)");
  const Result<Job> job = load(file);
  ASSERT_TRUE(job.ok()) << job.error().to_string();
  EXPECT_EQ(job->params.at("note"), "two words: \"a\"\n\xe2\x80\xa8");
  EXPECT_EQ(job->command->arguments,
            (std::vector<std::string>{"python", "my train.py", "--lr", "0.1", "--note", "${HOME}", ""}));
  Sandbox other;
  const Result<Job> again = load(other.write(to_yaml(*job)));
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(*again, *job) << to_yaml(*job);
}

TEST(Job, effective_file_of_a_training_loads_back_as_an_equal_job) {
  Sandbox box;
  const Result<Job> job = load(box.write(kTrain), {.set = {"train.image.mean=[0.5, 0.25, 1e-05]"}});
  ASSERT_TRUE(job.ok()) << job.error().to_string();
  EXPECT_EQ(job->train->image.mean, (std::vector<double>{0.5, 0.25, 1e-5}));
  Sandbox other;
  const Result<Job> again = load(other.write(to_yaml(*job)));
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(*again, *job) << to_yaml(*job);
}

}  // namespace
}  // namespace stoker::job
