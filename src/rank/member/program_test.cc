#include "rank/member/program.h"

#include <gmock/gmock.h>

namespace stoker::rank {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

RankConfig second_node() {
  RankConfig config;
  config.role = Role::node;
  config.ranks_world = "secret@10.0.0.1:7";
  config.place = {Rank(1), WorldSize(2), 0, 1, 1};
  config.ranks_of_node = "2,3";
  config.cpus = 4;
  return config;
}

TEST(Program, of_a_node_is_torchrun_with_the_script_s_interpreter) {
  const Program program = program_of(second_node(), {"/venv/bin/python3", "train.py", "--", "x"},
                                     {"10.0.0.1", 12345}, {{"TORCHELASTIC_RUN_ID", "outer"}}, "/opt/stoker");
  EXPECT_THAT(
      program.argv,
      ElementsAre("/venv/bin/python3", "-m", "torch.distributed.run", "--nnodes=2", "--node-rank=1",
                  "--nproc-per-node=3", "--master-addr=10.0.0.1", "--master-port=12345", "--max-restarts=0",
                  "--no-python", "/opt/stoker", "rank", "--", "/venv/bin/python3", "train.py", "--", "x"));
  EXPECT_EQ(variable(program.environment, "OMP_NUM_THREADS"), "4");
  EXPECT_EQ(variable(program.environment, kWorldVariable), "secret@10.0.0.1:7");
  EXPECT_EQ(variable(program.environment, kPlaceVariable), "torchrun");
  EXPECT_EQ(variable(program.environment, kRanksWorldVariable), "");
  EXPECT_EQ(variable(program.environment, "TORCHELASTIC_RUN_ID"), "");
}

TEST(Program, of_other_commands_takes_the_first_torchrun) {
  EXPECT_EQ(program_of(second_node(), {"/bin/sh", "-c", "x"}, {}, {}, "/opt/stoker").argv[0], "torchrun");
}

TEST(Program, keeps_torchrun_variables_except_rendezvous) {
  RankConfig config;
  config.role = Role::torchrun_rank;
  config.place = {Rank(3), WorldSize(5), 1, 3, 1};
  config.ranks_of_node = "2,3";
  const Program program = program_of(config, {"train"}, {"10.0.0.1", 12345},
                                     {{"RANK", "3"},
                                      {"MASTER_PORT", "999"},
                                      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                      {"OMP_NUM_THREADS", "4"},
                                      {"SLURM_JOB_ID", "7"},
                                      {"SLURM_PROCID", "1"},
                                      {std::string(kPlaceVariable), "torchrun"}},
                                     "/opt/stoker");
  EXPECT_THAT(program.argv, ElementsAre("train"));
  EXPECT_EQ(variable(program.environment, "RANK"), "3");
  EXPECT_EQ(variable(program.environment, "MASTER_ADDR"), "10.0.0.1");
  EXPECT_EQ(variable(program.environment, "MASTER_PORT"), "12345");
  EXPECT_EQ(variable(program.environment, "TORCHELASTIC_USE_AGENT_STORE"), "False");
  EXPECT_EQ(variable(program.environment, "SLURM_PROCID"), "3");
  EXPECT_EQ(variable(program.environment, "NODE_RANK"), "1");
  EXPECT_EQ(variable(program.environment, kPlaceVariable), "");
}

TEST(Program, leaves_the_last_collectives_of_torch_in_the_attempt) {
  RankConfig config;
  config.place = {Rank(3), WorldSize(4), 3, 4, 0};
  config.attempt = "/runs/1/attempts/2";
  const auto environment = [&](const Environment& base) {
    return program_of(config, {"train"}, {}, base, "").environment;
  };
  EXPECT_EQ(variable(environment({}), "TORCH_FR_DUMP_TEMP_FILE"), "/runs/1/attempts/2/torch-flight-");
  EXPECT_EQ(variable(environment({}), "TORCH_FR_BUFFER_SIZE"), "2000");
  EXPECT_EQ(variable(environment({}), "TORCH_NCCL_DUMP_ON_TIMEOUT"), "1");
  const Environment own = environment({{"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/tmp/a"},
                                       {"TORCH_NCCL_TRACE_BUFFER_SIZE", "7"},
                                       {"TORCH_NCCL_DUMP_ON_TIMEOUT", "0"}});
  EXPECT_EQ(variable(own, "TORCH_FR_DUMP_TEMP_FILE"), "");
  EXPECT_EQ(variable(own, "TORCH_FR_BUFFER_SIZE"), "");
  EXPECT_EQ(variable(own, "TORCH_NCCL_DUMP_ON_TIMEOUT"), "0");
  config.attempt.clear();
  EXPECT_EQ(variable(environment({}), "TORCH_FR_DUMP_TEMP_FILE"), "");
}

TEST(Program, of_a_rank_that_shares_a_gpu_sees_that_one) {
  RankConfig config;
  config.place = {Rank(3), WorldSize(4), 3, 4, 0};
  config.ranks_per_gpu = 2;
  const Environment base{{"CUDA_VISIBLE_DEVICES", "4,6"}};
  EXPECT_TRUE(check_program(config, base).ok());
  EXPECT_EQ(variable(program_of(config, {"train"}, {}, base, "").environment, "CUDA_VISIBLE_DEVICES"), "6");
  EXPECT_FALSE(check_program(config, {{"CUDA_VISIBLE_DEVICES", "4"}}).ok());
}

TEST(Program, of_a_rank_with_gpus_knows_how_many_are_its_own) {
  RankConfig config;
  config.place = {Rank(1), WorldSize(2), 1, 2, 0};
  const auto own = [&] {
    const Environment base{{"CUDA_VISIBLE_DEVICES", "0,1,2,3"}, {"STOKER_GPUS_PER_RANK", "7"}};
    return variable(program_of(config, {"train"}, {}, base, "").environment, "STOKER_GPUS_PER_RANK");
  };
  EXPECT_EQ(own(), "");
  config.gpus_per_rank = 2;
  EXPECT_EQ(own(), "2");
}

TEST(Program, of_a_rank_with_gpus_sees_the_gpus_of_its_node) {
  RankConfig config;
  config.place = {Rank(1), WorldSize(2), 1, 2, 0};
  config.gpus_per_rank = 2;
  const Environment base{{"CUDA_VISIBLE_DEVICES", "4,5,6,7,8"}};
  const auto gpus = [&](const Environment& environment) {
    return variable(program_of(config, {"train"}, {}, environment, "").environment, "CUDA_VISIBLE_DEVICES");
  };
  EXPECT_TRUE(check_program(config, base).ok());
  EXPECT_EQ(gpus(base), "4,5,6,7");
  EXPECT_EQ(gpus({}), "0,1,2,3");
  EXPECT_FALSE(check_program(config, {{"CUDA_VISIBLE_DEVICES", "4,5"}}).ok());
  config.is_in_step = true;
  EXPECT_TRUE(check_program(config, {{"CUDA_VISIBLE_DEVICES", "0,1"}}).ok()) << "bound by Slurm";
  EXPECT_EQ(gpus({{"CUDA_VISIBLE_DEVICES", "0,1"}}), "0,1");
  config.role = Role::torchrun_rank;
  EXPECT_EQ(gpus(base), "4,5,6,7,8") << "torchrun's ranks see what torchrun sees";
}

TEST(Program, missing_interface_is_reported_with_existing_ones) {
  RankConfig config;
  config.place = {Rank(0), WorldSize(1), 0, 1, 0};
  const Environment wrong{{"GLOO_SOCKET_IFNAME", "nosuch"}, {"NCCL_SOCKET_IFNAME", "neither"}};
  const Status status = check_program(config, wrong);
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_THAT(
      std::string(status.message()),
      MatchesRegex(
          "GLOO_SOCKET_IFNAME=nosuch does not name an interface that is up \\(there are .*lo.*; unset "
          "it to choose automatically\\)"));
  EXPECT_TRUE(check_program(config, {{"GLOO_SOCKET_IFNAME", "lo"}}).ok());
  // NCCL needs a GPU.
  EXPECT_TRUE(check_program(config, {{"NCCL_SOCKET_IFNAME", "nosuch"}}).ok());
  EXPECT_FALSE(check_program(config, {{"NCCL_SOCKET_IFNAME", "nosuch"}, {"CUDA_VISIBLE_DEVICES", "0"}}).ok());
  EXPECT_TRUE(check_program(config, {{"NCCL_SOCKET_IFNAME", "^nosuch"}, {"CUDA_VISIBLE_DEVICES", "0"}}).ok());
}

TEST(Program, uses_the_staged_folder_of_its_node) {
  const Environment base = {{std::string(kStageVariable), "/tmp/stoker-r\n/tmp/stoker-r.2"}};
  RankConfig config;
  config.place = {Rank(3), WorldSize(4), 1, 2, 1};
  for (const Role role : {Role::rank, Role::torchrun_rank}) {
    config.role = role;
    const Program program = program_of(config, {"train"}, {"10.0.0.1", 12345}, base, "/opt/stoker");
    EXPECT_EQ(variable(program.environment, "STOKER_STAGE_DIR"), "/tmp/stoker-r.2");
    EXPECT_EQ(variable(program.environment, kStageVariable), "");
  }
  // torchrun passes the list to its ranks.
  const Program above = program_of(second_node(), {"train"}, {}, base, "/opt/stoker");
  EXPECT_EQ(variable(above.environment, kStageVariable), base[0].second);
}

}  // namespace
}  // namespace stoker::rank
