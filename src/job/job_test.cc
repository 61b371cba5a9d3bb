#include "job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "job/settings.h"
#include "job/test_job.h"

namespace stoker::job {
namespace {

TEST(Job, effective_file_loads_back_as_an_equal_job) {
  JobSandbox box;
  const Path file = box.write(R"(name: r50
run: python 'my train.py' --lr ${params.lr} --note '$${HOME}' ""
params: {lr: 0.1, note: "two words: \"a\"\n\u2028", yes: "no"}
resources:
  {nodes: 2, ranks: 7, cpus_per_rank: 8, gpus_per_rank: 1, ranks_per_gpu: 2, memory_per_node: 128GB, time: 2-12:00:00}
slurm: {account: def-lab, partition: "gpu,cpu", qos: high, reservation: r, extra: ["-C v100", --exclusive, "--x=a'b"]}
environment: {venv: .venv, variables: {A: "", B: "a #b", NO: "null"}}
data: {train: {source: x y/z}}
checkpoint: {directory: ckpt, every: 90s, keep_last: 2, keep_every: 6h, keep_best: 1, metric: val_loss, before_end: 5m}
launcher: torchrun
record: {directory: out, metrics: false, receipts: true, sample_every: 250ms}
timeouts: {grace: 1500ms}
)");
  const Result<Job> job = load(file);
  ASSERT_TRUE(job.ok()) << job.error().to_string();
  EXPECT_EQ(job->params.at("note"), "two words: \"a\"\n\xe2\x80\xa8");
  EXPECT_EQ(job->command->arguments,
            (std::vector<std::string>{"python", "my train.py", "--lr", "0.1", "--note", "${HOME}", ""}));
  JobSandbox other;
  const Result<Job> again = load(other.write(to_yaml(*job)));
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(*again, *job) << to_yaml(*job);
}

TEST(Job, the_total_of_ranks_determines_the_maximum_of_a_node) {
  JobSandbox box;
  const Resources resources =
      load(box.write("run: x\nresources: {nodes: 2, ranks: 7, ranks_per_gpu: 2}\n"))->resources;
  EXPECT_EQ(resources.ranks_per_node, 4u);
  EXPECT_EQ(resources.world_size(), 7u);
  EXPECT_EQ(resources.gpus_per_node(), 2u);
  EXPECT_EQ(load(box.write("run: x\nresources: {ranks_per_node: 4, gpus_per_rank: 2}\n"))
                ->resources.gpus_per_node(),
            8u);
}

TEST(Job, an_automatic_interval_loads_back) {
  JobSandbox box;
  const Job job = load(box.write("run: x\ncheckpoint: {every: auto, mtbf: 12h}\n")).value();
  EXPECT_TRUE(job.checkpoint.every.is_automatic);
  EXPECT_FALSE(job.checkpoint.every.is_never());
  EXPECT_EQ(job.checkpoint.mtbf, std::chrono::hours(12));
  JobSandbox other;
  EXPECT_EQ(load(other.write(to_yaml(job))).value(), job) << to_yaml(job);
}

TEST(Job, effective_file_of_a_training_loads_back_as_an_equal_job) {
  JobSandbox box;
  const Result<Job> job = load(box.write(kTrain), {.set = {"train.image.mean=[0.5, 0.25, 1e-05]"}});
  ASSERT_TRUE(job.ok()) << job.error().to_string();
  EXPECT_EQ(job->train->image.mean, (std::vector<double>{0.5, 0.25, 1e-5}));
  JobSandbox other;
  const Result<Job> again = load(other.write(to_yaml(*job)));
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(*again, *job) << to_yaml(*job);
}

TEST(Job, has_the_declared_defaults) {
  JobSandbox box;
  const Job job = load(box.write("run: python train.py\n"), {.current_directory = "/here"}).value();
  EXPECT_EQ(job.name, box.folder().filename().string());
  EXPECT_EQ(job.working_directory, box.folder());
  EXPECT_EQ(job.resources.world_size(), 1u);
  EXPECT_FALSE(job.resources.time);
  EXPECT_EQ(job.checkpoint.every.epochs, 1u);
  EXPECT_EQ(job.checkpoint.keep_last, 3u);
  EXPECT_EQ(job.checkpoint.keep_best, 0u);
  EXPECT_EQ(job.checkpoint.keep_every, Duration::zero());
  EXPECT_EQ(job.checkpoint.mtbf, std::chrono::hours(24));
  EXPECT_EQ(job.record.directory, Path("/here/runs"));
  EXPECT_EQ(job.record.sample_every, std::chrono::seconds(1));
  EXPECT_EQ(job.timeouts.grace, std::chrono::seconds(10));
  EXPECT_EQ(job.launcher, Launcher::srun);
  EXPECT_FALSE(job.train);
  EXPECT_EQ(job.origins.where("checkpoint.keep_last"), "default");
}

TEST(Job, lists_the_keys_with_different_values) {
  JobSandbox box;
  const Path file = box.write(std::string(kTrain) + "timeouts: {grace: 1m}\n");
  const Job before = load(file).value();
  EXPECT_THAT(differences(before, load(file).value()), ::testing::IsEmpty());
  const Job after =
      load(file,
           {.set = {"train.model=resnet18", "train.steps=7", "timeouts.grace=60s", "timeouts.stall=1h"}})
          .value();
  EXPECT_THAT(differences(before, after),
              ::testing::IsSupersetOf({Difference{"train.model", "cifar-resnet20", "resnet18"},
                                       Difference{"train.steps", "", "7"},
                                       Difference{"timeouts.stall", "10m", "1h"}}));
  EXPECT_THAT(differences(after, before), ::testing::Contains(Difference{"train.steps", "7", ""}));
  for (const Difference& difference : differences(before, after)) EXPECT_NE(difference.key, "timeouts.grace");
}

TEST(Job, defaults_of_a_training_follow_the_model) {
  JobSandbox box;
  const Job cifar = load(box.write(kTrain)).value();
  EXPECT_EQ(cifar.train->image.size, 32u);
  EXPECT_EQ(cifar.train->image.validation_resize, 32u);
  EXPECT_EQ(cifar.train->image.crop, Crop::pad);
  EXPECT_EQ(cifar.train->validation_data, "validation");
  EXPECT_EQ(cifar.train->validation_batch, 32u);
  const Job resnet = load(box.write(kTrain), {.set = {"train.model=resnet50", "train.batch=7"}}).value();
  EXPECT_EQ(resnet.train->image.size, 224u);
  EXPECT_EQ(resnet.train->image.validation_resize, 256u);
  EXPECT_EQ(resnet.train->image.crop, Crop::resize);
  EXPECT_EQ(resnet.train->image.mean, (std::vector<double>{0.485, 0.456, 0.406}));
  EXPECT_EQ(resnet.train->validation_batch, 7u);
  const Job alone = load(box.write(kTrain), {.set = {"data.validation=null"}}).value();
  EXPECT_FALSE(alone.train->validation_data);
}

TEST(Job, paths_in_the_file_are_relative_to_it_and_others_to_the_current_folder) {
  JobSandbox box;
  ASSERT_TRUE(make_directory(box / "jobs").ok());
  box.write(
      "run: x\ndata: {a: {source: ../data}, b: {source: /abs}, c: {source: d}}\nenvironment: {venv: env}\n",
      "jobs/job.yaml");
  const Result<Job> job = load("jobs/job.yaml", {.environment = {"STOKER_SET_CHECKPOINT_DIRECTORY=ckpt"},
                                                 .set = {"data.c.source=sub/../d"},
                                                 .current_directory = box.folder()});
  ASSERT_TRUE(job.ok()) << job.error().to_string();
  EXPECT_EQ(job->data.at("a").source, box / "data");
  EXPECT_EQ(job->data.at("b").source, Path("/abs"));
  EXPECT_EQ(job->data.at("c").source, box / "d");
  EXPECT_EQ(job->environment.venv, box / "jobs/env");
  EXPECT_EQ(job->checkpoint.directory, box / "ckpt");
  EXPECT_EQ(job->working_directory, box / "jobs");
  EXPECT_EQ(job->origins.where("data.c.source"), "--set data.c.source");
  EXPECT_EQ(job->origins.where("environment.venv"), "jobs/job.yaml:3:21");
}

TEST(Job, scratch_is_a_folder_next_to_the_file) {
  JobSandbox box;
  const Job job =
      load(box.write("run: x ${scratch}\ncheckpoint: {directory: \"${scratch}/ckpt\"}\n")).value();
  EXPECT_EQ(job.checkpoint.directory, box / "scratch/ckpt");
  EXPECT_EQ(job.command->arguments.at(1), (box / "scratch").string());
}

TEST(Job, an_environment_variable_keeps_its_case) {
  JobSandbox box;
  const Job job = load(box.write("run: x\nenvironment: {variables: {A: 1}}\n"),
                       {.environment = {"STOKER_SET_ENVIRONMENT_VARIABLES_FOO=x"}})
                      .value();
  EXPECT_EQ(job.environment.variables.at("FOO"), "x");
  EXPECT_EQ(job.environment.variables.size(), 2U);
}

TEST(Job, shell_commands_run_in_sh) {
  JobSandbox box;
  const Job job =
      load(box.write("run: {shell: 'python x.py | tee $HOME/${params.a}'}\nparams: {a: log}\n")).value();
  EXPECT_EQ(job.command->arguments,
            (std::vector<std::string>{"/bin/sh", "-c", "python x.py | tee $HOME/log"}));
  EXPECT_TRUE(job.command->is_shell);
  EXPECT_EQ(load(box.write(to_yaml(job))).value(), job);
}

TEST(Job, a_byte_order_mark_is_not_part_of_the_first_key) {
  JobSandbox box;
  EXPECT_TRUE(load(box.write("\xef\xbb\xbfrun: x\n")).ok());
}

TEST(Job, the_effective_file_shows_the_origin_of_each_value) {
  JobSandbox box;
  const Path file = box.write("name: a\nrun: x\n");
  const std::string text = to_yaml(load(file, {.set = {"checkpoint.keep_last=5"}}).value());
  EXPECT_NE(text.find("name: a                                     # " + file.string() + ":1:7\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  keep_last: 5                              # --set checkpoint.keep_last\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  every: 1 epoch                            # default\n"), std::string::npos) << text;
}

TEST(Job, every_setting_of_the_schema_is_read) {
  JobSandbox box;
  const Job train = load(box.write(kTrain)).value();
  const std::string all =
      to_yaml(train) + to_yaml(load(box.write("run: x\nenvironment: {venv: e}\nparams: {a: 1}\n")).value());
  for (const config::Setting& setting : schema().settings()) {
    const std::string last =
        setting.key.ends_with('*') ? "" : std::string(setting.key.substr(setting.key.rfind('.') + 1));
    // Settings without a default are shown only if they are set.
    if (setting.fallback.empty() || last.empty()) continue;
    EXPECT_NE(all.find(last + ": "), std::string::npos) << setting.key;
  }
}

}  // namespace
}  // namespace stoker::job
