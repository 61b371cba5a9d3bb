// Regression with a Gaussian process over model points: a Matérn 5/2 kernel with a length scale for each
// parameter; two choices are the same or differ. Rasmussen and Williams, Gaussian Processes for Machine
// Learning, chapters 2, 4 and 5. A GaussianProcess belongs to one thread.
#pragma once

#include <cstddef>
#include <vector>

#include "sweep/sampler/model_point.h"

namespace stoker::sweep {

/// Mean and standard deviation at a point.
struct Prediction {
  double mean = 0;
  double deviation = 1;
};

/// Time: n^3 for each of about 40 steps of fit(), n^2 for a prediction.
class GaussianProcess {
 public:
  explicit GaussianProcess(const Space& space);

  /// Learns length scales, signal and noise from points with standardized targets (mean 0, variance 1), by
  /// maximum a posteriori. REQUIRES: as many targets as points, at least one.
  void fit(std::vector<ModelPoint> points, std::vector<double> targets);
  /// Adds points whose value is not known yet, with the mean that is expected there ("kriging believer",
  /// Ginsbourger et al., 2010).
  void add_expected(const std::vector<ModelPoint>& points);
  Prediction predict(const ModelPoint& point) const;

 private:
  // Logarithms of: the inverse squared length scale of each parameter, signal variance, noise variance.
  using Logs = std::vector<double>;
  // Row-major, n x n.
  using Matrix = std::vector<double>;

  double squared_part(std::size_t dimension, double a, double b) const;
  void set_parts();
  Matrix squared_distances(const Logs& logs) const;
  // The negative logarithm of the posterior, and its gradient.
  double loss(const Logs& logs, Logs& gradient) const;
  Logs fitted_logs() const;
  // Factorizes the kernel matrix for logs_.
  void factorize();
  static bool factorize(Matrix& matrix, std::size_t n);
  static void solve(const Matrix& factor, std::vector<double>& vector);

  std::vector<bool> is_choice_;
  std::size_t dimensions_;
  std::vector<ModelPoint> points_;
  std::vector<double> targets_;
  std::vector<Matrix> parts_;  // of the squared distance, for each dimension
  Logs logs_;
  std::vector<double> scales_;  // inverse squared lengths
  Matrix factor_;
  std::vector<double> coefficients_;
};

}  // namespace stoker::sweep
