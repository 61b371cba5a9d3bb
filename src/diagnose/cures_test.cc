#include "diagnose/cures.h"

#include <set>

#include <gmock/gmock.h>
#include <re2/re2.h>

#include "diagnose/rule.h"
#include "diagnose/test_logs.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

using ::testing::HasSubstr;

Diagnosis explain_line(const std::string& line, StartKind start) {
  TestLogs logs;
  logs.facts.started_as = start;
  logs.facts.started_from = "job file.yaml";
  if (start == StartKind::local || start == StartKind::job_file) logs.facts.run = "r1";
  if (start == StartKind::local) logs.facts.job = "";
  return logs.add("log", line + "\n").explain();
}

TEST(Cures, each_is_about_the_cure_of_a_rule) {
  std::set<std::string_view> cures;
  for (const FailureRule* rule : failure_rules()) cures.insert(rule->cure);
  std::set<std::string_view> seen;
  for (const CureVariants& variants : cure_table()) {
    EXPECT_TRUE(cures.contains(variants.cure)) << variants.cure;
    EXPECT_TRUE(seen.insert(variants.cure).second) << variants.cure;
  }
}

TEST(Cures, causes_read_as_sentences) {
  static const RE2 kGarbled(
      R"(\[Errno|\{\d|: [,:;]|: and|\( | \(\)|(?:^| )(?:and|or|to|of|on|than|for|with|by)$|^[:;,]|[:;,]$)");
  for (const FailureRule* rule : failure_rules()) {
    for (const std::string_view line : split(rule->example, '\n')) {
      if (line.empty() || rule->failure_class == FailureClass::noise) continue;
      const Diagnosis diagnosis = explain_line(std::string(line), StartKind::log);
      const std::string cause =
          (rule->failure_class == FailureClass::slow ? diagnosis.also.at(0).what : diagnosis.cause).english();
      EXPECT_FALSE(cause.empty()) << rule->name << ": " << line;
      EXPECT_FALSE(RE2::PartialMatch(cause, kGarbled)) << rule->name << ": " << cause;
    }
  }
}

TEST(Cures, missing_files_are_named) {
  const auto cause = [](const std::string& line) {
    return explain_line(line, StartKind::log).cause.english();
  };
  EXPECT_EQ(cause("FileNotFoundError: [Errno 2] No such file or directory: '/x'"),
            "/x does not exist on that node");
  EXPECT_EQ(cause("FileNotFoundError: [Errno 2] No such file or directory: b'/x'"),
            "/x does not exist on that node");
  EXPECT_EQ(cause("FileNotFoundError: [Errno 2] No such file or directory: '/x' -> '/y'"),
            "/x does not exist on that node");
  EXPECT_EQ(cause("FileNotFoundError: Couldn't find any class folder in /data."),
            "a file was not found: Couldn't find any class folder in /data.");
  EXPECT_EQ(cause("PermissionError: [Errno 13] Permission denied: '/x'"), "no permission to open /x");
  EXPECT_EQ(cause("PermissionError: [Errno 1] Operation not permitted: '/x'"),
            "access was refused: Operation not permitted: '/x'");
}

