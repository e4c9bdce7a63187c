// A distribution head: maps features to actions and their log-probabilities.
#pragma once

#include <algorithm>
#include <cstdint>

#include "surefoot/parts/part.hpp"

namespace surefoot {

/// Key of the random numbers of a call: row r draws word j of (step, row(r)).
struct NoiseKey {
  std::uint64_t seed;
  std::uint64_t step;
  std::uint64_t first_row;
  std::uint32_t stream;
  const std::uint64_t* rows = nullptr;  // number of each row; null: consecutive from first_row

  std::uint64_t row(std::size_t index) const { return rows == nullptr ? first_row + index : rows[index]; }
  /// The key of the rows from `first` on.
  NoiseKey from(std::size_t first) const {
    return {seed, step, first_row + first, stream, rows == nullptr ? nullptr : rows + first};
  }
};

/// Destination of samples; of `action` and `choice`, only the one that matches the head is written.
struct Sampled {
  float* action;         // [rows, action_size] Box: raw, as sampled
  std::int64_t* choice;  // [rows, action_size] discrete kinds: raw, from 0
  float* log_prob;       // [rows]
};

/// Actions to evaluate; of `action` and `choice`, only the one that matches the head is read.
struct Done {
  const float* action;         // [count, action_size] raw
  const std::int64_t* choice;  // [count, action_size] raw
  const bool* mask;            // [count, mask_size] or null
};

/// Base class of heads. The output for a row depends only on that row. The Python head of the same kind is the
/// reference.
class Head : public Part {
 public:
  using Part::Part;

  virtual bool is_discrete() const { return false; }
  virtual std::size_t action_size() const = 0;         // elements of a raw action
  virtual std::size_t noise_size() const = 0;          // uniforms per sample
  virtual std::size_t mask_size() const { return 0; }  // entries of an action mask; 0: masks are not supported
  virtual bool leaves_a_choice(const bool* /*mask*/) const { return true; }  // for every element of the action

  /// Writes the noise that `sample` uses for these rows, [rows, noise_size].
  void noise(std::size_t rows, const NoiseKey& key, float* out) const;

  /// Samples actions from rows of features; `mask` is [rows, mask_size] or null.
  virtual void sample(const PartRows& rows, const bool* mask, const NoiseKey& key, const Sampled& out) const = 0;

  /// Converts raw Box actions to env actions; may be in place.
  virtual void to_env(std::size_t rows, const float* action, float* env_action) const {
    if (action != env_action) std::copy_n(action, rows * action_size(), env_action);
  }
  /// Converts raw choices to env actions; may be in place.
  virtual void choices_to_env(std::size_t rows, const std::int64_t* choice, std::int64_t* env_choice) const {
    if (choice != env_choice) std::copy_n(choice, rows * action_size(), env_choice);
  }

  /// Linear layers that take the features, in the order of `LearnedRows::given`.
  virtual std::vector<Learned> layers() const = 0;
  /// Other tensors that it uses.
  virtual std::vector<Learned> vectors() const { return {}; }
  /// Computes log-probabilities and entropies of the given actions: [count] each.
  virtual void evaluate(const LearnedRows& rows, const Done& done, float* log_prob, float* entropy) const = 0;
  /// Computes the gradient of sum(by_log_prob * log_prob + by_entropy * entropy) for the rows of the last `evaluate`.
  virtual void gradient(const LearnedRows& rows, const Done& done, const float* by_log_prob, const float* by_entropy,
                        const GivenGradient& out) const = 0;

 protected:
  /// Transforms uniforms [rows, noise_size] to the noise of the distribution, in place.
  virtual void shape_noise(std::size_t /*rows*/, float* /*uniforms*/) const {}

  /// Draws the noise of the rows into `slot` of their scratch.
  MatrixView drawn(const PartRows& rows, const NoiseKey& key, std::size_t slot) const {
    float* const out = rows.scratch.floats(slot, rows.count * noise_size());
    noise(rows.count, key, out);
    return {out, noise_size()};
  }
};

}  // namespace surefoot
