// Sampling and log-probabilities, one row per lane.
#pragma once

#include "math.hpp"
#include "surefoot/kernels.hpp"

namespace surefoot {
namespace {

constexpr float kHalfLogTwoPi = 0.918938533204672742f;
constexpr float kLogTwo = 0.693147180559945309f;
constexpr float kForbidden = -3.4028234663852886e38f;  // the lowest float
constexpr float kNever = -1e4f;                        // logit of a masked yes

/// A range of rows from `first` on, at most one per lane.
struct LaneRows {
  std::size_t first;
  std::size_t count;

  Vector gather(MatrixView from, std::size_t column, float fill) const {
    return surefoot::gather(from.data + first * from.stride + column, from.stride, count, fill);
  }
};

template <typename Function>
SUREFOOT_INLINE void for_lanes(std::size_t rows, Function function) {
  for (std::size_t first = 0; first < rows; first += kLanes) {
    function(LaneRows{first, rows - first < kLanes ? rows - first : kLanes});
  }
}

/// log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2u)), without cancellation.
SUREFOOT_INLINE Vector log_det_tanh(Vector u) { return 2.0f * (kLogTwo - u - softplus(-2.0f * u)); }

void gaussian(const GaussianBlock& block) {
  for_lanes(block.rows, [&](LaneRows rows) {
    Vector squares = all(0.0f);
    Vector log_scale = all(0.0f);
    Vector log_det = all(0.0f);
    for (std::size_t j = 0; j < block.size; ++j) {
      const Vector mean = rows.gather(block.mean, j, 0.0f);
      const Vector std = rows.gather(block.std, j, 1.0f);
      const Vector action = fma(std, rows.gather(block.noise, j, 0.0f), mean);
      const Vector distance = (action - mean) / std;
      squares = fma(distance, distance, squares);  // rounded as in evaluate_gaussian, so that the first ratios are 1
      log_scale += log(std) + kHalfLogTwoPi;
      if (block.squash) log_det += log_det_tanh(action);
      scatter(block.action + rows.first * block.size + j, block.size, rows.count, action);
    }
    scatter(block.log_prob + rows.first, 1, rows.count, -0.5f * squares - log_scale - log_det);
  });
}

/// The values of one logit, and `forbidden` in rows whose mask forbids it; the mask is [rows, mask_size] or null.
SUREFOOT_INLINE Vector masked(Vector values, float forbidden, const bool* mask, std::size_t mask_size, LaneRows rows,
                              std::size_t column) {
  if (!mask) return values;
  const bool* const allowed = mask + rows.first * mask_size + column;
  for (std::size_t lane = 0; lane < rows.count; ++lane) {
    if (!allowed[lane * mask_size]) values[lane] = forbidden;
  }
  return values;
}

/// Copies the logits of one element, choice i to `to` + i * kLanes, and finds the largest of each row.
SUREFOOT_INLINE Vector take_logits(MatrixView logits, const bool* mask, std::size_t mask_size, LaneRows rows,
                                   std::size_t offset, std::size_t choices, float* to) {
  Vector largest = all(-kInfinity);
  for (std::size_t i = 0; i < choices; ++i) {
    const Vector given = rows.gather(logits, offset + i, 0.0f);
    const Vector logit = masked(given, kForbidden, mask, mask_size, rows, offset + i);
    store(to + i * kLanes, logit);
    largest = at_least(logit, largest);
  }
  return largest;
}

/// Converts logits to log-probabilities in place and returns the sum of the probabilities.
SUREFOOT_INLINE Vector log_softmax(float* logits, std::size_t choices, Vector largest) {
  Vector sum = all(0.0f);
  for (std::size_t i = 0; i < choices; ++i) sum += exp(load(logits + i * kLanes) - largest);
  const Vector log_sum = log(sum);
  Vector total = all(0.0f);
  for (std::size_t i = 0; i < choices; ++i) {
    const Vector log_prob = load(logits + i * kLanes) - largest - log_sum;
    store(logits + i * kLanes, log_prob);
    total += exp(log_prob);
  }
  return total;
}

struct Choice {
  Vector index;
  Vector log_prob;
};

/// Counts the cumulative probabilities up to the threshold: the index of the first choice above it, which never has
/// probability 0.
SUREFOOT_INLINE Choice inverse_cdf(const float* log_probs, std::size_t choices, Vector threshold) {
  Vector cumulative = all(0.0f);
  Choice chosen{all(0.0f), load(log_probs)};
  for (std::size_t i = 0; i + 1 < choices; ++i) {
    cumulative += exp(load(log_probs + i * kLanes));
    const IntVector passed = cumulative <= threshold;
    chosen.index += select(passed, all(1.0f), all(0.0f));
    chosen.log_prob = select(passed, load(log_probs + (i + 1) * kLanes), chosen.log_prob);
  }
  return chosen;
}

SUREFOOT_INLINE void write_choice(const ChoiceBlock& block, LaneRows rows, std::size_t element, Vector index) {
  std::int64_t* const to = block.choice + rows.first * block.count + element;
  for (std::size_t i = 0; i < rows.count; ++i) to[i * block.count] = static_cast<std::int64_t>(index[i]);
}

void categorical(const ChoiceBlock& block) {
  std::size_t mask_size = 0;
  for (std::size_t element = 0; element < block.count; ++element) {
    mask_size += static_cast<std::size_t>(block.sizes[element]);
  }
  for_lanes(block.rows, [&](LaneRows rows) {
    Vector log_prob = all(0.0f);
    std::size_t offset = 0;
    for (std::size_t element = 0; element < block.count; ++element) {
      const std::size_t choices = static_cast<std::size_t>(block.sizes[element]);
      const Vector largest = take_logits(block.logits, block.mask, mask_size, rows, offset, choices, block.scratch);
      const Vector total = log_softmax(block.scratch, choices, largest);
      const Vector threshold = rows.gather(block.noise, element, 0.0f) * total;
      const Choice chosen = inverse_cdf(block.scratch, choices, threshold);
      write_choice(block, rows, element, chosen.index);
      log_prob += chosen.log_prob;
      offset += choices;
    }
    scatter(block.log_prob + rows.first, 1, rows.count, log_prob);
  });
}

void bernoulli(const ChoiceBlock& block) {
  for_lanes(block.rows, [&](LaneRows rows) {
    Vector log_prob = all(0.0f);
    for (std::size_t element = 0; element < block.count; ++element) {
      const Vector given = rows.gather(block.logits, element, 0.0f);
      const Vector logit = masked(given, kNever, block.mask, block.count, rows, element);
      const IntVector yes = rows.gather(block.noise, element, 0.0f) < sigmoid(logit);
      write_choice(block, rows, element, select(yes, all(1.0f), all(0.0f)));
      log_prob -= softplus(select(yes, -logit, logit));  // log sigmoid(x) = -softplus(-x)
    }
    scatter(block.log_prob + rows.first, 1, rows.count, log_prob);
  });
}

}  // namespace
}  // namespace surefoot
