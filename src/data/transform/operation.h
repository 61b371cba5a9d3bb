// The words a transform is written in: operations by name with parameters, and recipes, which are lists of
// operations with a name of their own. Names and parameters are torchvision's; docs/transforms.md has them
// all. Used by whoever configures a loader. Values; thread-compatible.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace stoker::data {

/// A parameter's value as a person writes it: true, 4, "bicubic" or [0.08, 1].
using Parameter = std::variant<bool, double, std::string, std::vector<double>>;

/// One step of a transform: {"random_crop", {{"size", 32.0}, {"padding", 4.0}}}.
struct Operation {
  /// torchvision's class name, as it is or in lower case: "RandomCrop", "random_crop".
  std::string name;
  std::map<std::string, Parameter> parameters = {};

  bool operator==(const Operation&) const = default;
};

/// "random_crop(padding=4, size=32)".
std::string to_text(const Operation& operation);
/// "RandomCrop" and "random_crop" are both "random_crop".
std::string canonical_name(std::string_view name);

/// "cifar-eval", "cifar-train", "imagenet-eval", "imagenet-train".
const std::vector<std::string_view>& recipe_names();
/// The operations of a recipe. Fails with Invalid, with a suggestion, for a name that is none.
Result<std::vector<Operation>> recipe(std::string_view name);

}  // namespace stoker::data
