// Which samples are learned from together: epochs of minibatches, and pieces of those.
#pragma once

#include <vector>

#include "surefoot/learner.hpp"
#include "surefoot/packed_steps.hpp"

namespace surefoot {

/// Samples that go through the networks together; with sequences, in the order of `steps`.
struct Piece {
  std::vector<std::int64_t> samples{};
  PackedSteps steps{std::vector<std::int64_t>{}};
  std::vector<std::size_t> places{};  // the state that each sequence begins with
};

/// The samples of one optimizer step.
struct Minibatch {
  std::vector<Piece> pieces{};
  std::size_t count = 0;
  float mean = 0, scale = 1;  // of the advantages: (advantage - mean) / scale
};

/// Runs side by side, the longest first.
Piece packed(const std::vector<Run>& runs, const std::vector<std::size_t>& places);

/// The order of samples or runs in an epoch, as `permutations` in philox.py gives it.
void permute(const Update& update, std::size_t epoch, std::vector<std::int64_t>& order);

/// Samples whose activations still fit into the caches; sums over more are added up.
inline constexpr std::size_t kMostRows = 512;

/// The minibatches of one epoch, in pieces of at most `most_rows` samples; sequences are not cut. A minibatch without
/// own samples has no pieces.
std::vector<Minibatch> minibatches_of(const Update& update, const std::vector<std::int64_t>& order,
                                      std::size_t most_rows);
std::vector<Minibatch> shared_minibatches_of(const Update& update, std::size_t epoch, std::size_t most_rows);

/// The most samples that a piece of any minibatch may have.
std::size_t piece_size(const Update& update, std::size_t most_rows);

/// Mean and standard deviation of a minibatch's advantages, if they are to be normalized.
void measure_advantages(const Update& update, Minibatch& minibatch);

}  // namespace surefoot
