#include "stoker/transform_options.h"

#include <cctype>

namespace stoker::image {
namespace {

using Numbers = std::vector<double>;

TransformOperation normalize(Numbers mean, Numbers deviation) {
  return {"normalize", {{"mean", std::move(mean)}, {"std", std::move(deviation)}}};
}
TransformOperation normalize_imagenet() { return normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}); }
TransformOperation normalize_cifar() { return normalize({0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}); }

using Maker = std::vector<TransformOperation> (*)();

// In alphabetical order: they are listed in messages and documentation.
const std::vector<std::pair<std::string_view, Maker>>& recipes() {
  static const std::vector<std::pair<std::string_view, Maker>> all = {
      {"cifar-eval",
       [] { return std::vector<TransformOperation>{{"center_crop", {{"size", 32.0}}}, normalize_cifar()}; }},
      {"cifar-train",
       [] {
         return std::vector<TransformOperation>{{"random_crop", {{"size", 32.0}, {"padding", 4.0}}},
                                                {"random_horizontal_flip"},
                                                normalize_cifar()};
       }},
      {"imagenet-eval",
       [] {
         return std::vector<TransformOperation>{
             {"resize", {{"size", 256.0}}}, {"center_crop", {{"size", 224.0}}}, normalize_imagenet()};
       }},
      {"imagenet-train",
       [] {
         return std::vector<TransformOperation>{
             {"random_resized_crop", {{"size", 224.0}}}, {"random_horizontal_flip"}, normalize_imagenet()};
       }},
  };
  return all;
}

struct ParameterText {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(double v) const { return format("{}", v); }
  std::string operator()(const std::string& v) const { return v; }
  std::string operator()(const Numbers& v) const {
    std::vector<std::string> parts;
    for (double number : v) parts.push_back(format("{}", number));
    return format("[{}]", join(parts, ", "));
  }
};

}  // namespace

std::string to_text(const TransformOperation& operation) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : operation.parameters)
    parts.push_back(name + "=" + std::visit(ParameterText(), value));
  return canonical_name(operation.name) + "(" + join(parts, ", ") + ")";
}

std::string canonical_name(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (std::isupper(c) && i > 0 && !std::isupper(static_cast<unsigned char>(name[i - 1]))) out += '_';
    out += static_cast<char>(std::tolower(c));
  }
  return out;
}

const std::vector<std::string_view>& recipe_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const auto& [name, make] : recipes()) all.push_back(name);
    return all;
  }();
  return names;
}

Result<std::vector<TransformOperation>> recipe(std::string_view name) {
  for (const auto& [known, make] : recipes()) {
    if (known == name) return make();
  }
  return invalid("transform: unknown recipe '{}'{}", name, suggestion(name, recipe_names()));
}

}  // namespace stoker::image
