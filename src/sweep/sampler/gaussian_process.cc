#include "sweep/sampler/gaussian_process.h"

#include <algorithm>
#include <cmath>

namespace stoker::sweep {

namespace {

// Normal priors of the logarithms. An inverse squared length of e^2 is a length of 0.37 of a range.
struct LogPrior {
  double mean;
  double deviation;
};
constexpr LogPrior kScalePrior = {2, 1.5};
constexpr LogPrior kSignalPrior = {0, 1};
constexpr LogPrior kNoisePrior = {-7, 2};
constexpr double kLeastNoise = 1e-6;
constexpr int kSteps = 40;
constexpr double kLimit = 9;  // of a logarithm
constexpr double kNoLoss = 1e300;

double matern(double squared) {
  const double r = std::sqrt(5 * squared);
  return (1 + r + r * r / 3) * std::exp(-r);
}
// The derivative by the squared distance.
double matern_slope(double squared) {
  const double r = std::sqrt(5 * squared);
  return -5.0 / 6 * (1 + r) * std::exp(-r);
}

double prior_loss(const LogPrior& prior, double value, double& gradient) {
  const double z = (value - prior.mean) / prior.deviation;
  gradient += z / prior.deviation;
  return 0.5 * z * z;
}

}  // namespace

GaussianProcess::GaussianProcess(const Space& space) : dimensions_(space.parameters().size()) {
  for (const Parameter& parameter : space.parameters())
    is_choice_.push_back(std::holds_alternative<Choices>(parameter.domain));
}

// An inactive parameter is as far from any value as two choices are.
double GaussianProcess::squared_part(std::size_t dimension, double a, double b) const {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : 1;
  if (is_choice_[dimension]) return a == b ? 0 : 1;
  return (a - b) * (a - b);
}

void GaussianProcess::set_parts() {
  const std::size_t n = points_.size();
  parts_.assign(dimensions_, Matrix(n * n));
  for (std::size_t d = 0; d < dimensions_; ++d) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j)
        parts_[d][i * n + j] = squared_part(d, points_[i][d], points_[j][d]);
    }
  }
}

GaussianProcess::Matrix GaussianProcess::squared_distances(const Logs& logs) const {
  Matrix squared(points_.size() * points_.size(), 0);
  for (std::size_t d = 0; d < dimensions_; ++d) {
    const double scale = std::exp(logs[d]);
    for (std::size_t i = 0; i < squared.size(); ++i) squared[i] += scale * parts_[d][i];
  }
  return squared;
}

// Cholesky: the lower triangle becomes L with L Lᵀ = matrix. False if it is not positive definite.
bool GaussianProcess::factorize(Matrix& matrix, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = &matrix[i * n];
    for (std::size_t j = 0; j < i; ++j) {
      const double* const other = &matrix[j * n];
      double sum = row[j];
      for (std::size_t k = 0; k < j; ++k) sum -= row[k] * other[k];
      row[j] = sum / other[j];
    }
    double diagonal = row[i];
    for (std::size_t k = 0; k < i; ++k) diagonal -= row[k] * row[k];
    if (!(diagonal > 1e-14)) return false;
    row[i] = std::sqrt(diagonal);
  }
  return true;
}

// vector = (L Lᵀ)⁻¹ vector.
void GaussianProcess::solve(const Matrix& factor, std::vector<double>& vector) {
  const std::size_t n = vector.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) vector[i] -= factor[i * n + k] * vector[k];
    vector[i] /= factor[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    vector[i] /= factor[i * n + i];
    for (std::size_t k = 0; k < i; ++k) vector[k] -= factor[i * n + k] * vector[i];
  }
}

// Equations 5.8 and 5.9 of the book.
double GaussianProcess::loss(const Logs& logs, Logs& gradient) const {
  const std::size_t n = points_.size();
  const double signal = std::exp(logs[dimensions_]);
  const double noise = std::exp(logs[dimensions_ + 1]);
  const Matrix squared = squared_distances(logs);
  Matrix factor(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) factor[i * n + j] = signal * matern(squared[i * n + j]);
    factor[i * n + i] = signal + noise + kLeastNoise;
  }
  if (!factorize(factor, n)) return kNoLoss;
  std::vector<double> coefficients = targets_;
  solve(factor, coefficients);
  double loss = 0;
  for (std::size_t i = 0; i < n; ++i)
    loss += 0.5 * targets_[i] * coefficients[i] + std::log(factor[i * n + i]);

  // The inverse of the kernel matrix from that of its factor; lower triangles.
  Matrix inverse_factor(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = &inverse_factor[i * n];
    for (std::size_t m = 0; m < i; ++m) {
      const double weight = factor[i * n + m];
      for (std::size_t j = 0; j <= m; ++j) row[j] -= weight * inverse_factor[m * n + j];
    }
    for (std::size_t j = 0; j < i; ++j) row[j] /= factor[i * n + i];
    row[i] = 1 / factor[i * n + i];
  }
  Matrix inverse(n * n, 0);
  for (std::size_t m = 0; m < n; ++m) {
    const double* const row = &inverse_factor[m * n];
    for (std::size_t i = 0; i <= m; ++i) {
      for (std::size_t j = 0; j <= i; ++j) inverse[i * n + j] += row[i] * row[j];
    }
  }
  gradient.assign(dimensions_ + 2, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const double diagonal = 0.5 * (inverse[i * n + i] - coefficients[i] * coefficients[i]);
    gradient[dimensions_] += diagonal * signal;
    gradient[dimensions_ + 1] += diagonal * noise;
    for (std::size_t j = 0; j < i; ++j) {
      const double weight = inverse[i * n + j] - coefficients[i] * coefficients[j];
      gradient[dimensions_] += weight * signal * matern(squared[i * n + j]);
      const double slope = weight * signal * matern_slope(squared[i * n + j]);
      for (std::size_t d = 0; d < dimensions_; ++d)
        gradient[d] += slope * parts_[d][i * n + j] * std::exp(logs[d]);
    }
  }
  for (std::size_t d = 0; d < dimensions_; ++d) loss += prior_loss(kScalePrior, logs[d], gradient[d]);
  loss += prior_loss(kSignalPrior, logs[dimensions_], gradient[dimensions_]);
  return loss + prior_loss(kNoisePrior, logs[dimensions_ + 1], gradient[dimensions_ + 1]);
}

