#include <string>
#include <string_view>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include "base/file.h"
#include "stoker/exceptions.h"
#include "stoker/model.h"

namespace stoker::train {
namespace {

// The mean of each channel times a matrix, as torch.jit would save it; `body` is the result of forward().
void save_net(const Path& file, std::string_view body = "x.mean([2, 3]).matmul(self.weight) * self.scale") {
  ::torch::jit::Module net("Net");
  net.register_attribute("training", c10::BoolType::get(), true);
  net.register_parameter("weight", at::ones({3, 4}).set_requires_grad(true), /*is_buffer=*/false);
  net.register_parameter("scale", at::ones({1}).mul(2), /*is_buffer=*/false);
  net.attr("scale").toTensor().set_requires_grad(false);
  net.register_buffer("seen", at::zeros({1}));
  net.define("def forward(self, x):\n  if self.training:\n    self.seen.add_(1)\n  return " +
             std::string(body) + "\n");
  net.save(file.string());
}

ModelSpec spec_of(const Path& file, std::int64_t classes = 4) {
  ModelSpec spec{.name = "torchscript", .classes = classes};
  spec.file = file;
  return spec;
}

TEST(ScriptModel, trains_parameters_that_require_grad) {
  const TempDirectory folder;
  save_net(folder / "net.pt");
  auto made = make_model(spec_of(folder / "net.pt"));
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  Model& model = **made;
  ASSERT_EQ(model.state().parameters.size(), 1u);
  EXPECT_EQ(model.state().parameters[0].name, "weight");
  ASSERT_EQ(model.state().buffers.size(), 2u);
  EXPECT_EQ(model.state().buffers[0].name, "scale");
  EXPECT_EQ(model.state().buffers[1].name, "seen");
  const at::Tensor logits = model.forward(at::ones({2, 3, 5, 5}));
  EXPECT_EQ(logits.sizes(), at::IntArrayRef({2, 4}));
  EXPECT_EQ(logits[0][0].item<float>(), 6);
  logits.sum().backward();
  EXPECT_EQ(model.state().parameters[0].tensor.grad()[0][0].item<float>(), 4);
}

TEST(ScriptModel, follows_the_mode) {
  const TempDirectory folder;
  save_net(folder / "net.pt");
  auto model = *make_model(spec_of(folder / "net.pt"));
  const auto seen = [&] { return model->state().buffers[1].tensor.item<float>(); };
  const at::Tensor images = at::ones({2, 3, 5, 5});
  model->forward(images);
  EXPECT_EQ(seen(), 1);
  model->set_mode(Mode::evaluate);
  model->forward(images);
  EXPECT_EQ(seen(), 1);
  model->set_mode(Mode::train);
  model->forward(images);
  EXPECT_EQ(seen(), 2);
}

TEST(ScriptModel, invalid_file_is_rejected) {
  const TempDirectory folder;
  const std::string subject = format("train.file: {}", (folder / "net.pt").string());
  EXPECT_EQ(make_model(spec_of(folder / "net.pt")).status().to_string(), subject + ": no such file");
  ASSERT_TRUE(write_file(folder / "net.pt", "weights?").ok());
  EXPECT_EQ(
      make_model(spec_of(folder / "net.pt")).status().to_string(),
      subject +
          ": is not a file written by torch.jit.save\n  try: torch.jit.script(model).save(\"model.pt\") "
          "in Python");
}

TEST(ScriptModel, output_other_than_logits_is_an_error) {
  const TempDirectory folder;
  const std::string subject = format("train.file: {}", (folder / "net.pt").string());
  const auto answer = [&](std::int64_t classes) {
    return catch_exceptions(Code::internal, "pass", [&] {
      (*make_model(spec_of(folder / "net.pt", classes)))->forward(at::ones({2, 3, 5, 5}));
    });
  };
  save_net(folder / "net.pt");
  EXPECT_EQ(
      answer(5).message(),
      "pass: " + subject + ": forward() returns 2x4 for 2 images, not 2 x at least 5 logits (train.classes)");
  save_net(folder / "net.pt", "x.mean()");
  EXPECT_EQ(answer(4).message(),
            "pass: " + subject +
                ": forward() returns no dimension for 2 images, not 2 x at least 4 logits (train.classes)");
  save_net(folder / "net.pt", "(x, x)");
  EXPECT_EQ(answer(4).message(), "pass: " + subject + ": forward() returns Tuple, not a tensor of logits");
}

}  // namespace
}  // namespace stoker::train
