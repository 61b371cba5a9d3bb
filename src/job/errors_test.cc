// Error messages for invalid job files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "job/job.h"
#include "job/test_job.h"

namespace stoker::job {
namespace {

struct Case {
  const char* name;
  std::string text;
  std::string expected;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class JobError : public testing::TestWithParam<Case> {};

TEST_P(JobError, is_reported_with_position_and_line) {
  EXPECT_EQ(errors_of(GetParam().text), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, JobError,
    testing::Values(
        Case{"empty", "", "/box/job.yaml:1:1: the file is empty"},
        Case{"nothing_to_run", "name: a\n",
             "/box/job.yaml:1:1: neither 'run' nor 'train' is set\n"
             "    1 | name: a\n"
             "      | ^"},
        Case{"run_beside_train", "run: x\ntrain: {model: resnet18}\n",
             "/box/job.yaml:2:1: 'train' and 'run' (/box/job.yaml:1:6) cannot both be set\n"
             "    2 | train: {model: resnet18}\n"
             "      | ^"},
        Case{"training_epochs_beside_run", "run: x\ntrain: {epochs: 3}\n",
             "/box/job.yaml:2:1: 'train' and 'run' (/box/job.yaml:1:6) cannot both be set\n"
             "    2 | train: {epochs: 3}\n"
             "      | ^"},
        Case{"unknown_key", "run: x\nresorces: {nodes: 2}\n",
             "/box/job.yaml:2:1: unknown key 'resorces'; did you mean 'resources'?\n"
             "    2 | resorces: {nodes: 2}\n"
             "      | ^"},
        Case{"key_of_a_different_map", "run: x\nnodes: 2\n",
             "/box/job.yaml:2:1: unknown key 'nodes'; did you mean 'resources.nodes'?\n"
             "    2 | nodes: 2\n"
             "      | ^"},
        Case{"key_not_built", "run: x\nsweep: {until: done}\n",
             "/box/job.yaml:2:1: unknown key 'sweep'\n"
             "    2 | sweep: {until: done}\n"
             "      | ^"},
        Case{"option_with_a_separate_key", "run: x\nslurm: {extra: [--exclusive, --time=1:00]}\n",
             "/box/job.yaml:2:16: slurm.extra: '--time=1:00': use resources.time instead of --time\n"
             "    2 | slurm: {extra: [--exclusive, --time=1:00]}\n"
             "      |                ^"},
        Case{"no_name_of_a_partition", "run: x\nslurm: {partition: \"gpu cpu\"}\n",
             "/box/job.yaml:2:20: slurm.partition: 'gpu cpu' is not a valid name\n"
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
        Case{
            "no_model", "train: {epochs: 3}\ndata: {train: {source: x}}\n",
            "/box/job.yaml:1:1: train.model is missing: Built-in model to train, or torchscript for your own "
            "model in `file`.\n"
            "    1 | train: {epochs: 3}\n"
            "      | ^"},
        Case{"no_source", "run: x\ndata: {train: {split: a}}\n",
             "/box/job.yaml:2:8: data.train.source is missing: Folder of a packed dataset; the ranks find it "
             "in STOKER_DATA_<NAME>.\n"
             "    2 | data: {train: {split: a}}\n"
             "      |        ^"},
        Case{"bad_name", "run: x\nname: a/b\n",
             "/box/job.yaml:2:7: name: 'a/b' is not a valid name: letters, digits, '.', '_' and '-', at most "
             "64, "
             "no leading '.'\n"
             "    2 | name: a/b\n"
             "      |       ^"},
        Case{"data_name_upper_case", "run: x\ndata: {Train: {source: x}}\n",
             "/box/job.yaml:2:8: data.Train: lower-case letters, digits and '_' only, for STOKER_DATA_TRAIN\n"
             "    2 | data: {Train: {source: x}}\n"
             "      |        ^"},
        Case{"split_is_no_name", "run: x\ndata: {a: {source: x, split: ../b}}\n",
             "/box/job.yaml:2:30: data.a.split: '../b' is not a valid split name\n"
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
             "/box/job.yaml:2:32: environment.variables.A-B: a variable name must not contain '-'\n"
             "    2 | environment: {variables: {A-B: 1}}\n"
             "      |                                ^"},
        Case{"assignment_before_the_program", "run: OMP_NUM_THREADS=2 python x.py\n",
             "/box/job.yaml:1:6: run: 'OMP_NUM_THREADS=2' is not a program; write environment: {variables: "
             "{OMP_NUM_THREADS: \"2\"}}\n"
             "    1 | run: OMP_NUM_THREADS=2 python x.py\n"
             "      |      ^"},
        Case{"empty_shell", "run: {shell: ' '}\n",
             "/box/job.yaml:1:14: run.shell: is empty\n"
             "    1 | run: {shell: ' '}\n"
             "      |              ^"},
        Case{"empty_run", "run: ''\n",
             "/box/job.yaml:1:6: run: does not name a program\n"
             "    1 | run: ''\n"
             "      |      ^"},
        Case{"second_line_of_a_command", "run: |\n  echo one\n  echo two\n",
             "/box/job.yaml:1:6: run: the line 'echo two' needs a shell: write {shell: \"...\"}, or end the "
             "one before with '\\'\n"
             "    1 | run: |\n"
             "      |      ^"},
        Case{"names_for_a_shell", "run: ls *.py\n",
             "/box/job.yaml:1:6: run: '*.py' needs a shell: write {shell: \"...\"}, or quote it\n"
             "    1 | run: ls *.py\n"
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
             "/box/job.yaml:6:11: train.image.mean: expected 3 numbers (red, green, blue), got 1\n"
             "    6 |     mean: [0.5]\n"
             "      |           ^\n"
             "/box/job.yaml:7:25: train.image.standard_deviation: expected 3 numbers (red, green, blue), got "
             "4\n"
             "    7 |     standard_deviation: [1, 1, 1, 1]\n"
             "      |                         ^"}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(JobErrors, ranks_that_do_not_fit_on_the_nodes_are_errors) {
  EXPECT_THAT(
      errors_of("run: x\nresources: {nodes: 3, ranks: 2}\n"),
      ::testing::HasSubstr("job.yaml:2:30: resources.ranks: 2 leave one of 3 nodes without a rank\n"));
  EXPECT_THAT(errors_of("run: x\nresources: {nodes: 2, ranks_per_node: 2, ranks: 5}\n"),
              ::testing::HasSubstr("resources.ranks: 5 are more than 2 nodes x 2 ranks_per_node\n"));
  EXPECT_THAT(errors_of("run: x\nresources: {ranks_per_gpu: 2, gpus_per_rank: 4}\n"),
              ::testing::HasSubstr(
                  "resources.ranks_per_gpu: 2 ranks share a GPU, but resources.gpus_per_rank is 4\n"));
}

TEST(JobErrors, reports_a_train_flag_together_with_run) {
  JobSandbox box;
  EXPECT_EQ(errors_of(box, box.write("run: x\n"), {.set = {"train.epochs=3"}}),
            "--set train.epochs: 'train' and 'run' (/box/job.yaml:1:6) cannot both be set");
}

TEST(JobErrors, a_missing_file_is_reported_with_stoker_init) {
  JobSandbox box;
  EXPECT_EQ(errors_of(box, box / "none.yaml"),
            "/box/none.yaml: no such file or directory\n  try: stoker init");
  EXPECT_EQ(errors_of(box, box.folder()), "/box: expected a file, got a folder");
}

TEST(JobErrors, refuses_a_path_that_is_not_utf8) {
  JobSandbox box;
  EXPECT_EQ(errors_of(box, box.write("run: x\n"), {.current_directory = "/caf\xe9"}),
            "record.directory: the path '/caf\\xe9/runs' is not valid UTF-8");
  ASSERT_TRUE(make_directory(box / "caf\xe9").ok());
  box.write("run: x\n", "caf\xe9/job.yaml");
  EXPECT_EQ(errors_of(box, box / "caf\xe9/job.yaml"), "/box/caf\\xe9: the folder's name is not valid UTF-8");
}

}  // namespace
}  // namespace stoker::job
