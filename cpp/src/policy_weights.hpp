// What a policy consists of: its parts, its layers as packed by the last sync, and its statistics.
#pragma once

#include <memory>
#include <vector>

#include "surefoot/layer.hpp"
#include "surefoot/parts/critic.hpp"
#include "surefoot/parts/head.hpp"
#include "surefoot/parts/memory.hpp"
#include "surefoot/policy.hpp"

namespace surefoot {

struct Network {
  std::vector<Layer> layers;
};

struct PackedConvolution {
  Convolution shape;
  AlignedFloats weight, bias;
};

struct Encoder {
  std::size_t obs;
  std::vector<PackedConvolution> convolutions;
  Network network;
  std::size_t output_size;
};

struct Body {
  std::vector<Encoder> encoders;
  std::unique_ptr<Memory> memory;
  std::size_t first_part, num_parts;  // of the memory's state in the policy's
  Network trunk;
  std::size_t feature_size;     // of the actor's memory, where it is taken, and all encoders
  std::size_t remembered_size;  // of what the memory gives
  bool is_plain;                // one observation as it is: nothing to lay side by side
};

struct ValuePart {
  Network trunk;
  std::unique_ptr<Critic> critic;
};

/// Statistics of one observation; empty if it is taken as it is.
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
