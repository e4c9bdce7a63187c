// The division of samples into epochs, minibatches and pieces.
#pragma once

#include <vector>

#include "surefoot/learner.hpp"
#include "surefoot/packed_steps.hpp"

namespace surefoot {

/// A piece: samples that go through the networks together; with sequences, in the order of `steps`.
struct Piece {
  std::vector<std::int64_t> samples{};
  PackedSteps steps{std::vector<std::int64_t>{}};
  std::vector<std::size_t> places{};  // index of the initial state of each sequence
};

/// The samples of one optimizer step.
struct Minibatch {
  std::vector<Piece> pieces{};
  std::size_t count = 0;
  float mean = 0, scale = 1;  // of the advantages: (advantage - mean) / scale
};

/// Packs runs into one piece, the longest first.
Piece packed(const std::vector<Run>& runs, const std::vector<std::size_t>& places);

/// The order of samples or runs in an epoch, equal to `permutations` in philox.py.
void permute(const Update& update, std::size_t epoch, std::vector<std::int64_t>& order);

/// Number of samples whose activations still fit into the caches; gradients of larger minibatches are summed over
/// pieces.
inline constexpr std::size_t kMostRows = 512;

/// The minibatches of one epoch, in pieces of at most `most_rows` samples, except that sequences are not cut. A
/// minibatch without samples of this process has no pieces.
std::vector<Minibatch> minibatches_of(const Update& update, const std::vector<std::int64_t>& order,
                                      std::size_t most_rows);
std::vector<Minibatch> shared_minibatches_of(const Update& update, std::size_t epoch, std::size_t most_rows);

/// The maximum number of samples of a piece in any minibatch.
std::size_t piece_size(const Update& update, std::size_t most_rows);

/// Mean and standard deviation of a minibatch's advantages, if they are to be normalized.
void measure_advantages(const Update& update, Minibatch& minibatch);

}  // namespace surefoot
