#include "sequence_states.hpp"

#include <algorithm>

namespace surefoot {

void SequenceStates::begin(const SequenceSamples* samples) {
  samples_ = samples;
  carried_.clear();
  most_rows_ = most_sequences_ = 0;
  if (samples == nullptr) return;
  states_.resize(net_.state_sizes.size());
  for (const SequenceSamples::Carry& carry : samples->carries) {
    carried_.push_back(packed(carry.runs, carry.from));
    most_rows_ = std::max(most_rows_, carried_.back().samples.size());
    most_sequences_ = std::max(most_sequences_, carry.runs.size());
  }
}

void SequenceStates::restore() {
  for (std::size_t tensor = 0; tensor < states_.size(); ++tensor) {
    const float* const from = samples_->stored[tensor];
    states_[tensor].assign(from, from + samples_->num_places * net_.state_sizes[tensor]);
  }
}

/// Visits the tensor of the state of every layer: memory, layer, tensor, and its offset in the states.
template <class Visit>
void SequenceStates::visit(const Visit& visit) {
  for (const LearningPolicy::Remembering& body : net_.remembering) {
    for (std::size_t layer = 0; layer < body.cells->num_layers(); ++layer) {
      for (std::size_t tensor = 0; tensor < body.cells->num_tensors(); ++tensor) {
        const std::size_t index = body.first_tensor + tensor;
        float* const first = states_[index].data() + layer * body.cells->hidden();
        visit(*body.cells, layer, tensor, first, net_.state_sizes[index]);
      }
    }
  }
}

void SequenceStates::enter(const Piece& piece) {
  visit([&](Cells& cells, std::size_t layer, std::size_t tensor, const float* states, std::size_t size) {
    const std::size_t hidden = cells.hidden();
    float* const to = cells.before(layer, tensor);
    for (std::size_t i = 0; i < piece.places.size(); ++i) {
      const float* const from = states + piece.places[i] * size;
      const bool is_start = samples_->episode_start[piece.samples[i]];
      for (std::size_t k = 0; k < hidden; ++k) to[i * hidden + k] = is_start ? 0.0f : from[k];
    }
  });
}

void SequenceStates::leave(std::size_t carried) {
  const Piece& piece = carried_[carried];
  const std::vector<std::size_t>& places = samples_->carries[carried].to;
  visit([&](Cells& cells, std::size_t layer, std::size_t tensor, float* states, std::size_t size) {
    const std::size_t hidden = cells.hidden();
    std::vector<float> last(piece.places.size() * hidden);
    copy_last(piece.steps, hidden, cells.states(layer, tensor), last.data());
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::copy_n(last.data() + i * hidden, hidden, states + places[i] * size);
    }
  });
}

}  // namespace surefoot
