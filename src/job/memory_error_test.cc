#include "job/memory_error.h"

#include <gtest/gtest.h>

namespace stoker::job {
namespace {

// As in CUDACachingAllocator.cpp.
constexpr std::string_view kGpu =
    "loss: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of "
    "which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.95 GiB memory in use. Of the "
    "allocated "
    "memory 76.80 GiB is allocated by PyTorch, and 312.10 MiB is reserved by PyTorch but unallocated.";
constexpr std::string_view kSharedGpu =
    "loss: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total capacity of 39.59 GiB of "
    "which 12.19 MiB is free. Process 77 has 36.60 GiB memory in use. Including non-PyTorch memory, this "
    "process "
    "has "
    "2.92 GiB memory in use.";
constexpr std::string_view kCpu =
    "loss: [enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you "
    "tried "
    "to allocate 240000000000 bytes. Error code 12 (Cannot allocate memory)";

TrainOptions options(std::uint32_t batch, std::uint32_t accumulate = 1) {
  TrainOptions train;
  train.batch = batch;
  train.accumulate = accumulate;
  train.validation_batch = 100;
  return train;
}

TEST(MemoryError, is_recognized_in_the_texts_of_all_allocators) {
  for (const std::string_view text : {kGpu, kSharedGpu, kCpu}) EXPECT_TRUE(is_out_of_memory(text));
  for (const std::string_view text :
       {"loss: CUDA error: out of memory", "loss: CUDA driver error: out of memory",
        "optimizer: std::bad_alloc",
        "loss: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "loss: cuDNN error: CUDNN_STATUS_ALLOC_FAILED"})
    EXPECT_TRUE(is_out_of_memory(text)) << text;
  EXPECT_FALSE(is_out_of_memory("loss: CUDA error: device-side assert triggered"));
}

TEST(MemoryError, names_the_request_the_free_memory_and_other_processes) {
  EXPECT_EQ(memory_facts(kGpu), "2.00 GiB more requested, 1.20 GiB of 79.15 GiB free");
  EXPECT_EQ(memory_facts(kSharedGpu),
            "20.00 MiB more requested, 12.19 MiB of 39.59 GiB free; process 77 uses 36.60 GiB of it");
  // In a container.
  EXPECT_EQ(memory_facts(
                "CUDA out of memory. Tried to allocate 512 bytes. GPU 0 has a total capacity of 79.15 GiB of "
                "which 1.20 GiB is free. Process 1234 has 77.00 GiB memory in use. Of the allocated "
                "memory 70.00 GiB is allocated by PyTorch."),
            "512 bytes more requested, 1.20 GiB of 79.15 GiB free");
  EXPECT_EQ(memory_facts(kCpu), "240 GB more requested");
  EXPECT_EQ(memory_facts("CUDA error: out of memory"), "");
  EXPECT_EQ(memory_facts("Tried to allocate a very long sentence without any number. It"), "");
  EXPECT_EQ(memory_facts("you tried to allocate many bytes"), "");
}

TEST(MemoryError, a_smaller_batch_keeps_the_samples_of_a_step_if_it_can) {
  const auto check = [](std::uint32_t batch, std::uint32_t accumulate, std::uint32_t smaller,
                        std::uint32_t passes, bool keeps) {
    const SmallerBatch found = smaller_batch(batch, accumulate);
    EXPECT_EQ(found.batch, smaller) << batch;
    EXPECT_EQ(found.accumulate, passes) << batch;
    EXPECT_EQ(found.keeps_step, keeps) << batch;
    EXPECT_EQ(found.batch * found.accumulate == batch * accumulate, keeps) << batch;
  };
  check(512, 1, 256, 2, true);
  check(512, 4, 256, 8, true);
  check(129, 1, 43, 3, true);
  check(127, 1, 63, 2, false);
  check(2, 1, 1, 2, true);
  check(3, 1, 1, 2, false);
}

TEST(MemoryError, of_a_step_ends_with_the_settings_to_change) {
  EXPECT_EQ(step_memory_error("epoch 1, step 7", "cuda:0", options(512), kGpu).to_string(),
            "epoch 1, step 7: out of memory on cuda:0 with 512 samples per rank (train.batch): 2.00 GiB more "
            "requested, 1.20 GiB of 79.15 GiB free\n"
            "  try: train: {batch: 256, accumulate: 2} (as many samples per step), or find what fits: "
            "stoker-train --find-batch");
  EXPECT_EQ(step_memory_error("epoch 2, step 9", "cpu", options(127, 2), "loss: std::bad_alloc").to_string(),
            "epoch 2, step 9: out of memory on the CPU with 127 samples per rank (train.batch)\n"
            "  try: train: {batch: 63, accumulate: 4} (a smaller step), or find what fits: stoker-train "
            "--find-batch");
  EXPECT_EQ(
      step_memory_error("epoch 1, step 1", "cuda:0", options(1), "CUDA error: out of memory").to_string(),
      "epoch 1, step 1: out of memory on cuda:0 with 1 sample per rank (train.batch)\n"
      "  try: train.precision: bf16, or smaller images");
  // Not a peer's failure: the peers must learn the reason.
  EXPECT_EQ(step_memory_error("", "cpu", options(4), kCpu).code(), Code::no_space);
}

TEST(MemoryError, of_a_validation_or_of_a_model_names_their_settings) {
  EXPECT_EQ(
      validation_memory_error("validation after epoch 1", "cuda:1", options(8), kSharedGpu).to_string(),
      "validation after epoch 1: out of memory on cuda:1 with 100 samples per rank "
      "(train.validation_batch): 20.00 MiB more requested, 12.19 MiB of 39.59 GiB free; process 77 uses "
      "36.60 GiB of it\n"
      "  try: train: {validation_batch: 50}");
  EXPECT_EQ(model_memory_error("cuda:0", kGpu).to_string(),
            "out of memory on cuda:0 for the model and its optimizer (train.model): 2.00 GiB more requested, "
            "1.20 GiB of 79.15 GiB free\n"
            "  try: nvidia-smi to see other programs on the GPU, or a smaller train.model");
  EXPECT_EQ(model_memory_error("cpu", kCpu).to_string(),
            "out of memory on the CPU for the model and its optimizer (train.model): 240 GB more requested\n"
            "  try: resources: {memory_per_node: 64GB}, or a smaller train.model");
}

}  // namespace
}  // namespace stoker::job
