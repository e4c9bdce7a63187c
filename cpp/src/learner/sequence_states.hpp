// The states that sequences start with: those of the rollout, or recomputed.
#pragma once

#include <vector>

#include "batches.hpp"
#include "learning_policy.hpp"

namespace surefoot {

class SequenceStates {
 public:
  explicit SequenceStates(LearningPolicy& net) : net_(net) {}

  /// The update that follows; without sequences there is nothing to do.
  void begin(const SequenceSamples* samples);
  /// The pieces whose states are recomputed before the first step of an epoch, one after the other.
  const std::vector<Piece>& carried() const { return carried_; }
  /// The largest number of samples and sequences that are recomputed together.
  std::size_t most_rows() const { return most_rows_; }
  std::size_t most_sequences() const { return most_sequences_; }

  /// At the start of an epoch: those of the rollout.
  void restore();
  /// To the memories, before they run over a piece.
  void enter(const Piece& piece);
  /// From the memories, after they ran over a piece that is carried.
  void leave(std::size_t carried);

 private:
  template <class Visit>
  void visit(const Visit& visit);

  LearningPolicy& net_;
  const SequenceSamples* samples_ = nullptr;
  std::vector<Piece> carried_;
  std::vector<std::vector<float>> states_;  // of each part [places, size]
  std::size_t most_rows_ = 0, most_sequences_ = 0;
};

}  // namespace surefoot
