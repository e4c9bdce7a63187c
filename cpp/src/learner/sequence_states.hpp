// Initial states of sequences: stored by the rollout, or recomputed.
#pragma once

#include <vector>

#include "batches.hpp"
#include "learning_policy.hpp"

namespace surefoot {

class SequenceStates {
 public:
  explicit SequenceStates(LearningPolicy& net) : net_(net) {}

  /// Prepares for an update; does nothing without sequences.
  void begin(const SequenceSamples* samples);
  /// The pieces that are run, in order, to recompute states before the first step of an epoch.
  const std::vector<Piece>& carried() const { return carried_; }
  /// The largest number of samples and of sequences in such a piece.
  std::size_t most_rows() const { return most_rows_; }
  std::size_t most_sequences() const { return most_sequences_; }

  /// Resets the states to those of the rollout, at the start of an epoch.
  void restore();
  /// Copies states to the memories before they run over a piece.
  void enter(const Piece& piece);
  /// Copies states from the memories after they ran over a piece whose states are recomputed.
  void leave(std::size_t carried);

 private:
  template <class Visit>
  void visit(const Visit& visit);

  LearningPolicy& net_;
  const SequenceSamples* samples_ = nullptr;
  std::vector<Piece> carried_;
  std::vector<std::vector<float>> states_;  // [places, size] of each tensor
  std::size_t most_rows_ = 0, most_sequences_ = 0;
};

}  // namespace surefoot
