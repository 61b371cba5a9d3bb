// The Stoker side of bench/checkpoint_vs_torch.py: holds 2405 tensors, and for every line on standard input
// saves them once as one rank and prints "<stall seconds> <seconds until committed and synced>".
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "checkpoint/checkpoint.h"

namespace {

using namespace stoker;

// `count` tensors of `bytes` together, the same sizes as the Python side has.
std::vector<TensorView> views_into(std::vector<float>& memory, std::size_t count) {
  std::vector<TensorView> views;
  const std::size_t each = memory.size() / count / 64;
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<float> part = std::span(memory).subspan(i * each * 64, each * 64);
    views.push_back({format("layer{}.weight", i),
                     DType::f32,
                     {static_cast<std::int64_t>(each), 64},
                     std::as_bytes(part)});
  }
  return views;
}

int run(const char* directory, std::size_t bytes) {
  std::vector<float> memory(bytes / sizeof(float));
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i * 2654435761u % 1000003u);
  checkpoint::Contents contents;
  contents.parameters = views_into(memory, 2405);
  checkpoint::SaverOptions options{.directory = directory, .run = "bench", .writer = "1", .keep = 1};
  auto saver = checkpoint::Saver::create(options);
  if (!saver.ok()) return std::fprintf(stderr, "%s\n", saver.error().to_string().c_str()), 1;
  if (Status status = (*saver)->reserve(contents); !status.ok()) return 1;
  std::string line;
  for (std::int64_t step = 1; std::getline(std::cin, line); ++step) {
    contents.step = Step{step};
    Stopwatch watch;
    Status status = (*saver)->save(contents);
    const double stall = watch.seconds();
    if (status.ok()) status = (*saver)->wait(Deadline::after(std::chrono::minutes(5)));
    if (!status.ok()) return std::fprintf(stderr, "%s\n", status.to_string().c_str()), 1;
    std::printf("%.6f %.6f\n", stall, watch.seconds());
    std::fflush(stdout);
  }
  return (*saver)->finish(Deadline::after(std::chrono::minutes(5))).ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t bytes = 0;
  if (argc != 3 || !stoker::parse_number(argv[2], &bytes)) {
    std::fprintf(stderr, "usage: checkpoint_vs_torch_bench DIRECTORY BYTES\n");
    return 2;
  }
  return run(argv[1], bytes);
}
