#include "net/shm/region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"
#include "net/shm/test_ranks.h"

namespace stoker::net::shm {
namespace {

TEST(Region, names_the_rank_that_does_not_connect) {
  auto host = RegionServer::open();
  ASSERT_TRUE(host.ok());
  const auto region =
      std::move(*host).create_region({Rank(0), WorldSize(3)}, Deadline::after(std::chrono::milliseconds(20)));
  EXPECT_EQ(region.status().code(), Code::timeout);
  EXPECT_EQ(region.status().message(), "shared memory: rank 1 did not connect (of 3 ranks on this host)");
}

TEST(Region, joining_without_a_listener_is_an_error) {
  const auto region = join("stoker-no-listener", {Rank(1), WorldSize(2)}, Deadline::after(kJoinTimeout));
  EXPECT_EQ(region.status().message(), "shared memory: rank 0 of this host: connection refused");
}

TEST(Region, refuses_a_rank_with_a_different_world_size) {
  auto host = RegionServer::open();
  ASSERT_TRUE(host.ok());
  const std::string address = host->address();
  std::thread stranger([&] { (void)join(address, {Rank(5), WorldSize(6)}, Deadline::after(kJoinTimeout)); });
  const auto region = std::move(*host).create_region({Rank(0), WorldSize(2)}, Deadline::after(kJoinTimeout));
  EXPECT_EQ(region.status().message(), "shared memory: a rank 5 of 6 connected to a group of 2 ranks");
  stranger.join();
}

TEST(Region, leaves_no_file_behind_even_while_it_is_used) {
  for (const Status& status : run_on_threads(2, [&](Exchange& exchange) -> Status {
         STOKER_RETURN_IF_ERROR(exchange.barrier());
         // Memory without a file, which the kernel frees with the last process, however it exits.
         STOKER_ASSIGN_OR_RETURN(maps, read_file("/proc/self/maps"));
         if (maps.find("/memfd:stoker-ranks") == std::string::npos) return internal("it is not mapped");
         if (maps.find("/dev/shm/") != std::string::npos) return internal("{}", maps);
         return exchange.barrier();
       })) {
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
}

TEST(Region, detects_the_other_process_and_its_end) {
  auto host = RegionServer::open();
  ASSERT_TRUE(host.ok());
  auto pipe = Pipe::create();
  ASSERT_TRUE(pipe.ok());
  const pid_t other = rank_process(host->address(), {Rank(1), WorldSize(2)}, [&](Exchange&) {
    pipe->write.reset();
    char byte = 0;
    (void)!::read(pipe->read.get(), &byte, 1);
  });
  auto region = std::move(*host).create_region({Rank(0), WorldSize(2)}, Deadline::after(kJoinTimeout));
  ASSERT_TRUE(region.ok()) << region.status().to_string();
  EXPECT_FALSE(region->has_ended(Rank(1)));
  EXPECT_FALSE(region->is_stopped(Rank(1)));
  pipe->write.reset();
  ::waitpid(other, nullptr, 0);
  EXPECT_TRUE(region->has_ended(Rank(1)));
  EXPECT_EQ(region->slot(Rank(1)).pid, other);
}

TEST(Place, is_the_same_for_processes_of_one_host) {
  EXPECT_EQ(shared_memory_domain(), shared_memory_domain());
}

TEST(Call, is_described_completely) {
  EXPECT_EQ(to_text(Call{.number = 7, .operation = CollectiveOp::barrier}), "barrier 7");
  EXPECT_EQ(
      to_text(Call{.number = 8, .bytes = 40, .operation = CollectiveOp::all_gather, .element = Element::i64}),
      "all-gather 8 of 40 B of int64");
}

}  // namespace
}  // namespace stoker::net::shm
