#include "surefoot/learner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "learning_policy.hpp"
#include "surefoot/crew.hpp"
#include "transforms.hpp"

namespace surefoot {

namespace {

/// Rows that go through all layers together: their activations stay in the nearest caches.
constexpr std::size_t kBlockRows = 48;
/// Floats of the gradient that one task measures.
constexpr std::size_t kMeasured = 16384;
constexpr std::size_t kNormalizedRows = 256;
/// Samples that are shuffled ahead: epochs side by side keep all threads busy.
constexpr std::size_t kShuffled = 1 << 20;
/// Samples times multiply-adds for which another thread pays off: a few microseconds.
constexpr std::size_t kThreadWork = 200'000;
/// Measures that a term may have.
constexpr std::size_t kMostMeasures = 16;
constexpr double kNormEpsilon = 1e-6;

/// Slots of a thread's workspace; layers that sum up gradients have those before.
enum Slot : std::size_t { kTermGradients = 8, kHead = 24, kCritic = 40, kImages = 56 };

/// The sum of numbers, in the same order always.
double sum_of(const float* numbers, std::size_t count) {
  std::array<double, 8> sums{};
  for (std::size_t i = 0; i < count; ++i) sums[i % 8] += static_cast<double>(numbers[i]);
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

AdamStep adam_step(const OptimizerSettings& by, std::size_t steps, float scale) {
  const double count = static_cast<double>(steps);
  const double mean_bias = 1 - std::pow(by.beta1, count), square_bias = 1 - std::pow(by.beta2, count);
  return {.scale = scale,
          .added_decay = static_cast<float>(by.is_decoupled ? 0 : by.weight_decay),
          .kept = static_cast<float>(by.is_decoupled ? 1 - by.lr * by.weight_decay : 1),
          .new_mean = static_cast<float>(1 - by.beta1),
          .old_square = static_cast<float>(by.beta2),
          .new_square = static_cast<float>(1 - by.beta2),
          .rate = static_cast<float>(by.lr / mean_bias),
          .root_scale = static_cast<float>(1 / std::sqrt(square_bias)),
          .epsilon = static_cast<float>(by.epsilon)};
}

}  // namespace

class Learner::Work {
 public:
  Work(const PolicyPlan& plan, const std::vector<PartPlan>& terms, std::span<const NamedTensor> tensors,
       const Kernels& kernels);

  std::vector<std::string> measures() const;
  std::size_t num_terms() const { return terms_.size(); }
  UpdateRecord learn(const Update& update, std::span<const NamedTensor> tensors, const FlatMemory& memory,
                     ThreadPool& pool);

  Policy policy;

 private:
  /// One thing that a gradient is summed into: a layer with what it was given, or a vector.
  struct Summand {
    Dense* layer;
    const Matrix* in;
    const Matrix* gradient;
    FreeVector* vector;
    std::size_t first_task;
  };

  void prepare(const Update& update, std::span<const NamedTensor> tensors, const FlatMemory& memory);
  void add_summands();
  void add(Dense* layer, const Matrix* in, const Matrix* gradient, FreeVector* vector, std::size_t tasks);
  std::size_t threads_worth(const Update& update) const;

  void run(Crew& crew);
  void shuffle(Crew& crew, std::size_t first);
  void carry_states(Crew& crew);
  void step(Crew& crew, const Minibatch& minibatch);
  void propagate(Crew& crew, const Minibatch& minibatch, const Piece& piece);
  void remember(Crew& crew, const Piece& piece);
  void begin_sequences(const Piece& piece);
  void end_sequences(const Piece& piece, const SequenceSamples::Carry& carry);
  std::vector<double> squares_to_clip(Crew& crew);
  std::vector<double> squares_of_all(Crew& crew) const;
  void record(const Minibatch& minibatch, double norm, bool is_finite);

  // Tasks: any thread may do them.
  void normalize_obs(std::size_t task);
  void sum(std::size_t task, const Piece& piece, bool adds, Workspace& workspace);
  void move(std::size_t task, const AdamStep& by);

  void gather_obs(const Piece& piece, Block block);
  void gather(const Minibatch& minibatch, const Piece& piece, Block block);
  void compute_losses(const Minibatch& minibatch, Block block, Workspace& workspace);
  double epoch_kl(std::size_t epoch) const;

