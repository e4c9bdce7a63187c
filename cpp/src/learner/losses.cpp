#include "losses.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

namespace surefoot {

namespace {

/// Maximum number of measures of a term.
constexpr std::size_t kMostMeasures = 16;

/// Slots of a thread's workspace, besides those of layers that sum up gradients and of encoders. Each critic has
/// `kSlotsOfPart` slots: its own, then those for gradients. The head of terms that take it uses those from kHead on.
enum Slot : std::size_t { kHead = 8, kCritics = 40, kGradients = 8, kSlotsOfPart = 24 };

/// The rows of a head or critic, and buffers for their gradients in a thread's workspace, from `slots` on.
struct PartBlock {
  LearningPart::Rows rows;
  std::array<float*, LearningPart::Rows::kMost> given, vectors;

  /// Sets the gradient to 0.
  PartBlock(LearningPart& part, Block block, Workspace& workspace, std::size_t slots) : rows(part.rows(block)) {
    const GivenGradient gradient = rows.gradient();
    for (std::size_t k = 0; k < gradient.given.size(); ++k) {
      const std::size_t floats = block.count * rows.given[k].stride;
      std::fill_n(gradient.given[k], floats, 0.0f);
      given[k] = workspace.floats(slots + kGradients + k, floats);
    }
    for (std::size_t k = 0; k < gradient.vectors.size(); ++k) {
      vectors[k] = nullptr;
      if (gradient.vectors[k] == nullptr) continue;
      const std::size_t floats = block.count * part.vector_sizes()[k];
      std::fill_n(gradient.vectors[k], floats, 0.0f);
      vectors[k] = workspace.floats(slots + kGradients + LearningPart::Rows::kMost + k, floats);
    }
  }

  GivenGradient scratch() const { return {{given.data(), rows.num_given}, {vectors.data(), rows.num_vectors}}; }
};

/// The critics with the rows of a block.
class CriticBlocks {
 public:
  CriticBlocks(LearningPolicy& net, Block block, const float* old_prediction, std::size_t stride,
               Workspace& workspace) {
    parts_.reserve(net.critics.size());
    rows_.reserve(net.critics.size());
    for (std::size_t i = 0; i < net.critics.size(); ++i) {
      LearningCritic& critic = net.critics[i];
      const std::size_t slots = kCritics + i * kSlotsOfPart;
      const PartBlock& own = parts_.emplace_back(critic.part, block, workspace, slots);
      rows_.push_back({*critic.critic,
                       own.rows.learned(block.count, {workspace, slots}),
                       {old_prediction, stride},
                       critic.part.vector_sizes(),
                       own.scratch(),
                       own.rows.gradient()});
      old_prediction += critic.critic->prediction_size();
    }
  }

  std::span<const CriticRows> rows() const { return rows_; }

