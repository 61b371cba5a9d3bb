// Scripts: what the shell and ordinary commands print, the order of failures, and a program's own words.
#include <gmock/gmock.h>

#include "diagnose/test_logs.h"

namespace stoker::diagnose {
namespace {

using testing::HasSubstr;

std::string rule_of(const std::string& log) { return explain_log(log).rule; }

TEST(Script, a_word_that_the_shell_takes_as_a_command_is_explained) {
  EXPECT_EQ(rule_of("run.sh: line 3: learning_rate: command not found\n"), "assignment-with-blanks");
  EXPECT_EQ(explain_log("run.sh: line 3: SEED: command not found\n").certainty, Certainty::likely);
  EXPECT_EQ(rule_of("run.sh: line 3: LR=0.1: command not found\n"), "assignment-with-dollar");
  EXPECT_EQ(rule_of("run.sh: line 3: md.tpr: command not found\n"), "file-as-command");
  EXPECT_EQ(rule_of("run.sh: line 3: fit.py: command not found\n"), "program-file-as-command");
  EXPECT_EQ(rule_of("run.sh: line 3: trainer: command not found\n"), "command-not-found");
  EXPECT_EQ(rule_of("run.sh: line 3: STAR: command not found\n"), "command-not-found");
}

TEST(Script, text_for_bash_that_sh_runs_is_explained) {
  for (const char* line : {"a.sh: 4: [[: not found\n", "a.sh: 2: Syntax error: \"(\" unexpected\n",
                           "a.sh: 9: Bad substitution\n", "a.sh: 3: source: not found\n",
                           "a.sh: 2: set: Illegal option -o pipefail\n"})
    EXPECT_EQ(rule_of(line), "sh-is-not-bash") << line;
}

TEST(Script, an_empty_variable_is_seen_by_what_it_leaves) {
  EXPECT_EQ(rule_of("mkdir: missing operand\nout\nrun.sh: line 4: /sum/a.log: No such file or directory\n"),
            "operand-missing");
  EXPECT_EQ(rule_of("rm: missing operand\n" + kTraceback +
                    "FileNotFoundError: [Errno 2] No such file or directory: '/train.csv'\n"),
            "operand-missing");
  EXPECT_EQ(rule_of("mkdir: missing operand\n" + kTraceback + "KeyError: 'lr'\n"), "python-exception");
  EXPECT_EQ(rule_of("run.sh: line 4: /run.log: Permission denied\n"), "path-at-root");
  EXPECT_EQ(rule_of("run.sh: line 4: /scratch/ada/run.log: Permission denied\n"), "write-permission");
  EXPECT_EQ(rule_of("run.sh: line 4: ./run.sh: Permission denied\n"), "script-permission");
}

TEST(Script, words_of_one_name_are_joined_if_a_line_above_has_it) {
  const std::string words = "cat: my: No such file or directory\ncat: run.csv: No such file or directory\n";
  const Diagnosis joined = explain_log("reading my run.csv\n" + words);
  EXPECT_EQ(joined.rule, "unquoted-name");
  EXPECT_THAT(joined.cause.english(), HasSubstr("my run.csv"));
  const Diagnosis likely = explain_log("reading\n" + words);
  EXPECT_EQ(likely.rule, "unquoted-name-likely");
  EXPECT_EQ(likely.certainty, Certainty::likely);
  EXPECT_EQ(rule_of("cat: a/b.csv: No such file or directory\ncat: c.csv: No such file or directory\n"),
            "tool-file-missing");
}

TEST(Script, the_first_failure_of_a_sequence_is_the_cause) {
  const std::string cd = "run.sh: line 3: cd: /scratch/x: No such file or directory\n";
  EXPECT_EQ(rule_of(cd + "cp: cannot stat 'in.dat': No such file or directory\n"), "cd-failed");
  EXPECT_EQ(rule_of(cd + kTraceback + "FileNotFoundError: [Errno 2] No such file or directory: 'a.yaml'\n"),
            "cd-failed");
  EXPECT_EQ(rule_of(cd + kTraceback + "KeyError: 'lr'\n"), "python-exception");
  EXPECT_EQ(rule_of("fatal: repository 'https://x.org/a/' not found\nls: cannot access 'a': No such file or "
                    "directory\n"),
            "git-remote-failed");
  EXPECT_EQ(rule_of("tar (child): d.tgz: Cannot open: No such file or directory\n" + kTraceback +
                    "FileNotFoundError: [Errno 2] No such file or directory: 'd/a.csv'\n"),
            "tool-file-missing");
  EXPECT_EQ(rule_of("run.sh: line 2: module: command not found\nrun.sh: line 3: gmx: command not found\n"),
            "module-command-missing");
}

TEST(Script, ordinary_commands_are_explained) {
  EXPECT_EQ(explain_log("mpirun was unable to launch the specified application as it could not access\n"
                        "or execute an executable:\n\nExecutable: ./wrf\nNode: n1\n")
                .cause,
            "mpirun cannot start ./wrf: the program does not exist on that node, or is not executable");
  EXPECT_EQ(explain_log("a.fa: FAILED\nmd5sum: WARNING: 1 computed checksum did NOT match\n").cause,
            "a file does not match its checksum: it is damaged, or it was changed: a.fa: FAILED");
  EXPECT_EQ(rule_of("cp: cannot create regular file '/p/a.csv': Permission denied\n"), "tool-permission");
  EXPECT_EQ(
      rule_of("curl: (7) Failed to connect to localhost port 54 after 0 ms: Couldn't connect to server\n"),
      "port-refused");
  EXPECT_EQ(rule_of("sampler ended\nexit code: 139\n"), "exit-of-signal");
}

TEST(Script, a_package_that_needs_a_module_to_be_built_is_explained) {
  EXPECT_EQ(
      rule_of("  error: subprocess-exited-with-error\n"
              "      Traceback (most recent call last):\n"
              "        File \"/tmp/pip-build-env-w0/setuptools/build_meta.py\", line 520, in run_setup\n"
              "          super().run_setup()\n"
              "        File \"<string>\", line 2, in <module>\n"
              "      ModuleNotFoundError: No module named 'torch'\n"
              "      [end of output]\nerror: subprocess-exited-with-error\n"),
      "pip-build-lacks");
}

TEST(Script, a_wait_for_a_lock_explains_an_end_without_progress) {
  const std::string wait = "Waiting for lock /tmp/x.lock (held by pid 7) ...\n";
  EXPECT_EQ(rule_of(wait + wait + "*** time limit hit\n"), "waits-for-lock");
  EXPECT_EQ(rule_of(wait + steps(20) + kTraceback + "KeyError: 'lr'\n"), "python-exception");
  EXPECT_EQ(explain_log(wait + steps(3) + "Training complete\n").certainty, Certainty::none);
}

TEST(OwnWords, the_last_error_of_a_program_is_quoted_as_likely) {
  for (const char* line :
       {"2025-11-21 10:21:26 | ERROR    | __main__:main:12 - no such model\n", "ERROR:root:no such model\n",
        "2025-11-21 10:21:26,022 [CRITICAL] no such model\n", "[E] no such model\n",
        "[2025-11-21 10:00:00.123] [fit] [error] no such model\n",
        "2025-11-21T10:00:00Z [error    ] no such model\n", "level=error msg=\"no such model\"\n",
        "E1121 10:00:00.123456 7 fit.cc:88] no such model\n", "ERROR: no such model\n"}) {
    const Diagnosis own = explain_log("reading\n" + std::string(line) + "INFO: bye\n");
    EXPECT_EQ(own.cause, "the program reports: no such model") << line;
    EXPECT_EQ(own.certainty, Certainty::likely) << line;
  }
  // A later one that only announces the end, and one that the program survived, do not count.
  EXPECT_EQ(explain_log("ERROR: no such model\nERROR: aborting\n").cause,
            "the program reports: no such model");
  EXPECT_EQ(rule_of("[ERROR] no index, rebuilding it\nstep 3\n"), "");
  EXPECT_EQ(rule_of("ERROR: no such model\n" + steps(2)), "");
  // A known cause, or a kill, is better.
  EXPECT_EQ(rule_of("ERROR: no such model\n" + kTraceback + "KeyError: 'lr'\n"), "python-exception");
  EXPECT_EQ(rule_of("ERROR: no such model\nrun.sh: line 9:  4711 Killed                  python a.py\n"),
            "batch-killed");
  // The exit code of the tool shows less.
  EXPECT_EQ(
      rule_of("ERROR: cell 3 has no volume\n" + kTraceback +
              "subprocess.CalledProcessError: Command '['./mesh', 'a']' returned non-zero exit status 4.\n"),
      "own-error");
}

TEST(OwnWords, a_printed_usage_is_a_likely_cause) {
  EXPECT_EQ(explain_log("Usage: fit CONFIG FOLDER\ntool exit: 64\n").cause,
            "the program got wrong arguments, or none, and printed its usage: fit CONFIG FOLDER");
}

TEST(ScriptSequence, an_environment_that_was_not_activated_is_the_first_fault) {
  const std::string lacks = kTraceback + "ModuleNotFoundError: No module named 'torch_geometric'\n";
  const std::string conda =
      "+ conda activate gnn\n\nCondaError: Run 'conda init' before 'conda activate'\n\n";
  EXPECT_EQ(rule_of(conda + "+ python main.py\n" + lacks + "+ python eval.py\n" + lacks),
            "conda-not-initialised");
  EXPECT_EQ(rule_of(conda + "+ python main.py\n" + kTraceback + "KeyError: 'lr'\n"), "python-exception");
}

}  // namespace
}  // namespace stoker::diagnose
