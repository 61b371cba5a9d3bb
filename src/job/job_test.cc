#include "job/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "job/settings.h"

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
resources:
  {nodes: 2, ranks: 7, cpus_per_rank: 8, gpus_per_rank: 1, ranks_per_gpu: 2, memory_per_node: 128GB, time: 2-12:00:00}
slurm: {account: def-lab, partition: "gpu,cpu", qos: high, reservation: r, extra: ["-C v100", --exclusive, "--x=a'b"]}
environment: {venv: .venv, variables: {A: "", B: "a #b", NO: "null"}}
data: {train: {source: x y/z}}
checkpoint: {directory: ckpt, every: 90s, keep: 2, keep_every: 6h, keep_best: 1, metric: val_loss, before_end: 5m}
launcher: torchrun
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

TEST(Job, ranks_of_all_nodes_decide_the_most_of_one) {
  Sandbox box;
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
  Sandbox box;
  const Job job = load(box.write("run: x\ncheckpoint: {every: auto, mtbf: 12h}\n")).value();
  EXPECT_TRUE(job.checkpoint.every.is_automatic);
  EXPECT_FALSE(job.checkpoint.every.is_never());
  EXPECT_EQ(job.checkpoint.mtbf, std::chrono::hours(12));
  Sandbox other;
  EXPECT_EQ(load(other.write(to_yaml(job))).value(), job) << to_yaml(job);
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

// What load says, with the sandbox's folder shown as /box.
std::string mistakes_of(const Sandbox& box, const Path& file, const LoadOptions& options = {}) {
  std::string text = load(file, options).status().to_string();
  const std::string folder = box.folder().string();
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder)) {
    text.replace(at, folder.size(), "/box");
  }
  return text;
}

std::string mistakes_of(std::string_view text, const LoadOptions& options = {}) {
  Sandbox box;
  return mistakes_of(box, box.write(text), options);
}

TEST(Job, ranks_that_fit_on_no_nodes_are_mistakes) {
  EXPECT_THAT(
      mistakes_of("run: x\nresources: {nodes: 3, ranks: 2}\n"),
      ::testing::HasSubstr("job.yaml:2:30: resources.ranks: 2 leave one of 3 nodes without a rank\n"));
  EXPECT_THAT(mistakes_of("run: x\nresources: {nodes: 2, ranks_per_node: 2, ranks: 5}\n"),
              ::testing::HasSubstr("resources.ranks: 5 are more than 2 nodes x 2 ranks_per_node\n"));
  EXPECT_THAT(
      mistakes_of("run: x\nresources: {ranks_per_gpu: 2, gpus_per_rank: 4}\n"),
      ::testing::HasSubstr(
          "resources.ranks_per_gpu: 2 ranks share a GPU, and resources.gpus_per_rank gives each 4\n"));
}

TEST(Job, defaults_are_those_declared) {
  Sandbox box;
  const Job job = load(box.write("run: python train.py\n"), {.current_directory = "/here"}).value();
  EXPECT_EQ(job.name, box.folder().filename().string());
  EXPECT_EQ(job.working_directory, box.folder());
  EXPECT_EQ(job.resources.world_size(), 1u);
  EXPECT_FALSE(job.resources.time);
  EXPECT_EQ(job.checkpoint.every.epochs, 1u);
  EXPECT_EQ(job.checkpoint.keep, 3u);
  EXPECT_EQ(job.checkpoint.keep_best, 0u);
  EXPECT_EQ(job.checkpoint.keep_every, Duration::zero());
  EXPECT_EQ(job.checkpoint.mtbf, std::chrono::hours(24));
  EXPECT_EQ(job.record.directory, Path("/here/runs"));
  EXPECT_EQ(job.record.sample_every, std::chrono::seconds(1));
  EXPECT_EQ(job.timeouts.grace, std::chrono::seconds(10));
  EXPECT_EQ(job.launcher, Launcher::srun);
  EXPECT_FALSE(job.train);
  EXPECT_EQ(job.origins.where("checkpoint.keep"), "default");
}