 private:
  std::vector<PartBlock> parts_;
  std::vector<CriticRows> rows_;
};

std::size_t bytes_of(ExtraType type) {
  return type == ExtraType::kFloat ? sizeof(float) : type == ExtraType::kInteger ? sizeof(std::int64_t) : sizeof(bool);
}

}  // namespace

Losses::Losses(const std::vector<PartPlan>& terms, LearningPolicy& net, const Kernels& kernels) : net_(net) {
  for (const PartPlan& term : terms) {
    const Term& made = *terms_.emplace_back(make_part<Term>(term, kernels));
    first_measure_.push_back(measures_.size());
    takes_old_predictions_ |= made.takes_old_predictions();
    takes_head_ |= made.takes_head();
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
  weight_.resize(update.samples.weight == nullptr ? 0 : rows);
  extras_.clear();
  for (const auto& term : terms_) find_extras(*term, rows);
}

void Losses::find_extras(const Term& term, std::size_t rows) {
  const Head& head = *net_.head;
  for (const WantedExtra& wanted : term.extras()) {
    const std::vector<ExtraSamples>& all = update_->samples.extras;
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == wanted.name; });
    const bool is_action = wanted.type == ExtraType::kAction;
    const ExtraType own = head.is_discrete() ? ExtraType::kInteger : ExtraType::kFloat;
    if (found == all.end() || found->type != (is_action ? own : wanted.type) ||
        (is_action && found->size != head.action_size())) {
      throw std::invalid_argument("the rollout has no extra '" + wanted.name +
                                  "' of the type and size that a term reads");
    }
    const std::size_t row_bytes = found->size * bytes_of(found->type);
    extras_.push_back({&*found, row_bytes, std::vector<std::byte>(rows * row_bytes)});
  }
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
    if (from.weight != nullptr) weight_[row] = from.weight[sample];
    for (Gathered& extra : extras_) {
      std::copy_n(extra.from->data + sample * extra.row_bytes, extra.row_bytes,
                  extra.bytes.data() + row * extra.row_bytes);
    }
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
  std::vector<ExtraRows> extras;
  for (const Gathered& extra : extras_) {
    extras.push_back({extra.from->name, extra.from->size, extra.bytes.data() + first * extra.row_bytes});
  }
  std::optional<PartBlock> labeled;
  std::optional<HeadRows> head_for_terms;
  if (takes_head_) {
    const std::size_t slots = kCritics + net_.critics.size() * kSlotsOfPart;
    labeled.emplace(net_.head_part, block, workspace, slots);
    head_for_terms.emplace(HeadRows{head, labeled->rows.learned(count, {workspace, slots + kSlotsOfPart}), done.mask,
                                    net_.head_part.vector_sizes(), labeled->scratch(), labeled->rows.gradient()});
  }
  const ObjectiveRows rows{count,
                           log_ratio_.data() + first,
                           entropy_.data() + first,
                           advantage_.data() + first,
                           returns_.data() + first,
                           critics.rows(),
                           extras,
                           head_for_terms ? &*head_for_terms : nullptr};
  const ObjectiveGradient out{by_log_prob_.data() + first, by_entropy_.data() + first};
  run_terms(false, minibatch, block, rows, out);
  if (!weight_.empty()) weigh(block, critics.rows());
  run_terms(true, minibatch, block, rows, out);
  if (!takes_head_) return head.gradient(acted, done, out.log_prob, out.entropy, head_rows.gradient());
  head.gradient(acted, done, out.log_prob, out.entropy, head_for_terms->scratch);
  add_gradient(acted, 1, *head_for_terms);
}

void Losses::run_terms(bool of_all_rows, const Minibatch& minibatch, Block block, const ObjectiveRows& rows,
                       const ObjectiveGradient& out) {
  std::array<float*, kMostMeasures> columns;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (terms_[i]->learns_from_all_rows() != of_all_rows) continue;
    const std::size_t begin = first_measure_[i], end = first_measure_[i + 1];
    for (std::size_t k = begin; k < end; ++k) columns[k - begin] = measured_[k].data() + block.first;
    const double weight = update_->weights[i] / static_cast<double>(minibatch.count);
    terms_[i]->run(rows, static_cast<float>(weight), {columns.data(), end - begin}, out);
  }
}

/// Multiplies the measures and gradients of the terms so far by the row weights; rows of weight 0 may hold NaN.
void Losses::weigh(Block block, std::span<const CriticRows> critics) {
  for (std::size_t i = 0; i < block.count; ++i) {
    const std::size_t row = block.first + i;
    const auto scale = [by = weight_[row]](float* numbers, std::size_t count) {
      for (std::size_t k = 0; k < count; ++k) numbers[k] = by == 0 ? 0 : by * numbers[k];
    };
    scale(&by_log_prob_[row], 1);
    scale(&by_entropy_[row], 1);
    for (std::size_t term = 0; term < terms_.size(); ++term) {
      if (terms_[term]->learns_from_all_rows()) continue;
      for (std::size_t k = first_measure_[term]; k < first_measure_[term + 1]; ++k) scale(&measured_[k][row], 1);
    }
    for (const CriticRows& critic : critics) {
      const GivenGradient& gradient = critic.gradient;
      for (std::size_t k = 0; k < gradient.given.size(); ++k) {
        const std::size_t stride = critic.predicted.given[k].stride;
        scale(gradient.given[k] + i * stride, stride);
      }
      for (std::size_t k = 0; k < gradient.vectors.size(); ++k) {
        const std::size_t size = critic.vector_sizes[k];
        if (gradient.vectors[k] != nullptr) scale(gradient.vectors[k] + i * size, size);
      }
    }
  }
}

double Losses::sum(std::size_t measure, std::size_t rows) const {
  const float* const numbers = measured_[measure].data();
  std::array<double, 8> sums{};  // always in the same order
  for (std::size_t i = 0; i < rows; ++i) sums[i % 8] += static_cast<double>(numbers[i]);
  double sum = 0;
  for (const double one : sums) sum += one;
  return sum;
}

}  // namespace surefoot
