// A critic that predicts quantiles of the return by quantile regression, raw or in units of its standard deviation.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linear_critic.hpp"

namespace surefoot {
namespace {

constexpr double kEpsilon = 1e-12;

class QuantileCritic final : public LinearCritic {
 public:
  QuantileCritic(const PartPlan& plan, const Kernels& kernels)
      : LinearCritic(plan, plan.count("num_quantiles"), kernels),
        size_(prediction_size()),
        kappa_(static_cast<float>(plan.number("kappa"))),
        clip_(plan.text("clip")) {
    if (kappa_ < 0) plan.refuse("kappa", "must not be negative");
    if (clip_ != "quantiles" && clip_ != "mean" && clip_ != "mean_and_spread") plan.refuse("clip", "is unknown");
    for (std::size_t i = 0; i < size_; ++i) {
      tau_.push_back((static_cast<float>(i) + 0.5f) / static_cast<float>(size_));
    }
  }

  void value(std::size_t rows, MatrixView prediction, float* value) const override {
    for (std::size_t row = 0; row < rows; ++row) {
      value[row] = static_cast<float>(mean_of(prediction.data + row * prediction.stride)) * scale() + shift();
    }
  }

  void loss(const LearnedRows& rows, const ValueTargets& targets, float* loss,
            const GivenGradient& out) const override {
    const Units units = units_of(rows);
    Row row{.old = rows.scratch.floats(1, size_),
            .clipped = rows.scratch.floats(2, size_),
            .loss = rows.scratch.floats(3, size_),
            .clipped_loss = rows.scratch.floats(4, size_),
            .clipped_slope = rows.scratch.floats(5, size_)};
    const MatrixView given = rows.given[0];
    for (std::size_t i = 0; i < rows.count; ++i) {
      row.quantiles = given.data + i * given.stride;
      row.target = units.encoded(targets.returns[i]);
      row.slope = out.given[0] + i * given.stride;
      if (targets.clip == std::numeric_limits<float>::infinity()) {
        loss[i] = static_cast<float>(regress(row.quantiles, row.target, row.loss, row.slope));
      } else {
        const float* const old = targets.old_prediction.data + i * targets.old_prediction.stride;
        for (std::size_t k = 0; k < size_; ++k) row.old[k] = units.encoded(old[k]);
        loss[i] = static_cast<float>(clip_ == "quantiles" ? clip_quantiles(row, targets.clip)
                                                          : clip_whole(row, targets.clip));
      }
    }
    leave_statistics(rows.count, out);
  }

 private:
  /// One sample, in the units of the prediction; `loss` and `slope` have one element per quantile.
  struct Row {
    float *old, *clipped, *loss, *clipped_loss, *clipped_slope;
    const float* quantiles = nullptr;
    float target = 0;
    float* slope = nullptr;
  };

  double mean_of(const float* numbers) const {
    double sum = 0;
    for (std::size_t i = 0; i < size_; ++i) sum += static_cast<double>(numbers[i]);
    return sum / static_cast<double>(size_);
  }

  double spread_of(const float* quantiles, double mean) const {
    double sum = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      const double deviation = static_cast<double>(quantiles[i]) - mean;
      sum += deviation * deviation;
    }
    return std::sqrt(sum / static_cast<double>(size_) + kEpsilon);
  }

  /// Returns the mean loss; `loss` is per quantile, and `slope` is the derivative of the mean by each quantile.
  double regress(const float* quantiles, float target, float* loss, float* slope) const {
    const float share = 1.0f / static_cast<float>(size_);
    const double sum = kernels_.quantile_huber({size_, tau_.data(), quantiles, target, kappa_, share, loss, slope});
    return sum / static_cast<double>(size_);
  }

  /// The larger of two losses and its derivative; the mean of both where they are equal, as in torch.
  static void take_larger(float other_loss, float other_slope, float& loss, float& slope) {
    if (loss > other_loss) return;
    slope = loss < other_loss ? other_slope : 0.5f * slope + 0.5f * other_slope;
    loss = loss < other_loss ? other_loss : loss + (other_loss - other_loss);  // a NaN in other_loss shows
  }

  double clip_quantiles(const Row& row, float clip) const {
    for (std::size_t i = 0; i < size_; ++i) {
      row.clipped[i] = row.old[i] + std::clamp(row.quantiles[i] - row.old[i], -clip, clip);
    }
    regress(row.quantiles, row.target, row.loss, row.slope);
    regress(row.clipped, row.target, row.clipped_loss, row.clipped_slope);
    for (std::size_t i = 0; i < size_; ++i) {
      const float change = row.quantiles[i] - row.old[i];
      const float passes = change >= -clip && change <= clip ? 1.0f : 0.0f;
      take_larger(row.clipped_loss[i], row.clipped_slope[i] * passes, row.loss[i], row.slope[i]);
    }
    return mean_of(row.loss);
  }

  /// Clips the distribution as a whole: its mean moves by at most `clip` and, with `mean_and_spread`, its standard
  /// deviation, too.
  double clip_whole(const Row& row, float clip) const {
    const double limit = clip, count = static_cast<double>(size_);
    const double mean = mean_of(row.quantiles), old_mean = mean_of(row.old);
    const bool is_moved = std::abs(mean - old_mean) > limit;
    const double moved = is_moved ? old_mean + std::clamp(mean - old_mean, -limit, limit) : mean;
    double ratio = 1, spread = 1;
    bool is_spread = false;
    if (clip_ == "mean_and_spread") {
      spread = spread_of(row.quantiles, mean);
      const double old_spread = spread_of(row.old, old_mean);
      is_spread = std::abs(spread - old_spread) > limit;
      if (is_spread) ratio = std::max(old_spread + std::clamp(spread - old_spread, -limit, limit), 0.0) / spread;
    }
    for (std::size_t i = 0; i < size_; ++i) {
      row.clipped[i] = static_cast<float>(moved + (static_cast<double>(row.quantiles[i]) - mean) * ratio);
    }
    const double loss = regress(row.quantiles, row.target, row.loss, row.slope);
    const double clipped_loss = regress(row.clipped, row.target, row.clipped_loss, row.clipped_slope);
    double sum = 0, along = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      sum += static_cast<double>(row.clipped_slope[i]);
      along += static_cast<double>(row.clipped_slope[i]) * (static_cast<double>(row.quantiles[i]) - mean);
    }
    const double by_mean = (is_moved ? 0 : sum) / count - ratio * sum / count;
    const double by_spread = is_spread ? along * ratio / (spread * spread * count) : 0;
    for (std::size_t i = 0; i < size_; ++i) {
      const double deviation = static_cast<double>(row.quantiles[i]) - mean;
      const double slope = ratio * static_cast<double>(row.clipped_slope[i]) + by_mean - by_spread * deviation;
      if (clipped_loss > loss) row.slope[i] = static_cast<float>(slope);
      if (clipped_loss == loss)
        row.slope[i] = static_cast<float>(0.5 * static_cast<double>(row.slope[i]) + 0.5 * slope);
    }
    return clipped_loss <= loss ? loss : clipped_loss;
  }

  std::size_t size_;
  float kappa_;
  std::string clip_;
  std::vector<float> tau_;
};

const RegisteredPart<Critic, QuantileCritic> kQuantile{"quantile"};

}  // namespace
}  // namespace surefoot
