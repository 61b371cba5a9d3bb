#include "base/stack_signal.h"

#include <csignal>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/process.h"

namespace stoker {
namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// In a child, whose threads sleep.
TEST(StackSignal, all_threads_write_their_stacks_and_the_program_continues) {
  auto pipe = Pipe::create();
  ASSERT_TRUE(pipe.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe->write.get(), STDERR_FILENO);
    install_stack_signal();
    std::thread first([] { ::pause(); });
    std::thread second([] { ::pause(); });
    ::syscall(SYS_tgkill, ::getpid(), ::getpid(), kStackSignal);
    ::usleep(500'000);
    ::_exit(7);
  }
  pipe->write.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(pipe->read.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(count(text, kMainThreadHeader), 1u) << text;
  EXPECT_EQ(count(text, kThreadHeader), 2u) << text;
}

TEST(StackSignal, a_handler_that_is_there_is_kept) {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  struct sigaction before{};
  ASSERT_EQ(::sigaction(kStackSignal, &action, &before), 0);
  install_stack_signal();
  struct sigaction now{};
  ::sigaction(kStackSignal, &before, &now);
  EXPECT_EQ(now.sa_handler, action.sa_handler);
}

}  // namespace
}  // namespace stoker
