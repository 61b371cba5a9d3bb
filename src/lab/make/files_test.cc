#include "lab/make/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::lab {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

HostInfo host_info() {
  return {.user = "ada", .host = "box", .cores = 4, .lmod = "", .stoker_bin = "/opt/stoker/bin"};
}

Lab lab_of(LabMode mode) {
  Lab lab;
  lab.name = "lab7";
  lab.folder = "/tmp/labs/lab7";
  lab.mode = mode;
  lab.cpus = 2;
  lab.gpus = 2;
  lab.memory_mb = 4000;
  lab.max_array_size = 1001;
  lab.host_address = mode == LabMode::namespaces ? "10.77.3.254" : "127.0.0.1";
  lab.controller_port = 20001;
  for (int i = 1; i <= 2; ++i) {
    LabNode node;
    node.name = format("n{}", i);
    node.address = mode == LabMode::namespaces ? format("10.77.3.{}", i) : "127.0.0.1";
    node.port = static_cast<std::uint16_t>(mode == LabMode::namespaces ? 6818 : 20001 + i);
    lab.nodes.push_back(node);
  }
  return lab;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(trim(text), '\n')) lines.emplace_back(line);
  return lines;
}

std::vector<std::string> lines_that_begin(const std::string& text, std::string_view begin) {
  std::vector<std::string> lines;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with(begin)) lines.push_back(line);
  }
  return lines;
}

TEST(SlurmConf, gives_each_node_its_own_address_or_its_own_port) {
  EXPECT_THAT(lines_that_begin(slurm_conf(lab_of(LabMode::namespaces), host_info()), "NodeName="),
              ElementsAre("NodeName=n1 NodeHostname=n1 NodeAddr=10.77.3.1 Port=6818 CPUs=2 RealMemory=4000 "
                          "Gres=gpu:2 State=UNKNOWN",
                          "NodeName=n2 NodeHostname=n2 NodeAddr=10.77.3.2 Port=6818 CPUs=2 RealMemory=4000 "
                          "Gres=gpu:2 State=UNKNOWN"));
  EXPECT_THAT(lines_that_begin(slurm_conf(lab_of(LabMode::processes), host_info()), "NodeName="),
              ElementsAre(HasSubstr("NodeHostname=box NodeAddr=127.0.0.1 Port=20002 "),
                          HasSubstr("NodeHostname=box NodeAddr=127.0.0.1 Port=20003 ")));
}

TEST(SlurmConf, has_a_partition_for_gpus_only_where_there_are_some) {
  Lab lab = lab_of(LabMode::namespaces);
  EXPECT_THAT(lines_that_begin(slurm_conf(lab, host_info()), "PartitionName="),
              ElementsAre(StartsWith("PartitionName=cpu "), StartsWith("PartitionName=gpu "),
                          StartsWith("PartitionName=debug "), StartsWith("PartitionName=low ")));
  EXPECT_EQ(gres_conf(lab), "AutoDetect=off\nName=gpu File=/tmp/labs/lab7/etc/gpu[0-1]\n");
  lab.gpus = 0;
  EXPECT_THAT(slurm_conf(lab, host_info()), Not(HasSubstr("gpu")));
  EXPECT_EQ(gres_conf(lab), "");
}

TEST(SlurmConf, binds_tasks_only_to_cores_that_a_node_can_have) {
  Lab lab = lab_of(LabMode::namespaces);
  EXPECT_THAT(lines_of(slurm_conf(lab, host_info())), Contains("TaskPlugin=task/affinity"));
  lab.cpus = 8;
  EXPECT_THAT(lines_of(slurm_conf(lab, host_info())), Contains("TaskPlugin=task/none"))
      << "the machine has 4";
  lab.cpus = 2;
  lab.nodes[0].core = 0;
  EXPECT_THAT(lines_of(slurm_conf(lab, host_info())), Contains("TaskPlugin=task/none"))
      << "pinned to one core";
}

TEST(SlurmConf, names_the_accounting_only_where_there_is_one) {
  Lab lab = lab_of(LabMode::namespaces);
  EXPECT_THAT(slurm_conf(lab, host_info()), Not(HasSubstr("AccountingStorage")));
  lab.has_accounting = true;
  lab.database_port = 20009;
  EXPECT_THAT(lines_of(slurm_conf(lab, host_info())), Contains("AccountingStoragePort=20009"));
  EXPECT_THAT(slurmdbd_conf(lab, host_info()),
              HasSubstr("\nDbdAddr=10.77.3.254\nDbdPort=20009\nSlurmUser=ada\n"));
}

TEST(SlurmConf, has_no_parameter_without_a_value) {  // Slurm refuses such a line
  for (const LabMode mode : {LabMode::processes, LabMode::namespaces}) {
    Lab lab = lab_of(mode);
    lab.has_accounting = true;
    for (const std::string& line : lines_of(slurm_conf(lab, host_info()))) {
      EXPECT_THAT(line, Not(EndsWith("="))) << line;
      EXPECT_THAT(line, HasSubstr("="));
      EXPECT_THAT(line, Not(HasSubstr("= "))) << line;
    }
  }
}

TEST(Hosts, names_nodes_and_host) {
  EXPECT_EQ(hosts_file(lab_of(LabMode::namespaces), host_info()),
            "127.0.0.1 localhost\n10.77.3.254 box\n10.77.3.1 n1\n10.77.3.2 n2\n");
}

TEST(Nsswitch, looks_hosts_up_in_files_alone_and_keeps_the_rest) {
  EXPECT_EQ(
      nsswitch_conf("passwd: files systemd\nhosts: files dns mymachines\n  hosts: dns\n\ngroup: files\n"),
      "passwd: files systemd\ngroup: files\nhosts: files\n");
  EXPECT_EQ(nsswitch_conf(""), "hosts: files\n");
}

}  // namespace
}  // namespace stoker::lab