  const Kernels& kernels_;
  LearningPolicy net_;
  std::vector<NamedTensor> expected_;  // names and shapes
  std::vector<std::unique_ptr<Term>> terms_;
  std::vector<std::size_t> first_measure_;  // of each term
  std::vector<std::string> measures_;
  std::vector<Summand> summands_;
  std::size_t sum_tasks_ = 0;
  std::size_t most_rows_;                                        // that a piece has
  std::vector<std::pair<std::size_t, std::size_t>> step_tasks_;  // summand and task

  // The update that runs.
  const Update* update_ = nullptr;
  FlatMemory memory_{};
  std::vector<AlignedFloats> normalized_;          // observations of all samples
  std::vector<Normalization> shifts_;              // of observations; a null shift: as they come
  std::vector<const float*> prepared_;             // the same, or as they came
  std::vector<std::vector<float>> states_;         // that sequences begin with, of each part [places, size]
  std::vector<std::vector<std::int64_t>> orders_;  // of some epochs
  std::vector<Minibatch> minibatches_;             // of the epoch that runs
  std::vector<Piece> carried_;                     // of each carry
  std::vector<double> squares_;                    // of the gradient, one a task
  std::vector<double> sums_;                       // of the measures, over the pieces of a minibatch
  UpdateRecord record_;
  std::vector<Workspace> workspaces_;  // of each thread

