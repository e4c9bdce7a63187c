#include "losses.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace surefoot {

namespace {

/// Measures that a term may have.
constexpr std::size_t kMostMeasures = 16;

/// Slots of a thread's workspace, beside those of layers that sum up gradients and of images. Each critic has
/// `kSlotsOfCritic`: its own, then those for gradients.
enum Slot : std::size_t { kHead = 8, kCritics = 40, kGradients = 8, kSlotsOfCritic = 24 };

/// The critics with their rows of a block; their gradients begin with 0.
class CriticBlocks {
 public:
  CriticBlocks(LearningPolicy& net, Block block, const float* old_prediction, std::size_t stride,
               Workspace& workspace) {
    parts_.reserve(net.critics.size());
    rows_.reserve(net.critics.size());
    for (std::size_t i = 0; i < net.critics.size(); ++i) {
      LearningCritic& critic = net.critics[i];
      Parts& own = parts_.emplace_back(Parts{critic.part.rows(block), {}, {}});
      const std::size_t slots = kCritics + i * kSlotsOfCritic;
      const GivenGradient gradient = own.rows.gradient();
      for (std::size_t k = 0; k < gradient.given.size(); ++k) {
        const std::size_t floats = block.count * own.rows.given[k].stride;
        std::fill_n(gradient.given[k], floats, 0.0f);
        own.given[k] = workspace.floats(slots + kGradients + k, floats);
      }
      for (std::size_t k = 0; k < gradient.vectors.size(); ++k) {
        if (gradient.vectors[k] == nullptr) continue;
        const std::size_t floats = block.count * critic.part.vector_sizes()[k];
        std::fill_n(gradient.vectors[k], floats, 0.0f);
        own.vectors[k] = workspace.floats(slots + kGradients + LearningPart::Rows::kMost + k, floats);
      }
      rows_.push_back({*critic.critic,
                       own.rows.learned(block.count, {workspace, slots}),
                       {old_prediction, stride},
                       critic.part.vector_sizes(),
                       {{own.given.data(), gradient.given.size()}, {own.vectors.data(), gradient.vectors.size()}},
                       gradient});
      old_prediction += critic.critic->prediction_size();
    }
  }

  std::span<const CriticRows> rows() const { return rows_; }

 private:
  struct Parts {
    LearningPart::Rows rows;
    std::array<float*, LearningPart::Rows::kMost> given, vectors;
  };
  std::vector<Parts> parts_;
  std::vector<CriticRows> rows_;
};

}  // namespace

Losses::Losses(const std::vector<PartPlan>& terms, LearningPolicy& net, const Kernels& kernels) : net_(net) {
  for (const PartPlan& term : terms) {
    const Term& made = *terms_.emplace_back(make_part<Term>(term, kernels));
    first_measure_.push_back(measures_.size());
    takes_old_predictions_ |= made.takes_old_predictions();
    if (made.measures().size() > kMostMeasures) throw std::invalid_argument("a term has more than 16 measures");
    for (const std::string& name : made.measures()) {
      measures_.push_back(std::to_string(terms_.size() - 1) + "." + name);
    }
  }
  first_measure_.push_back(measures_.size());
  measured_.resize(measures_.size());
}

void Losses::begin(const Update& update, std::size_t rows) {
  update_ = &update;
  for (const auto& term : terms_) term->begin(update.knobs);
  for (auto* floats :
       {&log_prob_, &old_log_prob_, &log_ratio_, &entropy_, &advantage_, &returns_, &by_log_prob_, &by_entropy_}) {
    floats->resize(std::max(floats->size(), rows));
  }
  old_prediction_.resize(std::max(old_prediction_.size(), rows * update.samples.prediction_size));
  const Head& head = *net_.head;
  (head.is_discrete() ? choice_.resize(rows * head.action_size()) : action_.resize(rows * head.action_size()));
  if (update.samples.mask != nullptr) mask_ = std::make_unique<bool[]>(rows * head.mask_size());
  for (auto& column : measured_) column.resize(std::max(column.size(), rows));
}

void Losses::gather(const Minibatch& minibatch, const Piece& piece, Block block) {
  const LearnerSamples& from = update_->samples;
  const std::size_t size = net_.head->action_size(), mask_size = net_.head->mask_size();
  for (std::size_t row = block.first; row < block.first + block.count; ++row) {
    const std::size_t sample = static_cast<std::size_t>(piece.samples[row]);
    if (from.choice != nullptr) {
      std::copy_n(from.choice + sample * size, size, choice_.data() + row * size);
    } else {
      std::copy_n(from.action + sample * size, size, action_.data() + row * size);
    }
    if (from.mask != nullptr) std::copy_n(from.mask + sample * mask_size, mask_size, mask_.get() + row * mask_size);
    old_log_prob_[row] = from.log_prob[sample];
    advantage_[row] = (from.advantage[sample] - minibatch.mean) / minibatch.scale;
    returns_[row] = from.returns[sample];
    if (!takes_old_predictions_) continue;
    std::copy_n(from.prediction + sample * from.prediction_size, from.prediction_size,
                old_prediction_.data() + row * from.prediction_size);
  }
}

void Losses::run(const Minibatch& minibatch, Block block, Workspace& workspace) {
  const std::size_t first = block.first, count = block.count;
  const Head& head = *net_.head;
  const std::size_t action = first * head.action_size();
  const Done done{head.is_discrete() ? nullptr : action_.data() + action,
                  head.is_discrete() ? choice_.data() + action : nullptr,
                  update_->samples.mask == nullptr ? nullptr : mask_.get() + first * head.mask_size()};
  const LearningPart::Rows head_rows = net_.head_part.rows(block);
  const LearnedRows acted = head_rows.learned(count, {workspace, kHead});
  head.evaluate(acted, done, log_prob_.data() + first, entropy_.data() + first);
  for (std::size_t row = first; row < first + count; ++row) {
    log_ratio_[row] = log_prob_[row] - old_log_prob_[row];
    by_log_prob_[row] = 0;
    by_entropy_[row] = 0;
  }
  CriticBlocks critics(net_, block, old_prediction_.data() + first * update_->samples.prediction_size,
                       update_->samples.prediction_size, workspace);
  const ObjectiveRows rows{count,
                           log_ratio_.data() + first,
                           entropy_.data() + first,
                           advantage_.data() + first,
                           returns_.data() + first,
                           critics.rows()};
  const ObjectiveGradient out{by_log_prob_.data() + first, by_entropy_.data() + first};
  std::array<float*, kMostMeasures> columns;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const std::size_t begin = first_measure_[i], end = first_measure_[i + 1];
    for (std::size_t k = begin; k < end; ++k) columns[k - begin] = measured_[k].data() + first;
    const double weight = update_->weights[i] / static_cast<double>(minibatch.count);
    terms_[i]->run(rows, static_cast<float>(weight), {columns.data(), end - begin}, out);
  }
  head.gradient(acted, done, out.log_prob, out.entropy, head_rows.gradient());
}

double Losses::sum(std::size_t measure, std::size_t rows) const {
  const float* const numbers = measured_[measure].data();
  std::array<double, 8> sums{};  // in the same order always
  for (std::size_t i = 0; i < rows; ++i) sums[i % 8] += static_cast<double>(numbers[i]);
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace surefoot
