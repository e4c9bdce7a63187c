// The objective: log-probabilities of the samples of a piece, the losses of all terms, and the gradient of the policy's
// outputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "batches.hpp"
#include "learning_policy.hpp"

namespace surefoot {

class Losses {
 public:
  Losses(const std::vector<PartPlan>& terms, LearningPolicy& net, const Kernels& kernels);

  /// `<term>.<measure>` of all terms by their index.
  const std::vector<std::string>& measures() const { return measures_; }
  std::size_t num_terms() const { return terms_.size(); }

  /// Prepares for an update with pieces of at most `rows` samples.
  void begin(const Update& update, std::size_t rows);
  void gather(const Minibatch& minibatch, const Piece& piece, Block block);
  /// Computes the gradient of the outputs of the policy's layers.
  void run(const Minibatch& minibatch, Block block, Workspace& workspace);
  /// The sum of a measure over the samples of a piece.
  double sum(std::size_t measure, std::size_t rows) const;

 private:
  void find_extras(const Term& term, std::size_t rows);
  void run_terms(bool of_all_rows, const Minibatch& minibatch, Block block, const ObjectiveRows& rows,
                 const ObjectiveGradient& out);
  void weigh(Block block, std::span<const CriticRows> critics);

  std::vector<std::unique_ptr<Term>> terms_;
  std::vector<std::size_t> first_measure_;  // index of the first measure of each term, and the end
  std::vector<std::string> measures_;
  bool takes_old_predictions_ = false, takes_head_ = false;  // whether any term does
  LearningPolicy& net_;
  const Update* update_ = nullptr;

  // Samples of the current piece.
  std::vector<float> action_, log_prob_, old_log_prob_, log_ratio_, entropy_, advantage_, returns_, old_prediction_;
  std::vector<float> by_log_prob_, by_entropy_;
  std::vector<std::int64_t> choice_;
  std::unique_ptr<bool[]> mask_;
  struct Gathered {
    const ExtraSamples* from;
    std::size_t row_bytes;
    std::vector<std::byte> bytes;
  };
  std::vector<Gathered> extras_;  // extra fields that terms request
  std::vector<float> weight_;     // only if samples have different weights
  std::vector<std::vector<float>> measured_;
};

}  // namespace surefoot
