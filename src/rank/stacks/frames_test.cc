#include "rank/stacks/frames.h"

#include <gtest/gtest.h>

#include "base/stack_signal.h"
#include "stoker/text.h"

namespace stoker::rank {
namespace {

constexpr const char* kPySpy = R"text(Process 3687: /venv/bin/python train.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 3689 (idle): "Thread-1 (load)"
    Thread.run (/usr/lib/python3.11/threading.py:975)
Thread 3687 (idle): "MainThread"
    Condition.wait (/usr/lib/python3.11/threading.py:320)
    Queue.get (/usr/lib/python3.11/queue.py:171)
    load (/home/me/train (copy).py:3)
    <module> (/home/me/train.py:7)
Thread 3690 (active): "pin_memory"
    do_one_step (/venv/lib/python3.11/site-packages/torch/utils/data/_utils/pin_memory.py:30)
)text";

constexpr const char* kFaulthandler = R"text(Current thread 0x00007f828e62d6c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 975 in run

Thread 0x00007f828e8ef040 (most recent call first):
  File "/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", line 2810 in all_reduce
  File "/home/me/step.py", line 40 in step
  File "/home/me/train.py", line 7 in <module>
)text";

constexpr const char* kGdb = R"text([New LWP 12]
0x00007f2a in poll () from /lib/x86_64-linux-gnu/libc.so.6

Thread 2 (Thread 0x7f82 (LWP 12) "worker"):
#0  0x00007f82 in futex_wait () at ./nptl/futex-internal.c:57

Thread 1 (Thread 0x7f81 (LWP 11) "solver"):
#0  0x00007f2a in poll () from /lib/x86_64-linux-gnu/libc.so.6
#1  exchange (peer=1) at /home/me/solver.cc:88
#2  main (argc=1, argv=0x7ffd) at /home/me/solver.cc:120
[Inferior 1 (process 11) detached]
)text";

TEST(Frames, the_main_thread_is_found_in_each_format) {
  EXPECT_EQ(summarize(main_thread_frames(kPySpy)),
            "Condition.wait (threading.py:320), called by load (train (copy).py:3)");
  EXPECT_EQ(summarize(main_thread_frames(kFaulthandler)),
            "all_reduce (distributed_c10d.py:2810), called by step (step.py:40)");
  EXPECT_EQ(summarize(main_thread_frames(
                "Thread 1 (LWP 4):\n#0  0x01 in poll () from /lib/libc.so.6\n#1  0x02 in ?? ()\n"
                "#2  0x03 in stoker::loader::Engine::next() ()\n#3  0x04 in main ()\n")),
            "poll (libc.so.6), called by stoker::loader::Engine::next()");
  EXPECT_EQ(summarize(main_thread_frames(kGdb)), "poll (libc.so.6), called by exchange (solver.cc:88)");
  const std::string own = format(
      "{}\n/lib/libc10d.so(_ZN4c10d4Work4waitEv+0x12) [0x7f]\n/bin/train(+0x40) [0x7e]\n{}7\n"
      "/lib/libc.so.6(pause+0x1) [0x7d]\n",
      kMainThreadHeader, kThreadHeader);
  EXPECT_EQ(summarize(main_thread_frames(own)), "c10d::Work::wait (libc10d.so)");
}

TEST(Frames, a_thread_alone_is_named_by_its_innermost_frame) {
  EXPECT_EQ(summarize({{"load", "/home/me/train.py", 12}, {"main", "/home/me/train.py", 20}}),
            "load (train.py:12)");
  EXPECT_EQ(summarize({{"poll", "/lib/libc.so.6", 0}}), "poll (libc.so.6)");
  EXPECT_EQ(summarize({}), "");
}

TEST(Frames, a_launcher_waits_for_its_child) {
  EXPECT_TRUE(waits_for_child({{"Popen._try_wait", "/usr/lib/python3.11/subprocess.py", 1926}}));
  EXPECT_TRUE(waits_for_child({{"poll", "/usr/lib/python3.11/multiprocessing/popen_fork.py", 27}}));
  EXPECT_FALSE(waits_for_child(main_thread_frames(kPySpy)));
  EXPECT_FALSE(waits_for_child({}));
}

TEST(Frames, other_text_has_no_frames) {
  for (const char* text :
       {"", "\n\n", "Thread 1 (", "Thread", "#0", "# ", "    (", "  File \"", "/(", "/a(b",
        "Thread 1 (x):\n#0  0x0 in", "stack of the main thread\n/x(_ZN+0x1)",
        "Current thread 0x1 (most recent call first):\n  File \"x\", line 9999999999999999999 in f"}) {
    EXPECT_LE(main_thread_frames(text).size(), 1u) << text;
  }
}

TEST(Frames, deep_stacks_and_long_names_are_cut) {
  std::string deep = "Thread 1 (x):\n";
  for (int i = 0; i < 100000; ++i) deep += "#1  0x0 in f () at a.c:1\n";
  EXPECT_EQ(main_thread_frames(deep).size(), 256u);
  const std::string name = format("Thread 1 (x):\n#0  {} () at a.c:1\n", std::string(100000, 'a'));
  EXPECT_EQ(main_thread_frames(name).at(0).function.size(), 120u);
}

}  // namespace
}  // namespace stoker::rank
