#include "launch/script/user_script.h"

#include <sys/stat.h>

#include <gmock/gmock.h>

#include "base/file.h"
#include "launch/fake_scheduler.h"
#include "launch/status/life.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Deadline soon() { return Deadline::after(std::chrono::seconds(10)); }

class Scripts {
 public:
  ScriptRequest request(const std::string& text, std::vector<std::string> arguments = {}) const {
    STOKER_CHECK(write_file(box_ / "my train.sh", text).ok());
    ScriptRequest request{.script = "my train.sh", .arguments = std::move(arguments)};
    request.stoker = "/opt/stoker";
    request.directory = box_.path();
    return request;
  }
  Status refusal(ScriptRequest request) const { return plan_script(std::move(request)).status(); }
  Path operator/(std::string_view name) const { return box_ / name; }

  FakeScheduler scheduler;

 private:
  TempDirectory box_;
};

TEST(SubmitScript, makes_run_attempt_copy_and_one_call) {
  Scripts box;
  const std::string text = "#!/bin/bash\n#SBATCH -N 2\necho $1\n";
  const auto plan = plan_script(box.request(text, {"a b", "--lr"}));
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  const auto submitted = submit_script(*plan, box.scheduler, soon());
  ASSERT_TRUE(submitted.ok()) << submitted.status().to_string();
  EXPECT_EQ(box.scheduler.calls, 1);
  const Path folder = submitted->attempt.folder();
  EXPECT_EQ(*read_file(folder / "slurm_script"), text);
  struct stat info{};
  ASSERT_EQ(::stat((folder / "slurm_script").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  const std::string batch = *read_file(submitted->attempt.batch_script());
  EXPECT_THAT(batch, HasSubstr(format("\n#SBATCH --comment=stoker:{}/1\n", submitted->folder.id())));
  EXPECT_THAT(batch, HasSubstr("\n#SBATCH -N 2\n"));
  EXPECT_THAT(batch, HasSubstr(format("\nexec /opt/stoker run {}\n", folder.string())));
  const auto job = job::load(submitted->attempt.job());
  ASSERT_TRUE(job.ok()) << job.status().to_string();
  EXPECT_THAT(job->command->arguments, ElementsAre((folder / "slurm_script").string(), "a b", "--lr"));
  EXPECT_EQ(submitted->folder.description().name, "my-train");
  EXPECT_TRUE(has_script(folder));
  EXPECT_EQ(query_life(submitted->folder, box.scheduler, soon()).life, Life::queued);
}

TEST(SubmitScript, asks_of_the_site_what_sbatch_would_read) {
  Scripts box;
  ScriptRequest request = box.request(
      "#!/bin/bash\n#SBATCH -t 30:00:00 -N 2-4\n#SBATCH -p gpu --qos=long\n#SBATCH --gres=gpu:a100:4,tmp:1\n"
      "#SBATCH --ntasks-per-node=4 -c 8\n#SBATCH --array=1-9%3\necho\n#SBATCH --time=1:00\n");
  const auto unset = [](std::string_view) { return std::nullopt; };
  const auto plan = plan_script(request);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  const job::SiteRequest asked = site_request(*plan, unset);
  EXPECT_EQ(asked.time, Duration(std::chrono::hours(30)));
  EXPECT_EQ(asked.nodes, 2u);
  EXPECT_EQ(asked.partition, "gpu");
  EXPECT_EQ(asked.qos, "long");
  EXPECT_EQ(asked.account, std::nullopt);
  EXPECT_EQ(asked.gpus_per_task, 1u);
  EXPECT_EQ(asked.cpus_per_task, 8u);
  EXPECT_EQ(asked.jobs, 9u);
  EXPECT_EQ(asked.where.at("--time"), "my train.sh:2");
  EXPECT_EQ(asked.where.at("--account"), "my train.sh");
  request.options = {"--time=UNLIMITED", "-A def-x"};
  const auto other = plan_script(request);
  ASSERT_TRUE(other.ok()) << other.status().to_string();
  const job::SiteRequest over = site_request(*other, unset);
  EXPECT_TRUE(over.has_time);
  EXPECT_EQ(over.time, std::nullopt);
  EXPECT_EQ(over.account, "def-x");
  EXPECT_EQ(over.where.at("--account"), "--sbatch");
  const job::SiteRequest shell = site_request(*other, [](std::string_view name) {
    return name == "SBATCH_TIMELIMIT" ? std::optional("90") : std::nullopt;
  });
  EXPECT_EQ(shell.time, Duration(std::chrono::minutes(90)));
  EXPECT_EQ(shell.where.at("--time"), "SBATCH_TIMELIMIT");
}

TEST(SubmitScript, a_refusal_names_the_line_and_what_was_meant) {
  Scripts box;
  const auto plan =
      plan_script(box.request("#!/bin/sh\n#SBATCH -N 1\n#SBATCH --ntaks-per-node=4\n#SBATCH -A unknown\n"));
  ASSERT_TRUE(plan.ok());
  const auto refused = [&](const char* words) {
    box.scheduler.problem = invalid("sbatch: {}", words);
    return std::string(submit_script(*plan, box.scheduler, soon()).status().message());
  };
  EXPECT_EQ(
      refused("unrecognized option '--ntaks-per-node=4'"),
      "sbatch: unrecognized option '--ntaks-per-node=4' (my train.sh:3; did you mean '--ntasks-per-node'?)");
  EXPECT_EQ(refused("Invalid account or account/partition combination specified"),
            "sbatch: Invalid account or account/partition combination specified (my train.sh:4)");
  EXPECT_EQ(refused("something else"), "sbatch: something else");
}

TEST(SubmitScript, folders_of_logs_are_made_and_what_cannot_be_made_is_refused) {
  Scripts box;
  const auto plan = plan_script(box.request("#!/bin/sh\n#SBATCH -o logs/a/%j.out\n"));
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_THAT(plan->log_folders, ElementsAre(box / "logs/a"));
  EXPECT_FALSE(path_exists(box / "logs"));
  ASSERT_TRUE(submit_script(*plan, box.scheduler, soon()).ok());
  EXPECT_TRUE(folder_exists(box / "logs/a"));
  EXPECT_EQ(box.refusal(box.request("#!/bin/sh\n#SBATCH -e my train.sh/%j.out\n")).message(), "ok");
  EXPECT_EQ(box.refusal(box.request("#!/bin/sh\n#SBATCH -e 'my train.sh/x/%j.out'\n")).to_string(),
            format("--error: the log folder my train.sh/x does not exist and cannot be created in {} (my "
                   "train.sh:2)\n  try: stoker submit 'my train.sh' --sbatch=--error=FILE",
                   (box / "my train.sh").string()));
}

TEST(SubmitScript, what_means_nothing_to_a_script_is_refused) {
  Scripts box;
  ScriptRequest request = box.request("#!/bin/sh\n");
  request.set = {"resources.time=1h"};
  EXPECT_EQ(box.refusal(request).to_string(),
            "--set resources.time: does not apply to batch scripts\n  try: stoker submit SCRIPT "
            "--sbatch=--time=1:00:00");
  request.set = {"name=other"};
  EXPECT_EQ(plan_script(request)->job.name, "other");
  request.options = {"--wait"};
  EXPECT_EQ(box.refusal(request).message(), "--sbatch: '--wait': --wait is not allowed here");
  EXPECT_EQ(box.refusal(box.request("#!/bin/sh\n#SBATCH -W\n")).to_string(),
            "my train.sh:2: --wait would block until the job ends\n  try: stoker wait last      (instead of "
            "--wait)");
  EXPECT_EQ(box.refusal(box.request("#!/bin/sh\n", {"a", "b\xff"})).message(),
            "argument 2 of the script: 'b\\xff' is not valid UTF-8");
}

TEST(SubmitScript, an_array_gets_one_log_for_each_task) {
  Scripts box;
  const auto plan = plan_script(box.request("#!/bin/sh\n#SBATCH --array=1-3%1\n"));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->tasks, 3);
  EXPECT_THAT(*wrapped_script(*plan, record::Attempt("/runs/r/attempts/1", 1), "r"),
              HasSubstr("\n#SBATCH --output=/runs/r/attempts/1/slurm-%a.log\n"));
}

}  // namespace
}  // namespace stoker::launch