TEST(Job, two_jobs_differ_in_the_keys_whose_values_do) {
  Sandbox box;
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
  Sandbox box;
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

TEST(Job, paths_start_at_the_file_and_those_outside_it_at_the_current_folder) {
  Sandbox box;
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

TEST(Job, scratch_is_a_folder_beside_the_file) {
  Sandbox box;
  const Job job =
      load(box.write("run: x ${scratch}\ncheckpoint: {directory: \"${scratch}/ckpt\"}\n")).value();
  EXPECT_EQ(job.checkpoint.directory, box / "scratch/ckpt");
  EXPECT_EQ(job.command->arguments.at(1), (box / "scratch").string());
}

TEST(Job, shell_commands_are_given_to_sh) {
  Sandbox box;
  const Job job =
      load(box.write("run: {shell: 'python x.py | tee $HOME/${params.a}'}\nparams: {a: log}\n")).value();
  EXPECT_EQ(job.command->arguments,
            (std::vector<std::string>{"/bin/sh", "-c", "python x.py | tee $HOME/log"}));
  EXPECT_TRUE(job.command->is_shell);
  EXPECT_EQ(load(box.write(to_yaml(job))).value(), job);
}

TEST(Job, a_byte_order_mark_is_no_part_of_the_first_key) {
  Sandbox box;
  EXPECT_TRUE(load(box.write("\xef\xbb\xbfrun: x\n")).ok());
}

TEST(Job, the_effective_file_tells_where_each_value_came_from) {
  Sandbox box;
  const Path file = box.write("name: a\nrun: x\n");
  const std::string text = to_yaml(load(file, {.set = {"checkpoint.keep=5"}}).value());
  EXPECT_NE(text.find("name: a                                     # " + file.string() + ":1:7\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  keep: 5                                   # --set checkpoint.keep\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  every: 1 epoch                            # default\n"), std::string::npos) << text;
}

struct Case {
  const char* name;
  std::string text;
  std::string expected;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class JobMistake : public testing::TestWithParam<Case> {};

TEST_P(JobMistake, is_told_with_place_and_line) {
  EXPECT_EQ(mistakes_of(GetParam().text), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, JobMistake,
    testing::Values(
        Case{"empty", "", "/box/job.yaml:1:1: the file is empty"},
        Case{"nothing_to_run", "name: a\n",
             "/box/job.yaml:1:1: neither 'run' nor 'train' says what to run\n"
             "    1 | name: a\n"
             "      | ^"},
        Case{"run_beside_train", "run: x\ntrain: {model: resnet18}\n",
             "/box/job.yaml:2:1: 'train' beside 'run' (/box/job.yaml:1:6): a job has one of them\n"
             "    2 | train: {model: resnet18}\n"
             "      | ^"},
        Case{"unknown_key", "run: x\nresorces: {nodes: 2}\n",
             "/box/job.yaml:2:1: unknown key 'resorces'; did you mean 'resources'?\n"
             "    2 | resorces: {nodes: 2}\n"
             "      | ^"},
        Case{"key_of_another_map", "run: x\nnodes: 2\n",
             "/box/job.yaml:2:1: unknown key 'nodes'; did you mean 'resources.nodes'?\n"
             "    2 | nodes: 2\n"
             "      | ^"},
        Case{"key_not_built", "run: x\nsweep: {until: done}\n",
             "/box/job.yaml:2:1: unknown key 'sweep'\n"
             "    2 | sweep: {until: done}\n"
             "      | ^"},
        Case{"option_with_a_key_of_its_own", "run: x\nslurm: {extra: [--exclusive, --time=1:00]}\n",
             "/box/job.yaml:2:16: slurm.extra: '--time=1:00': use resources.time in place of --time\n"
             "    2 | slurm: {extra: [--exclusive, --time=1:00]}\n"
             "      |                ^"},
        Case{"no_name_of_a_partition", "run: x\nslurm: {partition: \"gpu cpu\"}\n",
             "/box/job.yaml:2:20: slurm.partition: 'gpu cpu' is no name\n"
             "    2 | slurm: {partition: \"gpu cpu\"}\n"
             "      |                    ^"},
        Case{"duplicate_key", "run: x\nname: a\nname: b\n",
             "/box/job.yaml:3:1: duplicate key 'name' (first at 2:1)\n"
             "    3 | name: b\n"
             "      | ^"},
        Case{"no_ranks", "run: x\nresources: {ranks_per_node: 0}\n",
             "/box/job.yaml:2:29: resources.ranks_per_node: 0 is too small (at least 1)\n"
             "    2 | resources: {ranks_per_node: 0}\n"
             "      |                             ^"},
        Case{"too_many_ranks", "run: x\nresources: {ranks_per_node: 5000}\n",
             "/box/job.yaml:2:29: resources.ranks_per_node: 5000 is too large (at most 1024)\n"
             "    2 | resources: {ranks_per_node: 5000}\n"
             "      |                             ^"},
        Case{"no_nodes", "run: x\nresources: {nodes: -1}\n",
             "/box/job.yaml:2:20: resources.nodes: -1 is too small (at least 1)\n"
             "    2 | resources: {nodes: -1}\n"
             "      |                    ^"},
        Case{"no_unit", "run: x\ntimeouts: {grace: 30}\n",
             "/box/job.yaml:2:19: timeouts.grace: '30' has no unit (write 30s, 30m or 30h)\n"
             "    2 | timeouts: {grace: 30}\n"
             "      |                   ^"},
        Case{"unknown_model", "train: {model: resnet19}\ndata: {train: {source: x}}\n",
             "/box/job.yaml:1:16: train.model: unknown value 'resnet19'; did you mean 'resnet18'?\n"
             "    1 | train: {model: resnet19}\n"
             "      |                ^"},
        Case{"no_model", "train: {epochs: 3}\ndata: {train: {source: x}}\n",
             "/box/job.yaml:1:1: train.model is missing: The built-in model to train, or torchscript for one "
             "of your own in `file`.\n"
             "    1 | train: {epochs: 3}\n"
             "      | ^"},
        Case{"no_source", "run: x\ndata: {train: {split: a}}\n",
             "/box/job.yaml:2:8: data.train.source is missing: Folder of a packed dataset; the ranks find it "
             "as "
             "STOKER_DATA_<NAME>.\n"
             "    2 | data: {train: {split: a}}\n"
             "      |        ^"},
        Case{"bad_name", "run: x\nname: a/b\n",
             "/box/job.yaml:2:7: name: 'a/b' does not fit: letters, digits, '.', '_' and '-', at most 64, no "
             "'.' first\n"
             "    2 | name: a/b\n"
             "      |       ^"},
        Case{"data_name_upper_case", "run: x\ndata: {Train: {source: x}}\n",
             "/box/job.yaml:2:8: data.Train: lower-case letters, digits and '_' only, for STOKER_DATA_TRAIN\n"
             "    2 | data: {Train: {source: x}}\n"
             "      |        ^"},
        Case{"split_is_no_name", "run: x\ndata: {a: {source: x, split: ../b}}\n",
             "/box/job.yaml:2:30: data.a.split: '../b' is no split's name\n"
             "    2 | data: {a: {source: x, split: ../b}}\n"
             "      |                              ^"},
        Case{"variable_of_the_contract", "run: x\nenvironment: {variables: {RANK: 1, STOKER_RUN_ID: 2}}\n",
             "/box/job.yaml:2:33: environment.variables.RANK: is set by Stoker for every rank\n"
             "    2 | environment: {variables: {RANK: 1, STOKER_RUN_ID: 2}}\n"
             "      |                                 ^\n"
             "/box/job.yaml:2:51: environment.variables.STOKER_RUN_ID: is set by Stoker for every rank\n"
             "    2 | environment: {variables: {RANK: 1, STOKER_RUN_ID: 2}}\n"
             "      |                                                   ^"},
        Case{"port_that_is_none", "run: x\nenvironment: {variables: {MASTER_PORT: 99999}}\n",
             "/box/job.yaml:2:40: environment.variables.MASTER_PORT: '99999' is not a port\n"
             "    2 | environment: {variables: {MASTER_PORT: 99999}}\n"
             "      |                                        ^"},
        Case{"variable_with_a_dash", "run: x\nenvironment: {variables: {A-B: 1}}\n",
             "/box/job.yaml:2:32: environment.variables.A-B: a variable's name has no '-'\n"
             "    2 | environment: {variables: {A-B: 1}}\n"
             "      |                                ^"},
        Case{"assignment_before_the_program", "run: OMP_NUM_THREADS=2 python x.py\n",
             "/box/job.yaml:1:6: run: 'OMP_NUM_THREADS=2' is no program; write environment: {variables: "
             "{OMP_NUM_THREADS: \"2\"}}\n"
             "    1 | run: OMP_NUM_THREADS=2 python x.py\n"
             "      |      ^"},
        Case{"empty_shell", "run: {shell: ' '}\n",
             "/box/job.yaml:1:14: run.shell: is empty\n"
             "    1 | run: {shell: ' '}\n"
             "      |              ^"},
        Case{"empty_run", "run: ''\n",
             "/box/job.yaml:1:6: run: names no program\n"
             "    1 | run: ''\n"
             "      |      ^"},
        Case{"home_in_a_path", "run: x\nrecord: {directory: ~/runs}\n",
             "/box/job.yaml:2:21: record.directory: '~' is not expanded here; write the path in full\n"
             "    2 | record: {directory: ~/runs}\n"
             "      |                     ^"},
        Case{"unknown_training_data",
             "train: {model: resnet18, training_data: trian}\ndata: {train: {source: x}}\n",
             "/box/job.yaml:1:41: train.training_data: no 'trian' in data; did you mean 'train'?\n"
             "    1 | train: {model: resnet18, training_data: trian}\n"
             "      |                                         ^"},
        Case{"nesterov_without_momentum",
             "train: {model: resnet18, optimizer: {momentum: 0, nesterov: true}}\ndata: {train: {source: "
             "x}}\n",
             "/box/job.yaml:1:61: train.optimizer.nesterov: needs momentum, and train.optimizer.momentum is "
             "0\n"
             "    1 | train: {model: resnet18, optimizer: {momentum: 0, nesterov: true}}\n"
             "      |                                                             ^"},
        Case{"momentum_upside_down",
             "train: {model: resnet18, schedule: {cycle_momentum: true, momentum_low: 0.99}}\n"
             "data: {train: {source: x}}\n",
             "/box/job.yaml:1:73: train.schedule.momentum_low: 0.99 is above momentum_high (0.95)\n"
             "    1 | train: {model: resnet18, schedule: {cycle_momentum: true, momentum_low: 0.99}}\n"
             "      |                                                                         ^"},
        Case{"image_facts",
             "train:\n  model: resnet18\n  image:\n    size: 300\n    validation_resize: 299\n    mean: "
             "[0.5]\n"
             "    standard_deviation: [1, 1, 1, 1]\ndata: {train: {source: x}}\n",
             "/box/job.yaml:5:24: train.image.validation_resize: 299 is smaller than train.image.size (300)\n"
             "    5 |     validation_resize: 299\n"
             "      |                        ^\n"
             "/box/job.yaml:6:11: train.image.mean: wants 3 numbers (red, green, blue), got 1\n"
             "    6 |     mean: [0.5]\n"
             "      |           ^\n"
             "/box/job.yaml:7:25: train.image.standard_deviation: wants 3 numbers (red, green, blue), got 4\n"
             "    7 |     standard_deviation: [1, 1, 1, 1]\n"
             "      |                         ^"}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(Job, a_missing_file_comes_with_the_command_that_writes_one) {
  Sandbox box;
  EXPECT_EQ(mistakes_of(box, box / "none.yaml"),
            "/box/none.yaml: no such file or directory\n  try: stoker init");
  EXPECT_EQ(mistakes_of(box, box.folder()), "/box: is a folder, a file was expected");
}

TEST(Job, a_path_that_is_no_text_is_refused) {
  Sandbox box;
  EXPECT_EQ(mistakes_of(box, box.write("run: x\n"), {.current_directory = "/caf\xe9"}),
            "record.directory: the path '/caf\\xe9/runs' is not plain UTF-8 text");
  ASSERT_TRUE(make_directory(box / "caf\xe9").ok());
  box.write("run: x\n", "caf\xe9/job.yaml");
  EXPECT_EQ(mistakes_of(box, box / "caf\xe9/job.yaml"),
            "/box/caf\\xe9: the folder's name is not plain UTF-8 text");
}

TEST(Job, every_setting_of_the_schema_is_read) {
  Sandbox box;
  const Job train = load(box.write(kTrain)).value();
  const std::string all =
      to_yaml(train) + to_yaml(load(box.write("run: x\nenvironment: {venv: e}\nparams: {a: 1}\n")).value());
  for (const config::Setting& setting : schema().settings()) {
    const std::string last =
        setting.key.ends_with('*') ? "" : std::string(setting.key.substr(setting.key.rfind('.') + 1));
    // Settings without a default show only when they are set.
    if (setting.fallback.empty() || last.empty()) continue;
    EXPECT_NE(all.find(last + ": "), std::string::npos) << setting.key;
  }
}

}  // namespace
}  // namespace stoker::job
