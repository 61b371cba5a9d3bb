#include "launch/start/claim_attempt.h"

#include <gmock/gmock.h>

#include "launch/sandbox.h"
#include "record/run_events.h"

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;

// A run with one ended attempt, and a request from a process that saw it.
Request to_resume(const LaunchSandbox& box) {
  Request request = box.request();
  auto run = record::RunFolder::create(request.job.record.directory, {.name = "digits"}, "name: digits\n");
  STOKER_CHECK(run.ok());
  STOKER_CHECK(run->start_attempt("name: digits\n").ok());
  request.resumed = *run;
  request.last_known_attempt = 1;
  return request;
}

Result<record::Attempt> take(const Request& request) {
  return claim_attempt(request, *request.resumed, "", "name: digits\n");
}

std::vector<std::string> attempts_of(const Request& request) {
  return *list_directory(request.resumed->folder() / "attempts");
}

TEST(ClaimAttempt, second_concurrent_resume_removes_its_attempt) {
  LaunchSandbox box;
  const Request request = to_resume(box);
  const auto first = take(request);
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  EXPECT_EQ(first->number(), 2);
  const std::string id = request.resumed->id();
  EXPECT_EQ(take(request).status().to_string(),
            format("run {}: is still running\n  try: stoker logs -f {}", id, id));
  EXPECT_THAT(attempts_of(request), ElementsAre("1", "2"));
}

TEST(ClaimAttempt, intermediate_attempt_is_detected) {
  LaunchSandbox box;
  const Request request = to_resume(box);
  const auto other = take(request);
  auto events = record::EventWriter::open(other->node_events(0));
  record::AttemptStarted started;
  started.supervisor = record::this_process();
  ASSERT_TRUE(write_event(*events, started).ok());
  ASSERT_TRUE(
      write_event(*events, record::AttemptEnded{.outcome = record::Outcome::failed, .exit_code = 1}).ok());
  const std::string id = request.resumed->id();
  EXPECT_EQ(take(request).status().to_string(),
            format("run {}: another process has just resumed it\n  try: stoker status {}", id, id));
  EXPECT_THAT(attempts_of(request), ElementsAre("1", "2"));
}

TEST(ClaimAttempt, abandoned_attempt_number_is_ignored) {
  LaunchSandbox box;
  Request request = to_resume(box);
  const auto given_up = take(request);
  const auto last = request.resumed->start_attempt("name: digits\n");
  ASSERT_TRUE(remove_tree(given_up->folder()).ok());
  request.last_known_attempt = last->number();
  EXPECT_EQ(take(request)->number(), 4);
}

}  // namespace
}  // namespace stoker::launch
