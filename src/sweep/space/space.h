// The space of a sweep: its parameters, when each is active, and the constraints between them. Samplers see a
// point as coordinates (one number for each parameter), all others as values. Immutable after create();
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stoker/status.h"
#include "sweep/space/expression.h"

namespace stoker::sweep {

/// Numbers from `low` to `high`, both included.
struct NumberRange {
  double low = 0;
  double high = 1;
  bool is_integer = false;  ///< whole numbers; `step` is 1 unless set
  bool is_log = false;      ///< uniform in the logarithm. `low` > 0, and no step except 1
  double step = 0;          ///< low, low + step, ...: 0 for any number
};

/// One of some values, without an order.
struct Choices {
  std::vector<Value> values;  ///< at least one, no two equal
};

/// The parameter is active only while another has one of these values.
struct Activation {
  std::string parameter;
  std::vector<Value> values;
};

/// One dimension of the space.
struct Parameter {
  std::string name;  ///< a key of the job file ("train.optimizer.lr") or of its `params`
  std::variant<NumberRange, Choices> domain;
  std::optional<Activation> when;
};

/// One number for each parameter, in the order of the space: a number of a range, the index of a choice, or
/// kInactive.
using Coordinates = std::vector<double>;
inline constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();

/// Values of the active parameters, in the order of the space.
using Assignment = std::vector<std::pair<std::string, Value>>;

/// "lr=0.1 kind=sgd".
std::string to_text(const Assignment& values);

/// Parameters and constraints that were checked.
class Space {
 public:
  /// An empty space: one point without parameters.
  Space() = default;
  /// Fails with Invalid when a name repeats, a domain is empty or not finite, a condition names an unknown
  /// parameter, a value that it cannot have or itself in a circle, or a constraint names an unknown
  /// parameter.
  static Result<Space> create(std::vector<Parameter> parameters, std::vector<Expression> constraints = {});

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Expression>& constraints() const { return constraints_; }
  /// The index of the parameter with this name.
  std::optional<std::size_t> find(std::string_view name) const;
  /// Parameter indices in an order in which a condition's parameter comes before its dependents.
  const std::vector<std::size_t>& order() const { return order_; }

  /// Whether the parameter's condition is met by the coordinates of the parameters before it in order().
  bool is_active(std::size_t parameter, const Coordinates& point) const;
  /// Whether all constraints hold. A constraint about an inactive parameter holds.
  bool is_feasible(const Coordinates& point) const;
  /// Sets inactive coordinates to kInactive and moves all other coordinates to values that the domain has.
  Coordinates normalized(Coordinates point) const;

  /// The values of a point's active parameters.
  Assignment decode(const Coordinates& point) const;
  /// The coordinates of an assignment. A parameter that is missing or inactive becomes kInactive. Invalid for
  /// an unknown name, and for a value outside the domain.
  Result<Coordinates> encode(const Assignment& values) const;

  /// The number of points, or nullopt if a parameter has infinitely many values or there are over 10^9.
  std::optional<std::uint64_t> count() const;

 private:
  std::vector<Parameter> parameters_;
  std::vector<Expression> constraints_;
  std::vector<std::size_t> order_;
};

/// Equal in each coordinate; kInactive equals itself.
bool is_same_point(const Coordinates& a, const Coordinates& b);

/// The number of values, or nullopt if infinitely many.
std::optional<std::uint64_t> value_count(const Parameter& parameter);

/// The part of a domain where its density is uniform: the number's logarithm for a log range, widened by half
/// a step on both sides for whole numbers and steps, so that each value gets the same share.
struct DensityInterval {
  double low = 0;
  double high = 1;
};
DensityInterval density_interval(const NumberRange& range);
/// The number of the range that is nearest to a position in its interval.
double number_at(const NumberRange& range, double position);
/// The position of a number in its interval.
double position_of(const NumberRange& range, double number);

}  // namespace stoker::sweep