  // Samples of the piece that runs.
  std::vector<float> action_, log_prob_, old_log_prob_, log_ratio_, entropy_, advantage_, returns_, old_value_;
  std::vector<float> by_log_prob_, by_entropy_;
  std::vector<std::int64_t> choice_;
  std::unique_ptr<bool[]> mask_;
  std::vector<std::vector<float>> measured_;
};

Learner::Work::Work(const PolicyPlan& plan, const std::vector<PartPlan>& terms, std::span<const NamedTensor> tensors,
                    const Kernels& kernels)
    : policy(plan, kernels),
      kernels_(kernels),
      net_((policy.sync(tensors), plan), TensorReader(tensors), kernels),
      expected_(tensors.begin(), tensors.end()) {
  for (const PartPlan& term : terms) {
    const Term& made = *terms_.emplace_back(make_part<Term>(term, kernels));
    first_measure_.push_back(measures_.size());
    if (made.measures().size() > kMostMeasures) throw std::invalid_argument("a term has more than 16 measures");
    for (const std::string& name : made.measures()) {
      measures_.push_back(std::to_string(terms_.size() - 1) + "." + name);
    }
  }
  measured_.resize(measures_.size());
  sums_.resize(measures_.size());
  most_rows_ = net_.piece_rows(kMostRows);
  add_summands();
}

std::vector<std::string> Learner::Work::measures() const {
  std::vector<std::string> names = measures_;
  names.insert(names.end(), {"grad_norm", "skipped"});
  return names;
}

void Learner::Work::add(Dense* layer, const Matrix* in, const Matrix* gradient, FreeVector* vector, std::size_t tasks) {
  for (std::size_t task = 0; task < (layer != nullptr ? layer->step_tasks() : 1); ++task) {
    step_tasks_.emplace_back(summands_.size(), task);
  }
  summands_.push_back({layer, in, gradient, vector, sum_tasks_});
  sum_tasks_ += tasks;
}

void Learner::Work::add_summands() {
  const auto add_layer = [&](const TakingLayer& taking) {
    Dense* const layer = taking.layer;
    add(layer, taking.in->value, &layer->grad, nullptr, layer->sum_tasks());
  };
  const auto add_part = [&](LearningPart& part) {
    for (const TakingLayer& layer : part.layers()) add_layer(layer);
    for (FreeVector& vector : part.vectors()) add(nullptr, nullptr, nullptr, &vector, 1);
  };
  for (LearningBody* body : {&net_.actor, &net_.other}) {
    if (!body->trunk) continue;
    for (LearningEncoder& encoder : body->encoders) {
      for (FreeVector& tensor : encoder.convolutions.tensors()) add(nullptr, nullptr, nullptr, &tensor, 1);
      for (const TakingLayer& layer : encoder.network.layers()) add_layer(layer);
    }
    for (const Cells::Layer& layer : body->cells->layers()) {
      add_layer(layer.input);
      const Dense& gates = layer.plan.has_one_gradient ? *layer.input.layer : *layer.past;
      add(layer.past, &layer.past_states, &gates.grad, nullptr, layer.past->sum_tasks());
    }
    for (const TakingLayer& layer : body->trunk->layers()) add_layer(layer);
  }
  add_part(net_.head_part);
  add_part(net_.critic_part);
  squares_.resize(sum_tasks_);
}

std::size_t Learner::Work::threads_worth(const Update& update) const {
  std::size_t work = 0;
  for (const Dense& layer : net_.layers) work += layer.multiply_adds();
  for (const LearningBody* body : {&net_.actor, &net_.other}) {
    for (const LearningEncoder& encoder : body->encoders) work += encoder.convolutions.multiply_adds();
  }
  return 1 + std::min(update.batch_size, update.samples.count) * work / kThreadWork;
}

void Learner::Work::prepare(const Update& update, std::span<const NamedTensor> tensors, const FlatMemory& memory) {
  const auto is_same = [](const NamedTensor& a, const NamedTensor& b) {
    return a.name == b.name && a.shape == b.shape;
  };
  if (!std::equal(tensors.begin(), tensors.end(), expected_.begin(), expected_.end(), is_same)) {
    throw std::invalid_argument("the tensors are not those that the learner was made for");
  }
  update_ = &update;
  memory_ = memory;
  record_ = {};
  record_.steps = update.steps_before;
  for (const auto& term : terms_) term->begin(update.knobs);
  for (const ActiveTransform& active : update.transforms) active.transform->begin(update.knobs);
  const TensorReader reader(tensors);
  net_.bind(reader, memory);
  const std::size_t ahead = std::max(kShuffled / update.units, std::size_t{1});
  orders_.assign(std::min(update.epochs, ahead), std::vector<std::int64_t>(update.units));
  std::size_t rows = std::min(piece_size(update, most_rows_), update.samples.count), sequences = 0;
  if (const SequenceSamples* given = update.samples.sequences) {
    sequences = std::min(rows, given->runs.size());
    carried_.clear();
    for (const SequenceSamples::Carry& carry : given->carries) {
      carried_.push_back(packed(carry.runs, carry.from));
      rows = std::max(rows, carried_.back().samples.size());
      sequences = std::max(sequences, carry.runs.size());
    }
    states_.resize(net_.state_sizes.size());
  }
  net_.reserve(rows, sequences);
  const Head& head = *net_.head;
  for (auto* floats : {&log_prob_, &old_log_prob_, &log_ratio_, &entropy_, &advantage_, &returns_, &old_value_,
                       &by_log_prob_, &by_entropy_}) {
    floats->resize(std::max(floats->size(), rows));
  }
  (head.is_discrete() ? choice_.resize(rows * head.action_size()) : action_.resize(rows * head.action_size()));
  if (update.samples.mask != nullptr) mask_ = std::make_unique<bool[]>(rows * head.mask_size());
  for (auto& column : measured_) column.resize(std::max(column.size(), rows));
  normalized_.resize(net_.plan.obs.size());
  prepared_ = update.samples.obs;
  for (std::size_t i = 0; i < normalized_.size(); ++i) {
    if (net_.plan.obs[i].normalizer.empty()) continue;
    const std::size_t floats = update.samples.count * net_.plan.obs[i].size;
    if (normalized_[i].size() < floats) normalized_[i].resize(floats);
    prepared_[i] = normalized_[i].data();
  }
  shifts_.clear();
  for (const ObsPlan& part : net_.plan.obs) {
    const bool is_plain = part.normalizer.empty();
    shifts_.push_back({is_plain ? nullptr : reader[part.normalizer + ".shift"].data,
                       is_plain ? nullptr : reader[part.normalizer + ".scale"].data, part.clip});
  }
}

UpdateRecord Learner::Work::learn(const Update& update, std::span<const NamedTensor> tensors, const FlatMemory& memory,
                                  ThreadPool& pool) {
  prepare(update, tensors, memory);
  const std::size_t threads = std::min(pool.size(), threads_worth(update));
  Crew crew(threads);
  workspaces_.resize(std::max(workspaces_.size(), threads));
  pool.run(threads, [&](std::size_t thread) {
    if (thread > 0) return crew.help(thread);
    const std::unique_ptr<Crew, void (*)(Crew*)> end(&crew, [](Crew* one) { one->dismiss(); });
    run(crew);
  });
  update_ = nullptr;
  return std::move(record_);
}

// tour: update
void Learner::Work::run(Crew& crew) {
  const Update& update = *update_;
  const std::size_t parts = (update.samples.count + kNormalizedRows - 1) / kNormalizedRows;
  crew.each(parts, [&](std::size_t part, std::size_t) { normalize_obs(part); });
  for (std::size_t epoch = 0; epoch < update.epochs; ++epoch) {
    if (epoch % orders_.size() == 0) shuffle(crew, epoch);
    minibatches_ = minibatches_of(update, orders_[epoch % orders_.size()], most_rows_);
    crew.each(minibatches_.size(), [&](std::size_t i, std::size_t) { measure_advantages(update, minibatches_[i]); });
    if (update.samples.sequences != nullptr) carry_states(crew);
    for (const Minibatch& minibatch : minibatches_) {
      if (update.may_go_on && !update.may_go_on()) return;
      step(crew, minibatch);
    }
    record_.minibatches.push_back(minibatches_.size());
    if (epoch_kl(epoch) > update.target_kl) break;
  }
}

/// One step of the optimizer: the gradient of all pieces, then Adam, unless the gradient is not finite.
void Learner::Work::step(Crew& crew, const Minibatch& minibatch) {
  for (std::size_t i = 0; i < minibatch.pieces.size(); ++i) {
    const Piece& piece = minibatch.pieces[i];
    propagate(crew, minibatch, piece);
    crew.each(sum_tasks_ + measures_.size(),
              [&](std::size_t task, std::size_t thread) { sum(task, piece, i > 0, workspaces_[thread]); });
  }
  const double norm = std::sqrt(sum_of(squares_to_clip(crew)));
  const bool is_finite = std::isfinite(static_cast<float>(norm));
  if (is_finite) {
    const double scale = std::min(update_->optimizer.max_norm / (norm + kNormEpsilon), 1.0);
    const AdamStep by = adam_step(update_->optimizer, ++record_.steps, static_cast<float>(scale));
    crew.each(step_tasks_.size(), [&](std::size_t task, std::size_t) { move(task, by); });
  }
  record(minibatch, norm, is_finite);
}
// tour: end

/// The orders of the next epochs.
void Learner::Work::shuffle(Crew& crew, std::size_t first) {
  const std::size_t count = std::min(orders_.size(), update_->epochs - first);
  crew.each(count, [&](std::size_t i, std::size_t) { permute(*update_, first + i, orders_[i]); });
}

/// The squares of the gradient as it is after all transforms, part by part.
std::vector<double> Learner::Work::squares_to_clip(Crew& crew) {
  if (update_->on_gradient) {
    update_->on_gradient();
    return squares_of_all(crew);
  }
  if (update_->transforms.empty()) return squares_;
  return transformed(kernels_, crew, update_->transforms, memory_, squares_, record_);
}

/// The squares of a gradient that others changed, part by part.
std::vector<double> Learner::Work::squares_of_all(Crew& crew) const {
  std::vector<double> squares((memory_.size + kMeasured - 1) / kMeasured);
  crew.each(squares.size(), [&](std::size_t part, std::size_t) {
    const std::size_t first = part * kMeasured, count = std::min(kMeasured, memory_.size - first);
    squares[part] = kernels_.sum_squares(1, count, {memory_.gradient + first, count});
  });
  return squares;
}

void Learner::Work::move(std::size_t task, const AdamStep& by) {
  const auto [index, part] = step_tasks_[task];
  const Summand& summand = summands_[index];
  if (summand.layer != nullptr) {
    summand.layer->step(part, by, memory_);
  } else if (summand.vector->parameter.learns) {
    summand.vector->parameter.step(kernels_, by, memory_, 0, summand.vector->parameter.size);
  }
}

void Learner::Work::record(const Minibatch& minibatch, double norm, bool is_finite) {
  for (const double sum : sums_) record_.measures.push_back(sum / static_cast<double>(minibatch.count));
  record_.measures.push_back(norm);
  record_.measures.push_back(is_finite ? 0 : 1);
  record_.shares.push_back(static_cast<double>(minibatch.count) / static_cast<double>(update_->num_valid));
}

void Learner::Work::normalize_obs(std::size_t task) {
  const std::size_t first = task * kNormalizedRows;
  const std::size_t rows = std::min(kNormalizedRows, update_->samples.count - first);
  for (std::size_t i = 0; i < shifts_.size(); ++i) {
    if (shifts_[i].shift == nullptr) continue;
    const std::size_t begin = first * net_.plan.obs[i].size;
    kernels_.normalize(shifts_[i], rows, net_.plan.obs[i].size, update_->samples.obs[i] + begin,
                       normalized_[i].data() + begin);
  }
}

namespace {

/// Blocks of nearly equal size, at least one for each thread where there are enough rows.
struct Blocks {
  std::size_t rows, count;