// Descent by the signs of the gradient, with a step for each logarithm (Rprop; Riedmiller and Braun, 1993).
GaussianProcess::Logs GaussianProcess::fitted_logs() const {
  Logs logs(dimensions_, kScalePrior.mean);
  logs.push_back(kSignalPrior.mean);
  logs.push_back(kNoisePrior.mean);
  Logs best = logs;
  double best_loss = kNoLoss;
  Logs gradient;
  Logs previous(logs.size(), 0);
  std::vector<double> steps(logs.size(), 0.3);
  for (int step = 0; step < kSteps; ++step) {
    const double current = loss(logs, gradient);
    if (current >= kNoLoss) {
      logs = best;
      for (double& size : steps) size *= 0.3;
      continue;
    }
    if (current < best_loss) {
      best_loss = current;
      best = logs;
    }
    for (std::size_t i = 0; i < logs.size(); ++i) {
      const double agreement = gradient[i] * previous[i];
      previous[i] = gradient[i];
      if (agreement > 0) steps[i] = std::min(steps[i] * 1.3, 1.0);
      if (agreement < 0) {
        steps[i] = std::max(steps[i] * 0.5, 1e-3);
        previous[i] = 0;
        continue;
      }
      if (gradient[i] != 0) logs[i] -= std::copysign(steps[i], gradient[i]);
      logs[i] = std::clamp(logs[i], -kLimit, kLimit);
    }
  }
  return best;
}

void GaussianProcess::factorize() {
  const std::size_t n = points_.size();
  set_parts();
  const Matrix squared = squared_distances(logs_);
  const double signal = std::exp(logs_[dimensions_]);
  const double noise = std::exp(logs_[dimensions_ + 1]) + kLeastNoise;
  for (double jitter = 0;; jitter = jitter == 0 ? 1e-8 : 10 * jitter) {
    factor_.assign(n * n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) factor_[i * n + j] = signal * matern(squared[i * n + j]);
      factor_[i * n + i] = signal + noise + jitter;
    }
    if (factorize(factor_, n)) break;
  }
  coefficients_ = targets_;
  solve(factor_, coefficients_);
}

void GaussianProcess::fit(std::vector<ModelPoint> points, std::vector<double> targets) {
  points_ = std::move(points);
  targets_ = std::move(targets);
  set_parts();
  logs_ = fitted_logs();
  scales_.clear();
  for (std::size_t d = 0; d < dimensions_; ++d) scales_.push_back(std::exp(logs_[d]));
  factorize();
}

void GaussianProcess::add_expected(const std::vector<ModelPoint>& points) {
  if (points.empty()) return;
  std::vector<double> expected;
  for (const ModelPoint& point : points) expected.push_back(predict(point).mean);
  points_.insert(points_.end(), points.begin(), points.end());
  targets_.insert(targets_.end(), expected.begin(), expected.end());
  factorize();
}

Prediction GaussianProcess::predict(const ModelPoint& point) const {
  const std::size_t n = points_.size();
  const double signal = std::exp(logs_[dimensions_]);
  std::vector<double> kernel(n);
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double squared = 0;
    for (std::size_t d = 0; d < dimensions_; ++d)
      squared += scales_[d] * squared_part(d, point[d], points_[i][d]);
    kernel[i] = signal * matern(squared);
    mean += kernel[i] * coefficients_[i];
  }
  double variance = signal;
  for (std::size_t i = 0; i < n; ++i) {
    double sum = kernel[i];
    for (std::size_t k = 0; k < i; ++k) sum -= factor_[i * n + k] * kernel[k];
    kernel[i] = sum / factor_[i * n + i];
    variance -= kernel[i] * kernel[i];
  }
  return {mean, std::sqrt(std::max(variance, 1e-12))};
}

}  // namespace stoker::sweep
