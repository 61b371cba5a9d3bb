#include "launch/notebook/session.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "launch/sandbox.h"

namespace stoker::launch {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

NotebookEndpoint place() {
  return {.program = "jupyter-lab",
          .host = "n1",
          .address = "10.0.0.5",
          .port = 21234,
          .token = "secret",
          .job = "812"};
}

TEST(NotebookSession, endpoint_line_round_trips) {
  const auto back = parse_endpoint_line(to_line(place()));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->program, "jupyter-lab");
  EXPECT_EQ(back->host, "n1");
  EXPECT_EQ(back->address, "10.0.0.5");
  EXPECT_EQ(back->port, 21234);
  EXPECT_EQ(back->token, "secret");
  EXPECT_EQ(back->job, "812");
}

TEST(NotebookSession, unrelated_line_is_ignored) {
  for (const char* line :
       {"", "Loading modules", "stoker-notebook", "stoker-notebook ", "stoker-notebook []",
        "stoker-notebook {", "stoker-notebook {\"port\": 1}",
        "stoker-notebook {\"port\": 70000, \"token\": \"t\"}",
        "stoker-notebook {\"port\": \"80\", \"token\": \"t\"}", "{\"port\": 80, \"token\": \"t\"}"})
    EXPECT_FALSE(parse_endpoint_line(line)) << line;
}

TEST(NotebookSession, the_tunnel_leads_to_the_address_that_is_listened_on) {
  EXPECT_EQ(tunnel_command(place(), 8888, "ada@login1.cluster"),
            "ssh -N -L 8888:10.0.0.5:21234 ada@login1.cluster");
  EXPECT_EQ(tunnel_command(place(), 8888, "a b"), "ssh -N -L 8888:10.0.0.5:21234 'a b'");
  EXPECT_EQ(place().url(8888), "http://127.0.0.1:8888/lab?token=secret");
  NotebookEndpoint other = place();
  other.program = "jupyter-notebook";
  EXPECT_EQ(other.url(8888), "http://127.0.0.1:8888/tree?token=secret");
  other.program = "jupyter-server";
  EXPECT_EQ(other.url(8888), "http://127.0.0.1:8888/?token=secret");
}

TEST(NotebookSession, the_login_node_is_named_as_people_reach_it) {
  const auto no_ssh = std::optional<std::string>();
  EXPECT_EQ(external_login("login1.cluster.org", "ada", "1.2.3.4 5555 9.8.7.6 22"), "ada@login1.cluster.org");
  EXPECT_EQ(external_login("login1", "ada", "1.2.3.4 5555 9.8.7.6 22"), "ada@9.8.7.6");
  EXPECT_EQ(external_login("login1", "ada", "garbage"), "ada@login1");
  EXPECT_EQ(external_login("login1", "ada", no_ssh), "ada@login1");
}

TEST(NotebookSession, missing_server_is_reported_before_allocation) {
  const LaunchSandbox box;
  const TempDirectory folder;
  job::Job job = box.request().job;
  const Status none = check_notebook(job, {{"PATH", folder.path()}});
  EXPECT_EQ(none.message(),
            "jupyter: none of jupyter-lab, jupyter-server, jupyter-notebook is in the PATH of the job's "
            "environment");
  EXPECT_EQ(none.cure(), "pip install jupyterlab");
  job.environment.venv = folder / "my venv";
  const Status of_venv = check_notebook(job, {{"PATH", folder.path()}});
  EXPECT_THAT(std::string(of_venv.message()), EndsWith(format("(environment.venv: {})", folder / "my venv")));
  EXPECT_EQ(of_venv.cure(), format("'{}' install jupyterlab", folder / "my venv/bin/pip"));
  ASSERT_TRUE(write_file(folder / "jupyter-server", "#!/bin/sh\n").ok());
  std::filesystem::permissions(folder / "jupyter-server", std::filesystem::perms::owner_all);
  EXPECT_TRUE(check_notebook(job, {{"PATH", folder.path()}}).ok());
}

TEST(NotebookSession, the_node_part_has_no_terminal_and_runs_in_the_jobs_container) {
  const LaunchSandbox box;
  Request request = box.request("resources: {nodes: 2}\n");
  request.stoker = "/opt/stoker/bin/stoker";
  const auto plain = notebook_arguments(request);
  ASSERT_TRUE(plain.ok()) << plain.status().to_string();
  EXPECT_EQ(plain->front(), "salloc");
  EXPECT_THAT(*plain, Not(Contains("--pty")));
  EXPECT_THAT(join(*plain, " "), HasSubstr("/opt/stoker/bin/stoker notebook"));
  request.job.environment.container = "/images/python";
  const auto contained = notebook_arguments(request);
  ASSERT_TRUE(contained.ok()) << contained.status().to_string();
  EXPECT_THAT(join(*contained, " "), HasSubstr(" -- ch-run --cd="));
  EXPECT_EQ(contained->back(), "--");
}

}  // namespace
}  // namespace stoker::launch
