// Evaluation and gradients of heads, one row per lane.
#pragma once

#include "heads.hpp"
#include "lanes.hpp"
#include "surefoot/head_steps.hpp"

namespace surefoot {
namespace {

/// One number per row.
SUREFOOT_INLINE Vector by_row(const float* values, LaneRows rows) {
  return rows.count == kLanes ? load(values + rows.first) : gather(values + rows.first, 1, rows.count, 0.0f);
}

/// Column j of a matrix that may be the same for all rows.
SUREFOOT_INLINE Vector shared(MatrixView from, LaneRows rows, std::size_t j) {
  return from.stride == 0 ? all(from.data[j]) : rows.gather(from, j, 1.0f);
}

/// The kept buffer at the first column of rows that have `size`.
SUREFOOT_INLINE float* kept(float* all_rows, LaneRows rows, std::size_t size) { return all_rows + rows.first * size; }
SUREFOOT_INLINE const float* kept(const float* all_rows, LaneRows rows, std::size_t size) {
  return all_rows + rows.first * size;
}

struct Squashed {
  Vector log_det, mean_slope, std_slope;
};

/// The expectation of log_det_tanh, whose slope is -2 tanh, under a normal.
SUREFOOT_INLINE Squashed expected_log_det(const Quadrature& by, Vector mean, Vector std) {
  Squashed sum{all(0.0f), all(0.0f), all(0.0f)};
  for (std::size_t k = 0; k < by.count; ++k) {
    const Vector node = all(by.nodes[k]);
    const Vector raw = fma(std, node, mean);
    const Vector slope = tanh(raw) * (-2.0f * by.weights[k]);
    sum.log_det = fma(log_det_tanh(raw), all(by.weights[k]), sum.log_det);
    sum.mean_slope += slope;
    sum.std_slope = fma(slope, node, sum.std_slope);
  }
  return sum;
}

void evaluate_gaussian(const GaussianEvaluation& step) {
  for_lanes(step.rows, [&](LaneRows rows) SUREFOOT_MEMBER {
    float* const distances = kept(step.distance, rows, step.size);
    Vector squares = all(0.0f), log_scale = all(0.0f), log_det = all(0.0f), entropy = all(0.0f);
    for (std::size_t j = 0; j < step.size; ++j) {
      const Vector mean = rows.gather(step.mean, j, 0.0f), std = shared(step.std, rows, j);
      const Vector log_std = shared(step.log_std, rows, j);
      const Vector action = rows.gather({step.action, step.size}, j, 0.0f);
      const Vector distance = (action - mean) / std;
      squares = fma(distance, distance, squares);
      log_scale += log_std + kHalfLogTwoPi;
      entropy += log_std + (0.5f + kHalfLogTwoPi);
      store(distances + j * kLanes, distance);
      if (!step.squash) continue;
      const Squashed squashed = expected_log_det(*step.squash, mean, std);
      log_det += log_det_tanh(action);
      entropy += squashed.log_det;
      store(kept(step.mean_slope, rows, step.size) + j * kLanes, squashed.mean_slope);
      store(kept(step.std_slope, rows, step.size) + j * kLanes, squashed.std_slope);
    }
    scatter(step.log_prob + rows.first, 1, rows.count, -0.5f * squares - log_scale - log_det);
    scatter(step.entropy + rows.first, 1, rows.count, entropy);
  });
}

void gaussian_gradient(const GaussianGradient& step) {
  for_lanes(step.rows, [&](LaneRows rows) SUREFOOT_MEMBER {
    const Vector by_log_prob = by_row(step.by_log_prob, rows), by_entropy = by_row(step.by_entropy, rows);
    for (std::size_t j = 0; j < step.size; ++j) {
      const Vector std = shared(step.std, rows, j), grown = shared(step.grown, rows, j);
      const Vector distance = load(kept(step.distance, rows, step.size) + j * kLanes);
      Vector by_mean = by_log_prob * distance / std;
      Vector by_raw = fma(by_log_prob, fma(distance, distance, all(-1.0f)), by_entropy) * (grown / std);
      if (step.mean_slope) {
        by_mean = fma(by_entropy, load(kept(step.mean_slope, rows, step.size) + j * kLanes), by_mean);
        by_raw = fma(by_entropy * load(kept(step.std_slope, rows, step.size) + j * kLanes), grown, by_raw);
      }
      scatter(step.by_mean + rows.first * step.by_mean_stride + j, step.by_mean_stride, rows.count, by_mean);
      if (!step.by_raw) continue;
      scatter(step.by_raw + rows.first * step.by_raw_stride + j, step.by_raw_stride, rows.count, by_raw);
    }
  });
}

struct Element {
  Vector log_prob;  // log-probability of the choice
  Vector entropy;
};

/// Converts the logits of one element to log-probabilities in place, and to probabilities.
SUREFOOT_INLINE Element evaluate_element(const ChoiceEvaluation& step, LaneRows rows, std::size_t element,
                                         std::size_t choices, Vector largest, float* log_probs, float* probs) {
  Vector sum = all(0.0f);
  for (std::size_t i = 0; i < choices; ++i) sum += exp(load(log_probs + i * kLanes) - largest);
  const Vector log_sum = log(sum);
  Element done{all(0.0f), all(0.0f)};
  for (std::size_t i = 0; i < choices; ++i) {
    const Vector log_prob = load(log_probs + i * kLanes) - largest - log_sum;
    const Vector prob = exp(log_prob);
    store(log_probs + i * kLanes, log_prob);
    store(probs + i * kLanes, prob);
    done.entropy = fma(-prob, log_prob, done.entropy);
  }
  const std::int64_t* const choice = step.choice + rows.first * step.count + element;
  for (std::size_t lane = 0; lane < rows.count; ++lane) {
    done.log_prob[lane] = log_probs[static_cast<std::size_t>(choice[lane * step.count]) * kLanes + lane];
  }
  return done;
}

void evaluate_categorical(const ChoiceEvaluation& step) {
  for_lanes(step.rows, [&](LaneRows rows) SUREFOOT_MEMBER {
    float* log_probs = kept(step.log_probs, rows, step.num_logits);
    float* probs = kept(step.probs, rows, step.num_logits);
    Vector log_prob = all(0.0f), entropy = all(0.0f);
    std::size_t offset = 0;
    for (std::size_t element = 0; element < step.count; ++element) {
      const std::size_t choices = static_cast<std::size_t>(step.sizes[element]);
      const Vector largest = take_logits(step.logits, step.mask, step.num_logits, rows, offset, choices, log_probs);
      const Element done = evaluate_element(step, rows, element, choices, largest, log_probs, probs);
      store(kept(step.entropies, rows, step.count) + element * kLanes, done.entropy);
      log_prob += done.log_prob;
      entropy += done.entropy;
      offset += choices;
      log_probs += choices * kLanes;
      probs += choices * kLanes;
    }
    scatter(step.log_prob + rows.first, 1, rows.count, log_prob);
    scatter(step.entropy + rows.first, 1, rows.count, entropy);
  });
}

/// Writes the gradient of one logit for the rows of the block; 0 where it is masked.
SUREFOOT_INLINE void write_by_logit(const ChoiceGradient& step, LaneRows rows, std::size_t column, Vector gradient) {
  const std::size_t stride = step.of.logits.stride;
  scatter(step.by_logits + rows.first * stride + column, stride, rows.count,
          masked(gradient, 0.0f, step.of.mask, step.of.num_logits, rows, column));
}

void categorical_gradient(const ChoiceGradient& step) {
  const ChoiceEvaluation& of = step.of;
  for_lanes(of.rows, [&](LaneRows rows) SUREFOOT_MEMBER {
    const Vector by_log_prob = by_row(step.by_log_prob, rows), by_entropy = by_row(step.by_entropy, rows);
    const float* log_probs = kept(of.log_probs, rows, of.num_logits);
    const float* probs = kept(of.probs, rows, of.num_logits);
    std::size_t column = 0;
    for (std::size_t element = 0; element < of.count; ++element) {
      const Vector entropy = load(kept(of.entropies, rows, of.count) + element * kLanes);
      const std::int64_t* const choice = of.choice + rows.first * of.count + element;
      for (std::int64_t i = 0; i < of.sizes[element]; ++i, ++column, log_probs += kLanes, probs += kLanes) {
        Vector chosen = all(0.0f);
        for (std::size_t lane = 0; lane < rows.count; ++lane) {
          if (choice[lane * of.count] == i) chosen[lane] = by_log_prob[lane];
        }
        const Vector by_prob = fma(by_entropy, load(log_probs) + entropy, by_log_prob);
        write_by_logit(step, rows, column, fma(-load(probs), by_prob, chosen));
      }
    }
  });
}

/// The logits of one binary choice, and the rows that chose yes.
struct YesNo {
  Vector logit;
  IntVector yes;
};

SUREFOOT_INLINE YesNo yes_or_no(const ChoiceEvaluation& step, LaneRows rows, std::size_t element) {
  const Vector given = rows.gather(step.logits, element, 0.0f);
  const std::int64_t* const choice = step.choice + rows.first * step.count + element;
  IntVector yes = all_int(0);
  for (std::size_t lane = 0; lane < rows.count; ++lane) yes[lane] = choice[lane * step.count] != 0 ? -1 : 0;
  return {masked(given, kNever, step.mask, step.num_logits, rows, element), yes};
}

void evaluate_bernoulli(const ChoiceEvaluation& step) {
  for_lanes(step.rows, [&](LaneRows rows) SUREFOOT_MEMBER {
    Vector log_prob = all(0.0f), entropy = all(0.0f);
    for (std::size_t element = 0; element < step.count; ++element) {
      const auto [logit, yes] = yes_or_no(step, rows, element);
      log_prob -= softplus(select(yes, -logit, logit));  // log sigmoid(x) = -softplus(-x)
      entropy += fma(-sigmoid(logit), logit, softplus(logit));
    }
    scatter(step.log_prob + rows.first, 1, rows.count, log_prob);
    scatter(step.entropy + rows.first, 1, rows.count, entropy);
  });
}

void bernoulli_gradient(const ChoiceGradient& step) {
  for_lanes(step.of.rows, [&](LaneRows rows) SUREFOOT_MEMBER {
    const Vector by_log_prob = by_row(step.by_log_prob, rows), by_entropy = by_row(step.by_entropy, rows);
    for (std::size_t element = 0; element < step.of.count; ++element) {
      const auto [logit, yes] = yes_or_no(step.of, rows, element);
      const Vector prob = sigmoid(logit), other = sigmoid(-logit);
      const Vector by_logit = fma(by_entropy, -logit * (prob * other), by_log_prob * select(yes, other, -prob));
      write_by_logit(step, rows, element, by_logit);
    }
  });
}

}  // namespace
}  // namespace surefoot
