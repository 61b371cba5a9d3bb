// Saves checkpoints for other readers: tests/test_checkpoint.py opens them in Python. STOKER_EXPORT names the
// output folder. Without it the test only checks them in a temporary folder.
#include <gtest/gtest.h>

#include "base/process.h"
#include "checkpoint/sandbox.h"

namespace stoker::checkpoint {
namespace {

// <folder>/expected/<name>: raw bytes of each tensor; <folder>/expected/list: name, dtype, sizes.
void write_expected(const Path& folder, const ToyModel& model) {
  ASSERT_TRUE(make_directories(folder).ok());
  std::string list;
  StepContents contents = model.contents(Step{0});
  const auto add = [&](const std::vector<TensorView>& views, const char* part) {
    for (const TensorView& view : views) {
      const std::string_view bytes(reinterpret_cast<const char*>(view.data.data()), view.data.size());
      ASSERT_TRUE(write_file(folder / view.name, bytes).ok());
      list += format("{} {} {}", part, view.name, to_text(view.dtype));
      for (const std::int64_t size : view.shape) list += format(" {}", size);
      list += "\n";
    }
  };
  add(contents.buffers, "model");
  add(contents.parameters, "model");
  add(contents.optimizer, "optimizer");
  ASSERT_TRUE(write_file(folder / "list", list).ok());
}

TEST(Export, steps_of_one_two_and_three_ranks) {
  const TempDirectory temporary;
  const Path folder = environment_value("STOKER_EXPORT").value_or(temporary.path().string());
  for (const int world : {1, 2, 3}) {
    const Sandbox box(folder / format("world-{}", world));
    box.save_well(world, {100, 200});
    EXPECT_EQ(box.list(Depth::bytes), "100 valid, 200 valid");
  }
  write_expected(folder / "expected", ToyModel(20000));
}

}  // namespace
}  // namespace stoker::checkpoint
