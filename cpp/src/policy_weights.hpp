// The contents of a policy: its parts, its layers as packed by the last sync, and its statistics.
#pragma once

#include <memory>
#include <vector>

#include "surefoot/layer.hpp"
#include "surefoot/parts/critic.hpp"
#include "surefoot/parts/encoder.hpp"
#include "surefoot/parts/head.hpp"
#include "surefoot/parts/memory.hpp"
#include "surefoot/policy.hpp"

namespace surefoot {

struct Network {
  std::vector<Layer> layers;
};

struct EncoderPart {
  EncoderPart(const EncoderPlan& plan, std::size_t size, const Kernels& kernels)
      : obs(plan.obs),
        obs_size(size),
        encoder(make_part<Encoder>(plan.encoder, kernels)),
        own_size(encoder->own_size(size)),
        kept_size(encoder->kept_size()) {}

  std::size_t obs, obs_size;
  std::unique_ptr<Encoder> encoder;
  std::optional<std::size_t> own_size;  // output size of the encoder's own computation, if any
  std::size_t kept_size;
  std::vector<AlignedFloats> tensors{};  // copies of its tensors
  std::vector<const float*> values{};    // pointers to these
  Network layers{};
  std::size_t output_size = 0;
};

struct Body {
  std::vector<EncoderPart> encoders;
  std::unique_ptr<Memory> memory;
  std::size_t first_tensor, num_tensors;  // position of the memory's state among the tensors of the policy's state
  Network trunk;
  std::size_t feature_size;     // size of all encoders' features and, where it is taken, of the actor's memory
  std::size_t remembered_size;  // output size of the memory
};

struct ValuePart {
  Network trunk;
  std::unique_ptr<Critic> critic;
};

/// Statistics of one observation; empty if it is not normalized.
struct ObsStatistics {
  AlignedFloats shift;
  AlignedFloats scale;
};

struct Policy::Weights {
  bool is_synced = false;
  std::vector<ObsStatistics> obs;
  Body actor;
  Body critic;
  std::unique_ptr<Head> head;
  std::vector<ValuePart> values;
};

}  // namespace surefoot
