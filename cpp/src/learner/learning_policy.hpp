// A policy during learning: its networks and parts, connected for the forward and backward pass.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "batches.hpp"
#include "encoder.hpp"

namespace surefoot {

/// Encoders, memory and trunk.
struct LearningBody {
  std::deque<LearningEncoder> encoders;
  std::optional<Concat> features;
  std::unique_ptr<Memory> memory;
  std::optional<Cells> cells;
  std::optional<Mlp> trunk;
};

/// A distribution or critic: its layers, its vectors, and views of them for some rows.
class LearningPart {
 public:
  void build(const Kernels& kernels, const std::vector<Learned>& layers, const std::vector<Learned>& vectors,
             Wire& latent, std::deque<Dense>& all);
  void bind(const TensorReader& tensors, const FlatMemory& memory);
  void reserve(std::size_t rows);
  void forward(Block block) const;
  void backward(Block block) const;

  /// Inputs of a part and the destination of its gradient, for a block of rows.
  struct Rows {
    static constexpr std::size_t kMost = 8;
    std::array<MatrixView, kMost> given;
    std::array<const float*, kMost> vectors;
    std::array<float*, kMost> grad_given, grad_vectors;
    std::size_t num_given, num_vectors;

    LearnedRows learned(std::size_t count, Scratch scratch) const {
      return {count, {given.data(), num_given}, {vectors.data(), num_vectors}, scratch};
    }
    GivenGradient gradient() const { return {{grad_given.data(), num_given}, {grad_vectors.data(), num_vectors}}; }
  };
  Rows rows(Block block);

  const std::vector<TakingLayer>& layers() const { return layers_; }
  std::deque<FreeVector>& vectors() { return vectors_; }
  const std::vector<std::size_t>& vector_sizes() const { return vector_sizes_; }

 private:
  std::vector<TakingLayer> layers_;
  std::deque<FreeVector> vectors_;
  std::vector<std::size_t> vector_sizes_;
};

/// A critic, after its own trunk if it has one.
struct LearningCritic {
  std::unique_ptr<Critic> critic;
  std::optional<Mlp> trunk;
  LearningPart part;
};

class LearningPolicy {
 public:
  LearningPolicy(const PolicyPlan& plan, const TensorReader& tensors, const Kernels& kernels);

  void bind(const TensorReader& tensors, const FlatMemory& memory);
  void reserve(std::size_t rows, std::size_t sequences);

  const PolicyPlan plan;
  const Kernels& kernels;
  std::unique_ptr<Head> head;

  std::deque<Dense> layers;  // all layers
  std::deque<Matrix> obs;    // normalized observations of the samples of a piece
  std::deque<Wire> obs_wires;
  LearningBody actor, other;  // `other` is the body of the critic, if it has its own
  LearningPart head_part;
  std::deque<LearningCritic> critics;

  std::vector<std::size_t> state_sizes;  // size of each tensor of the state, the actor's first

  /// Bodies with their own memory, and the index of the first tensor of the policy's state that belongs to them.
  struct Remembering {
    Cells* cells;
    std::size_t first_tensor;
  };
  std::vector<Remembering> remembering;

  /// The layers from the observations to the features of the memories, or to the outputs without memory.
  void encode(Block block, Scratch scratch);
  void run_trunks(Block block);
  void back_through_trunks(Block block);
  void back_through_encoders(Block block, Scratch scratch);

  /// Maximum number of samples that go through the networks together: images take much memory.
  std::size_t piece_rows(std::size_t most) const;

  bool shares_trunk() const { return plan.shares_trunk; }

 private:
  void build_body(const BodyPlan& body_plan, const TensorReader& tensors, Wire* actor_memory, LearningBody& body);
};

}  // namespace surefoot