TEST(Cures, gpu_memory_is_described_as_far_as_known) {
  const auto cause = [](const std::string& line) {
    return explain_line(line, StartKind::log).cause.english();
  };
  const std::string request = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB";
  EXPECT_EQ(cause(request + ". GPU 0 has a total capacity of 79.15 GiB of "
                            "which 1.20 GiB is free."),
            "GPU 0 is out of memory: 2.00 GiB more requested, 1.20 GiB of 79.15 GiB free");
  EXPECT_EQ(cause(request), "GPU is out of memory: 2.00 GiB more requested");
  EXPECT_EQ(cause("RuntimeError: CUDA error: out of memory"), "GPU is out of memory");
  EXPECT_EQ(
      cause("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 15.78 GiB total capacity; "
            "14.20 GiB already allocated; 12.19 MiB free; 14.50 GiB reserved in total by PyTorch)"),
      "GPU 1 is out of memory: 20.00 MiB more requested, 12.19 MiB of 15.78 GiB free");
  const std::string reserved =
      " is allocated by PyTorch, and 18.03 GiB is reserved by PyTorch but unallocated.";
  const std::string memory =
      ". GPU 0 has a total capacity of 79.15 GiB of "
      "which 300.00 MiB is free. Of the "
      "allocated memory 60.11 GiB";
  EXPECT_EQ(
      cause("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB" + memory + reserved),
      "GPU 0 is out of memory: its free memory is fragmented: 512.00 MiB more requested, 18.03 GiB reserved "
      "but unallocated");
  // It would not fit into what is reserved.
  EXPECT_EQ(cause(request + memory + reserved),
            "GPU 0 is out of memory: 2.00 GiB more requested, 300.00 MiB of 79.15 GiB free");
  EXPECT_EQ(
      cause(request + ". GPU 0 has a total capacity of 79.15 GiB of "
                      "which 1.20 GiB is free. Process 1234 has "
                      "70.00 GiB memory in use. Including non-PyTorch memory, this process has 7.95 GiB "
                      "memory in use."),
      "the GPU is out of memory, and process 1234 uses 70.00 GiB of it");
  // In a container, NVML reports this process under a different number.
  EXPECT_EQ(
      cause(request + ". GPU 0 has a total capacity of 79.15 GiB of "
                      "which 1.20 GiB is free. Process 1234 has "
                      "77.00 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch."),
      "GPU 0 is out of memory: 2.00 GiB more requested, 1.20 GiB of 79.15 GiB free");
}

TEST(Cures, cures_use_the_terms_of_the_setting) {
  const std::string killed = "srun: error: n2: task 1: Out Of Memory";
  const auto cure = [](const std::string& line, StartKind start) {
    return explain_line(line, start).cure.english();
  };
  EXPECT_THAT(cure(killed, StartKind::script), HasSubstr("`#SBATCH --mem=64G`"));
  EXPECT_THAT(cure(killed, StartKind::job_file), HasSubstr("`resources: {memory_per_node: 64GiB}`"));
  EXPECT_THAT(cure(killed, StartKind::local), HasSubstr("memory limit of the container"));
  const std::string missing = "FileNotFoundError: [Errno 2] No such file or directory: '/a b'";
  EXPECT_THAT(cure(missing, StartKind::job_file), HasSubstr("`stage: {copy: ['/a b']}`"));
  const std::string gone = "srun: error: Node failure on gpu012";
  EXPECT_EQ(cure(gone, StartKind::script), "retry without that node: `#SBATCH --exclude=gpu012`");
  EXPECT_EQ(cure(gone, StartKind::job_file),
            "leave that node out (`slurm: {extra: [--exclude=gpu012]}`), then `stoker resume r1`");
}

TEST(Cures, groups_in_code_are_quoted_for_the_shell) {
  EXPECT_EQ(explain_line("job.sh: line 3: ./a;rm: Permission denied", StartKind::script).cure,
            "`chmod +x './a;rm'`");
}

TEST(Cures, a_command_needs_what_the_setting_has) {
  const auto confirm = [](const std::string& line, StartKind start) {
    return explain_line(line, start).confirm;
  };
  const std::string missing = "/bin/sh: 1: trainer: not found";
  EXPECT_EQ(confirm(missing, StartKind::job_file), "stoker check 'job file.yaml'");
  EXPECT_EQ(confirm(missing, StartKind::local), "stoker check 'job file.yaml'");
  const std::string silent = "rank 1 (n2) made no progress for 10 min at epoch 1 step 7 (timeouts.stall)";
  EXPECT_EQ(confirm(silent, StartKind::local), "stoker top r1");
  EXPECT_EQ(confirm(silent, StartKind::log), "");
  EXPECT_EQ(confirm("srun: error: n2: tasks 0-3: Killed", StartKind::local).substr(0, 10), "journalctl");
  TestLogs unknown;
  EXPECT_EQ(unknown.add("log", missing + "\n").explain().confirm, "");
}

}  // namespace
}  // namespace stoker::diagnose