  Blocks(std::size_t all, std::size_t threads)
      : rows(all), count(std::max((all + kBlockRows - 1) / kBlockRows, std::min(threads, (all + 7) / 8))) {
    if (count > threads) count = (count + threads - 1) / threads * threads;
    count = std::min(count, rows);
  }

  Block operator[](std::size_t index) const {
    const std::size_t small = rows / count, larger = rows % count;
    return {index * small + std::min(index, larger), small + (index < larger ? 1 : 0)};
  }
};

}  // namespace

/// From samples to the gradient of every layer's output.
void Learner::Work::propagate(Crew& crew, const Minibatch& minibatch, const Piece& piece) {
  const Blocks blocks(piece.samples.size(), crew.size());
  const auto over_blocks = [&](const auto& work) {
    crew.each(blocks.count, [&](std::size_t i, std::size_t thread) { work(blocks[i], workspaces_[thread]); });
  };
  if (net_.remembering.empty()) {
    over_blocks([&](Block block, Workspace& workspace) {
      gather(minibatch, piece, block);
      net_.encode(block);
      net_.run_trunks(block);
      compute_losses(minibatch, block, workspace);
      net_.back_through_trunks(block);
      net_.back_through_encoders(block, {workspace, kImages});
    });
    return;
  }
  over_blocks([&](Block block, Workspace&) {
    gather(minibatch, piece, block);
    net_.encode(block);
  });
  remember(crew, piece);
  over_blocks([&](Block block, Workspace& workspace) {
    net_.run_trunks(block);
    compute_losses(minibatch, block, workspace);
    net_.back_through_trunks(block);
  });
  const std::vector<std::size_t> begins = piece.steps.shares(crew.size());
  for (const LearningPolicy::Remembering& part : net_.remembering) {
    for (std::size_t layer = part.cells->num_layers(); layer-- > 0;) {
      crew.each(begins.size() - 1, [&](std::size_t i, std::size_t) {
        part.cells->backward(layer, piece.steps, {begins[i], begins[i + 1]});
      });
      over_blocks([&](Block block, Workspace&) { part.cells->pass_back(layer, block); });
    }
  }
  over_blocks([&](Block block, Workspace& workspace) { net_.back_through_encoders(block, {workspace, kImages}); });
}

/// All memories forward, layer by layer.
void Learner::Work::remember(Crew& crew, const Piece& piece) {
  begin_sequences(piece);
  const Blocks blocks(piece.samples.size(), crew.size());
  const std::vector<std::size_t> begins = piece.steps.shares(crew.size());
  for (const LearningPolicy::Remembering& part : net_.remembering) {
    for (std::size_t layer = 0; layer < part.cells->num_layers(); ++layer) {
      crew.each(blocks.count, [&](std::size_t i, std::size_t) { part.cells->take_inputs(layer, blocks[i]); });
      crew.each(begins.size() - 1, [&](std::size_t i, std::size_t) {
        part.cells->forward(layer, piece.steps, {begins[i], begins[i + 1]});
      });
    }
  }
}

void Learner::Work::begin_sequences(const Piece& piece) {
  for (const LearningPolicy::Remembering& body : net_.remembering) {
    const std::size_t hidden = body.cells->hidden();
    for (std::size_t layer = 0; layer < body.cells->num_layers(); ++layer) {
      for (std::size_t part = 0; part < body.cells->num_parts(); ++part) {
        const std::size_t index = body.first_part + part, size = net_.state_sizes[index];
        float* const to = body.cells->before(layer, part);
        for (std::size_t i = 0; i < piece.places.size(); ++i) {
          const float* const from = states_[index].data() + piece.places[i] * size + layer * hidden;
          const bool is_start = update_->samples.sequences->episode_start[piece.samples[i]];
          for (std::size_t k = 0; k < hidden; ++k) to[i * hidden + k] = is_start ? 0.0f : from[k];
        }
      }
    }
  }
}

/// The states that sequences begin with: those of the rollout, computed anew where that is wanted.
void Learner::Work::carry_states(Crew& crew) {
  const SequenceSamples& sequences = *update_->samples.sequences;
  for (std::size_t part = 0; part < states_.size(); ++part) {
    const float* const from = sequences.stored[part];
    states_[part].assign(from, from + sequences.num_places * net_.state_sizes[part]);
  }
  for (std::size_t i = 0; i < carried_.size(); ++i) {
    const Piece& piece = carried_[i];
    const Blocks blocks(piece.samples.size(), crew.size());
    crew.each(blocks.count, [&](std::size_t block, std::size_t) {
      gather_obs(piece, blocks[block]);
      net_.encode(blocks[block]);
    });
    remember(crew, piece);
    end_sequences(piece, sequences.carries[i]);
  }
}

void Learner::Work::end_sequences(const Piece& piece, const SequenceSamples::Carry& carry) {
  for (const LearningPolicy::Remembering& body : net_.remembering) {
    const std::size_t hidden = body.cells->hidden();
    std::vector<float> last(piece.places.size() * hidden);
    for (std::size_t layer = 0; layer < body.cells->num_layers(); ++layer) {
      for (std::size_t part = 0; part < body.cells->num_parts(); ++part) {
        const std::size_t index = body.first_part + part, size = net_.state_sizes[index];
        copy_last(piece.steps, hidden, body.cells->states(layer, part), last.data());
        for (std::size_t i = 0; i < carry.to.size(); ++i) {
          std::copy_n(last.data() + i * hidden, hidden, states_[index].data() + carry.to[i] * size + layer * hidden);
        }
      }
    }
  }
}

void Learner::Work::gather_obs(const Piece& piece, Block block) {
  for (std::size_t part = 0; part < prepared_.size(); ++part) {
    Matrix& obs = net_.obs[part];
    const std::vector<const std::uint8_t*>& images = update_->samples.images;
    const std::uint8_t* const image = images.empty() ? nullptr : images[part];
    for (std::size_t row = block.first; row < block.first + block.count; ++row) {
      const std::size_t first = static_cast<std::size_t>(piece.samples[row]) * obs.size;
      if (image == nullptr) {
        std::copy_n(prepared_[part] + first, obs.size, obs.row(row));
      } else {
        float* const to = obs.row(row);
        for (std::size_t i = 0; i < obs.size; ++i) to[i] = static_cast<float>(image[first + i]) / 255.0f;
      }
    }
  }
}

void Learner::Work::gather(const Minibatch& minibatch, const Piece& piece, Block block) {
  gather_obs(piece, block);
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
    old_value_[row] = from.value[sample];
  }
}

void Learner::Work::compute_losses(const Minibatch& minibatch, Block block, Workspace& workspace) {
  const std::size_t first = block.first, count = block.count;
  const Head& head = *net_.head;
  const std::size_t action = first * head.action_size();
  const Done done{head.is_discrete() ? nullptr : action_.data() + action,
                  head.is_discrete() ? choice_.data() + action : nullptr,
                  update_->samples.mask == nullptr ? nullptr : mask_.get() + first * head.mask_size()};
  const LearningPart::Rows head_rows = net_.head_part.rows(block), critic_rows = net_.critic_part.rows(block);
  const LearnedRows acted = head_rows.learned(count, {workspace, kHead});
  head.evaluate(acted, done, log_prob_.data() + first, entropy_.data() + first);
  for (std::size_t row = first; row < first + count; ++row) {
    log_ratio_[row] = log_prob_[row] - old_log_prob_[row];
    by_log_prob_[row] = 0;
    by_entropy_[row] = 0;
  }
  std::array<float*, LearningPart::Rows::kMost> own{}, own_vectors{};
  const GivenGradient gradient = critic_rows.gradient();
  for (std::size_t i = 0; i < gradient.given.size(); ++i) {
    const std::size_t floats = count * critic_rows.given[i].stride;
    std::fill_n(gradient.given[i], floats, 0.0f);
    own[i] = workspace.floats(kTermGradients + i, floats);
  }
  for (std::size_t i = 0; i < gradient.vectors.size(); ++i) {
    if (gradient.vectors[i] == nullptr) continue;
    const std::size_t floats = count * net_.critic_part.vector_sizes()[i];
    std::fill_n(gradient.vectors[i], floats, 0.0f);
    own_vectors[i] = workspace.floats(kTermGradients + LearningPart::Rows::kMost + i, floats);
  }
  const ObjectiveRows rows{count,
                           log_ratio_.data() + first,
                           entropy_.data() + first,
                           advantage_.data() + first,
                           returns_.data() + first,
                           old_value_.data() + first,
                           *net_.critic,
                           critic_rows.learned(count, {workspace, kCritic}),
                           net_.critic_part.vector_sizes(),
                           {{own.data(), gradient.given.size()}, {own_vectors.data(), gradient.vectors.size()}}};
  const ObjectiveGradient out{by_log_prob_.data() + first, by_entropy_.data() + first, gradient};
  std::array<float*, kMostMeasures> columns;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const std::size_t begin = first_measure_[i];
    const std::size_t end = i + 1 < terms_.size() ? first_measure_[i + 1] : measures_.size();
    for (std::size_t k = begin; k < end; ++k) columns[k - begin] = measured_[k].data() + first;
    const double weight = update_->weights[i] / static_cast<double>(minibatch.count);
    terms_[i]->run(rows, static_cast<float>(weight), {columns.data(), end - begin}, out);
  }
  head.gradient(acted, done, out.log_prob, out.entropy, head_rows.gradient());
}

