// A distribution head: features to actions with their log-probabilities.
#pragma once

#include <algorithm>
#include <cstdint>

#include "surefoot/parts/part.hpp"

namespace surefoot {

/// Which numbers to act with: row r of a call draws word j of (step, row(r)).
struct NoiseKey {
  std::uint64_t seed;
  std::uint64_t step;
  std::uint64_t first_row;
  std::uint32_t stream;
  const std::uint64_t* rows = nullptr;  // the number of each row; null: neighbors from first_row on

  std::uint64_t row(std::size_t index) const { return rows == nullptr ? first_row + index : rows[index]; }
  /// The same without the first rows.
  NoiseKey from(std::size_t first) const {
    return {seed, step, first_row + first, stream, rows == nullptr ? nullptr : rows + first};
  }
};

/// Where a head writes; of `action` and `choice` only its own kind.
struct Sampled {
  float* action;         // [rows, action_size] Box: raw, as sampled
  std::int64_t* choice;  // [rows, action_size] discrete kinds: raw, from 0
  float* log_prob;       // [rows]
};

/// Actions to learn from; of `action` and `choice` only the head's own kind.
struct Done {
  const float* action;         // [count, action_size] raw
  const std::int64_t* choice;  // [count, action_size] raw
  const bool* mask;            // [count, mask_size] or null
};

/// Its output for a row depends only on that row. Python's head of the same kind is its reference.
class Head : public Part {
 public:
  using Part::Part;

  virtual bool is_discrete() const { return false; }
  virtual std::size_t action_size() const = 0;         // elements of a raw action
  virtual std::size_t noise_size() const = 0;          // uniforms that one row's sample takes
  virtual std::size_t mask_size() const { return 0; }  // entries of an action mask; 0 where masks make no sense
  virtual bool leaves_a_choice(const bool* /*mask*/) const { return true; }  // of every element, in a row's mask

  /// What `sample` draws for rows, [rows, noise_size].
  void noise(std::size_t rows, const NoiseKey& key, float* out) const;

  /// Sample rows of features; `mask` is [rows, mask_size] or null.
  virtual void sample(const PartRows& rows, const bool* mask, const NoiseKey& key, const Sampled& out) const = 0;

  /// Raw Box actions to what the env takes; may be in place.
  virtual void to_env(std::size_t rows, const float* action, float* env_action) const {
    if (action != env_action) std::copy_n(action, rows * action_size(), env_action);
  }
  /// Raw choices to what the env takes; may be in place.
  virtual void choices_to_env(std::size_t rows, const std::int64_t* choice, std::int64_t* env_choice) const {
    if (choice != env_choice) std::copy_n(choice, rows * action_size(), env_choice);
  }

  /// Linear layers of the features, in the order in which `given` has them.
  virtual std::vector<Learned> layers() const = 0;
  /// Other tensors that it computes from.
  virtual std::vector<Learned> vectors() const { return {}; }
  /// Log-probabilities of what was done, and entropies: [count] each.
  virtual void evaluate(const LearnedRows& rows, const Done& done, float* log_prob, float* entropy) const = 0;
  /// The gradient of sum(by_log_prob * log_prob + by_entropy * entropy) of rows that were just evaluated.
  virtual void gradient(const LearnedRows& rows, const Done& done, const float* by_log_prob, const float* by_entropy,
                        const GivenGradient& out) const = 0;

 protected:
  /// Uniforms [rows, noise_size] to the distribution's own noise, in place.
  virtual void shape_noise(std::size_t /*rows*/, float* /*uniforms*/) const {}

  /// Noise of the rows, in `slot` of their scratch.
  MatrixView drawn(const PartRows& rows, const NoiseKey& key, std::size_t slot) const {
    float* const out = rows.scratch.floats(slot, rows.count * noise_size());
    noise(rows.count, key, out);
    return {out, noise_size()};
  }
};

}  // namespace surefoot
