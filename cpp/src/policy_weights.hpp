// What a policy holds between syncs: its layers packed and its statistics.
#pragma once

#include <vector>

#include "layer.hpp"
#include "surefoot/policy.hpp"

namespace surefoot {

struct Network {
  std::vector<Layer> layers;
};

struct Encoder {
  std::size_t obs;
  Network network;
  std::size_t output_size;
};

/// One recurrent layer: what it takes from below and what from its own past.
struct Cell {
  Layer input;
  Layer recurrent;
};

struct Body {
  std::vector<Encoder> encoders;
  std::vector<Cell> cells;  // none without memory
  Network trunk;
  std::size_t feature_size;  // of the actor's memory, where it is taken, and all encoders
  bool is_plain;             // one observation as it is: nothing to lay side by side
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
  Layer head;
  Layer std_head;
  AlignedFloats log_std;
  AlignedFloats std;  // where it does not depend on the state
  Layer value;
  float value_shift = 0;
  float value_scale = 1;
};

/// Outputs of the head's linear layer.
std::size_t head_outputs(const HeadPlan& head);

bool is_gaussian(Distribution kind);

}  // namespace surefoot