void Learner::Work::sum(std::size_t task, const Piece& piece, bool adds, Workspace& workspace) {
  const std::size_t rows = piece.samples.size();
  if (task >= sum_tasks_) {
    const std::size_t index = task - sum_tasks_;
    sums_[index] = (adds ? sums_[index] : 0) + sum_of(measured_[index].data(), rows);
    return;
  }
  const auto after = std::upper_bound(summands_.begin(), summands_.end(), task,
                                      [](std::size_t value, const Summand& one) { return value < one.first_task; });
  const Summand& summand = *(after - 1);
  squares_[task] = summand.layer == nullptr ? summand.vector->sum(kernels_, rows, adds, memory_)
                                            : summand.layer->sum(task - summand.first_task, rows, summand.in->view(),
                                                                 summand.gradient->view(), adds, memory_, workspace);
}

double Learner::Work::epoch_kl(std::size_t epoch) const {
  const auto found = std::find_if(measures_.begin(), measures_.end(),
                                  [](const std::string& name) { return name.ends_with(".approx_kl"); });
  if (found == measures_.end()) return 0;
  const std::size_t column = static_cast<std::size_t>(found - measures_.begin()), width = measures_.size() + 2;
  std::size_t first = 0;
  for (std::size_t i = 0; i < epoch; ++i) first += record_.minibatches[i];
  double kl = 0;
  for (std::size_t i = first; i < first + record_.minibatches[epoch]; ++i) {
    kl += record_.shares[i] * record_.measures[i * width + column];
  }
  return kl;
}

Learner::Learner(const PolicyPlan& plan, const std::vector<PartPlan>& terms, std::span<const NamedTensor> tensors,
                 const Kernels& kernels)
    : work_(std::make_unique<Work>(plan, terms, tensors, kernels)) {}

Learner::~Learner() = default;

const Policy& Learner::policy() const { return work_->policy; }

std::size_t Learner::num_terms() const { return work_->num_terms(); }

std::vector<std::string> Learner::measures() const { return work_->measures(); }

UpdateRecord Learner::learn(const Update& update, std::span<const NamedTensor> tensors, const FlatMemory& memory,
                            ThreadPool& pool) {
  return work_->learn(update, tensors, memory, pool);
}

}  // namespace surefoot
