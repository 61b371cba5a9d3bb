#include "job/memory_error.h"

#include <algorithm>

#include "base/language/counted.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::job {

namespace {

// More parts would be slow. Parts of one sample are only for a batch of two: batch norm cannot learn from
// them.
constexpr std::uint32_t kLargestDivisor = 7;

// torch's text before the free memory.
constexpr std::string_view kFreeBegin =
    " of "
    "which ";

// The text between `before` and `after`; "" without both.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == text.npos) return {};
  text.remove_prefix(begin + before.size());
  const std::size_t end = text.find(after);
  return end == text.npos ? std::string_view() : text.substr(0, end);
}

// "Process 1234 has 70.00 GiB memory in use." of other processes, the first two.
std::string other_processes(std::string_view text) {
  constexpr std::string_view kBegin = ". Process ";
  std::string found;
  // In a container, NVML reports this process under a different number.
  if (text.find("this process has ") == text.npos) return found;
  for (int count = 0; count < 2; ++count) {
    const std::size_t at = text.find(kBegin);
    if (at == text.npos) break;
    text.remove_prefix(at + 2);
    const std::string_view pid = between(text, "Process ", " has ");
    const std::string_view bytes = between(text, " has ", " memory in use");
    if (!pid.empty() && !bytes.empty()) found += format("; process {} uses {} of it", pid, bytes);
  }
  return found;
}

Status memory_error(std::string_view what, std::string_view key, std::string_view error) {
  const std::string facts = memory_facts(error);
  return no_space("{} ({}){}{}", what, key, facts.empty() ? "" : ": ", facts);
}

std::string_view name_of(std::string_view device) { return device == "cpu" ? "the CPU" : device; }

std::string ranks_batch(std::string_view place, std::string_view device, std::uint32_t batch) {
  return format("{}: out of memory on {} with {} per rank", place, name_of(device), counted(batch, "sample"));
}

}  // namespace

bool is_out_of_memory(std::string_view error) {
  for (const std::string_view part :
       {"out of memory", "DefaultCPUAllocator: ", "std::bad_alloc", "STATUS_ALLOC_FAILED"}) {
    if (error.find(part) != error.npos) return true;
  }
  return false;
}

std::string memory_facts(std::string_view error) {
  std::string text;
  std::string_view wanted = between(error, "Tried to allocate ", ". ");
  if (const std::string_view bytes = between(error, "you tried to allocate ", " bytes"); !bytes.empty()) {
    std::uint64_t count = 0;
    if (parse_number(bytes, &count)) return format("{} more requested", rounded(ByteCount{count}));
  }
  if (wanted.size() > 24) wanted = {};  // not this sentence
  if (!wanted.empty()) text = format("{} more requested", wanted);
  const std::string_view total = between(error, " has a total capacity of ", kFreeBegin);
  const std::string_view free = between(error, kFreeBegin, " is free");
  if (!total.empty() && !free.empty())
    text += format("{}{} of {} free", text.empty() ? "" : ", ", free, total);
  return printable(text + other_processes(error));
}

SmallerBatch smaller_batch(std::uint32_t batch, std::uint32_t accumulate) {
  for (std::uint32_t divisor = 2; divisor <= kLargestDivisor; ++divisor) {
    if (batch % divisor == 0 && (batch / divisor > 1 || batch == 2))
      return {batch / divisor, accumulate * divisor, true};
  }
  return {std::max(1u, batch / 2), accumulate * 2, false};
}

Status step_memory_error(std::string_view place, std::string_view device, const TrainOptions& train,
                         std::string_view error) {
  Status status = memory_error(ranks_batch(place, device, train.batch), "train.batch", error);
  if (train.batch == 1) return std::move(status).cure("train.precision: bf16, or smaller images");
  const SmallerBatch smaller = smaller_batch(train.batch, train.accumulate);
  return std::move(status).cure(
      "train: {{batch: {}, accumulate: {}}} ({} step), or find what fits: stoker-train --find-batch",
      smaller.batch, smaller.accumulate, smaller.keeps_step ? "as many samples per" : "a smaller");
}

Status validation_memory_error(std::string_view place, std::string_view device, const TrainOptions& train,
                               std::string_view error) {
  return memory_error(ranks_batch(place, device, train.validation_batch), "train.validation_batch", error)
      .cure("train: {{validation_batch: {}}}", std::max(1u, train.validation_batch / 2));
}

Status model_memory_error(std::string_view device, std::string_view error) {
  return memory_error(format("out of memory on {} for the model and its optimizer", name_of(device)),
                      "train.model", error)
      .cure("{}", device == "cpu" ? "resources: {memory_per_node: 64GB}, or a smaller train.model"
                                  : "nvidia-smi to see other programs on the GPU, or a smaller train.model");
}

}  // namespace stoker::job
