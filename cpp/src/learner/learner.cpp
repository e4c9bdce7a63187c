#include "surefoot/learner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "losses.hpp"
#include "observations.hpp"
#include "sequence_states.hpp"
#include "surefoot/crew.hpp"
#include "transforms.hpp"

namespace surefoot {

namespace {

/// Number of rows that go through all layers together, so that their activations stay in the nearest caches.
constexpr std::size_t kBlockRows = 48;
/// Floats of the gradient whose norm one task computes.
constexpr std::size_t kMeasured = 16384;
/// Number of samples that are shuffled ahead: several epochs at once keep all threads busy.
constexpr std::size_t kShuffled = 1 << 20;
/// Samples times multiply-adds from which another thread pays off: a few microseconds.
constexpr std::size_t kThreadWork = 200'000;
constexpr double kNormEpsilon = 1e-6;

/// Slots of a thread's workspace; losses and layers that sum up gradients use others.
constexpr std::size_t kEncoderSlots = 24;

}  // namespace

class Learner::Work {
 public:
  Work(const PolicyPlan& plan, const std::vector<PartPlan>& terms, std::span<const NamedTensor> tensors,
       const Kernels& kernels);

  std::vector<std::string> measures() const;
  std::size_t num_terms() const { return losses_.num_terms(); }
  UpdateRecord learn(const Update& update, std::span<const NamedTensor> tensors, const FlatMemory& memory,
                     ThreadPool& pool);

  Policy policy;

 private:
  /// A summand of the gradient: a layer with its input, or a vector.
  struct Summand {
    Dense* layer;
    const Matrix* in;
    const Matrix* gradient;
    FreeVector* vector;
    std::size_t first_task;
  };

  void prepare(const Update& update, std::span<const NamedTensor> tensors, const FlatMemory& memory);
  void add_summands();
  void find_parts();
  void add(Dense* layer, const Matrix* in, const Matrix* gradient, FreeVector* vector, std::size_t tasks);
  std::size_t threads_worth(const Update& update) const;

  void run(Crew& crew);
  std::vector<Minibatch> next_minibatches(Crew& crew, std::size_t epoch);
  void shuffle(Crew& crew, std::size_t first);
  void carry_states(Crew& crew);
  void step(Crew& crew, const Minibatch& minibatch);
  void propagate(Crew& crew, const Minibatch& minibatch, const Piece& piece);
  void remember(Crew& crew, const Piece& piece);
  double measure_gradient(Crew& crew);
  std::vector<double> clip_scales() const;
  void record(const Minibatch& minibatch, double norm, bool is_finite);

  // Tasks, which run on any thread.
  void sum(std::size_t task, const Piece& piece, bool adds, Workspace& workspace);
  void move(std::size_t task, const AdamSteps& by);

  double epoch_kl(std::size_t epoch) const;

  const Kernels& kernels_;
  LearningPolicy net_;
  std::vector<NamedTensor> expected_;  // names and shapes
  Observations obs_;
  SequenceStates states_;
  Losses losses_;
  std::vector<Summand> summands_;
  std::size_t sum_tasks_ = 0;
  std::size_t most_rows_;                                        // maximum number of rows of a piece
  std::vector<std::pair<std::size_t, std::size_t>> step_tasks_;  // summand and task

  // The current update.
  const Update* update_ = nullptr;
  FlatMemory memory_{};
  std::vector<std::vector<std::int64_t>> orders_;  // of the epochs that were shuffled ahead
  std::vector<Minibatch> minibatches_;             // of the current epoch
  std::vector<double> squares_;                    // of the gradient, one per task
  std::vector<std::size_t> parts_;                 // part of the network of each task
  std::vector<Stretch> measured_;                  // the whole gradient
  std::vector<double> part_squares_;               // squared norm of each part
  std::vector<double> sums_;                       // of the measures, over the pieces of a minibatch
  UpdateRecord record_;
  std::vector<Workspace> workspaces_;  // of each thread
};

Learner::Work::Work(const PolicyPlan& plan, const std::vector<PartPlan>& terms, std::span<const NamedTensor> tensors,
                    const Kernels& kernels)
    : policy(plan, kernels),
      kernels_(kernels),
      net_((policy.sync(tensors), plan), TensorReader(tensors), kernels),
      expected_(tensors.begin(), tensors.end()),
      obs_(net_, kernels),
      states_(net_),
      losses_(terms, net_, kernels) {
  sums_.resize(losses_.measures().size());
  most_rows_ = net_.piece_rows(kMostRows);
  add_summands();
}

std::vector<std::string> Learner::Work::measures() const {
  std::vector<std::string> names = losses_.measures();
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
      for (FreeVector& tensor : encoder.tensors()) add(nullptr, nullptr, nullptr, &tensor, 1);
      for (const TakingLayer& layer : encoder.layers()) add_layer(layer);
    }
    for (const Cells::Layer& layer : body->cells->layers()) {
      add_layer(layer.input);
      add(layer.past, &layer.past_states, &layer.gates().grad, nullptr, layer.past->sum_tasks());
    }
    for (const TakingLayer& layer : body->trunk->layers()) add_layer(layer);
  }
  add_part(net_.head_part);
  for (LearningCritic& one : net_.critics) {
    for (const TakingLayer& layer : one.trunk->layers()) add_layer(layer);
    add_part(one.part);
  }
  squares_.resize(sum_tasks_);
}

/// Determines the part of the network that each task sums up, and the ranges of the gradient by part.
void Learner::Work::find_parts() {
  part_squares_.assign(memory_.num_parts(), 0);
  measured_.clear();
  for (const PartSlice& slice : memory_.parts) {
    for (std::size_t first = slice.begin; first < slice.end; first += kMeasured) {
      measured_.push_back({first, std::min(kMeasured, slice.end - first), slice.part});
    }
  }
  parts_.assign(sum_tasks_, 0);
  for (std::size_t i = 0; i < summands_.size(); ++i) {
    const Summand& summand = summands_[i];
    const Parameter& parameter = summand.layer != nullptr ? summand.layer->learned() : summand.vector->parameter;
    if (!parameter.learns) continue;
    const std::size_t end = i + 1 < summands_.size() ? summands_[i + 1].first_task : sum_tasks_;
    std::fill(parts_.begin() + static_cast<std::ptrdiff_t>(summand.first_task),
              parts_.begin() + static_cast<std::ptrdiff_t>(end), parameter.part);
  }
}

std::size_t Learner::Work::threads_worth(const Update& update) const {
  std::size_t work = 0;
  for (const Dense& layer : net_.layers) work += layer.multiply_adds();
  for (const LearningBody* body : {&net_.actor, &net_.other}) {
    for (const LearningEncoder& encoder : body->encoders) work += encoder.encoder().multiply_adds();
  }
  return 1 + std::min(update.batch_size, update.samples.count) * work / kThreadWork;
}

void Learner::Work::prepare(const Update& update, std::span<const NamedTensor> tensors, const FlatMemory& memory) {
  const auto is_same = [](const NamedTensor& a, const NamedTensor& b) {
    return a.name == b.name && a.shape == b.shape;
  };
  if (!std::equal(tensors.begin(), tensors.end(), expected_.begin(), expected_.end(), is_same)) {
    throw std::invalid_argument("the tensors are not those that the learner was created for");
  }
  update_ = &update;
  memory_ = memory;
  record_ = {};
  record_.steps = update.steps_before;
  for (const ActiveTransform& active : update.transforms) active.transform->begin(update.knobs);
  const TensorReader reader(tensors);
  net_.bind(reader, memory);
  find_parts();
  const std::size_t ahead = std::max(kShuffled / update.units, std::size_t{1});
  orders_.assign(std::min(update.epochs, ahead), std::vector<std::int64_t>(update.units));
  obs_.begin(update.samples, reader);
  states_.begin(update.samples.sequences);
  const std::size_t piece = std::min(piece_size(update, most_rows_), update.samples.count);
  const SequenceSamples* const sequences = update.samples.sequences;
  net_.reserve(std::max(piece, states_.most_rows()),
               sequences == nullptr ? 0 : std::max(std::min(piece, sequences->runs.size()), states_.most_sequences()));
  losses_.begin(update, piece);
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
  crew.each(obs_.num_tasks(), [&](std::size_t task, std::size_t) { obs_.normalize(task); });
  for (std::size_t epoch = 0; epoch < update.epochs; ++epoch) {
    minibatches_ = next_minibatches(crew, epoch);
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
    crew.each(sum_tasks_ + sums_.size(),
              [&](std::size_t task, std::size_t thread) { sum(task, piece, i > 0, workspaces_[thread]); });
  }
  if (minibatch.pieces.empty()) {  // all of its samples belong to other processes
    std::fill_n(memory_.gradient, memory_.size, 0.0f);
    std::fill(sums_.begin(), sums_.end(), 0.0);
  }
  if (update_->on_gradient) update_->on_gradient(sums_);
  const double norm = measure_gradient(crew);
  const bool is_finite = std::isfinite(static_cast<float>(norm));
  if (is_finite) {
    const AdamSteps by(update_->optimizer, ++record_.steps, clip_scales());
    crew.each(step_tasks_.size(), [&](std::size_t task, std::size_t) { move(task, by); });
  }
  record(minibatch, norm, is_finite);
}
// tour: end

std::vector<Minibatch> Learner::Work::next_minibatches(Crew& crew, std::size_t epoch) {
  if (update_->shared != nullptr) return shared_minibatches_of(*update_, epoch, most_rows_);
  if (epoch % orders_.size() == 0) shuffle(crew, epoch);
  return minibatches_of(*update_, orders_[epoch % orders_.size()], most_rows_);
}

/// Shuffles the next epochs.
void Learner::Work::shuffle(Crew& crew, std::size_t first) {
  const std::size_t count = std::min(orders_.size(), update_->epochs - first);
  crew.each(count, [&](std::size_t i, std::size_t) { permute(*update_, first + i, orders_[i]); });
}

/// The norm of the gradient after native transforms, and the squared norms of its parts. Uses the squares that the
/// tasks summed up, unless the gradient was changed since.
double Learner::Work::measure_gradient(Crew& crew) {
  std::vector<double> squares;  // of each range, if the gradient was changed
  if (update_->on_gradient) {
    squares.resize(measured_.size());
    crew.each(squares.size(), [&](std::size_t i, std::size_t) {
      const auto [first, count, part] = measured_[i];
      squares[i] = kernels_.sum_squares(1, count, {memory_.gradient + first, count});
    });
  } else if (!update_->transforms.empty()) {
    const double before = std::accumulate(squares_.begin(), squares_.end(), 0.0);
    squares = transformed(kernels_, crew, update_->transforms, memory_, measured_, before, record_);
  }
  std::fill(part_squares_.begin(), part_squares_.end(), 0.0);
  for (std::size_t i = 0; i < squares.size(); ++i) part_squares_[measured_[i].part] += squares[i];
  if (squares.empty()) {
    for (std::size_t task = 0; task < squares_.size(); ++task) part_squares_[parts_[task]] += squares_[task];
  }
  return std::sqrt(std::accumulate(part_squares_.begin(), part_squares_.end(), 0.0));
}

/// The factor by which each clipped norm scales its parts.
std::vector<double> Learner::Work::clip_scales() const {
  std::vector<double> squares(memory_.num_parts());  // there are at most as many norms as parts
  for (std::size_t part = 0; part < squares.size(); ++part) squares[memory_.clips[part]] += part_squares_[part];
  for (double& one : squares) one = std::min(update_->optimizer.max_norm / (std::sqrt(one) + kNormEpsilon), 1.0);
  return squares;
}

void Learner::Work::move(std::size_t task, const AdamSteps& by) {
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
  for (const double square : part_squares_) record_.measures.push_back(std::sqrt(square));
  record_.shares.push_back(static_cast<double>(minibatch.count) / static_cast<double>(update_->num_valid));
}

namespace {

/// Splits rows into blocks of nearly equal size, at least one per thread if there are enough rows.
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

/// Computes the gradient of every layer's output from the samples.
void Learner::Work::propagate(Crew& crew, const Minibatch& minibatch, const Piece& piece) {
  const Blocks blocks(piece.samples.size(), crew.size());
  const auto over_blocks = [&](const auto& work) {
    crew.each(blocks.count, [&](std::size_t i, std::size_t thread) { work(blocks[i], workspaces_[thread]); });
  };
  if (net_.remembering.empty()) {
    over_blocks([&](Block block, Workspace& workspace) {
      obs_.gather(piece, block);
      losses_.gather(minibatch, piece, block);
      net_.encode(block, {workspace, kEncoderSlots});
      net_.run_trunks(block);
      losses_.run(minibatch, block, workspace);
      net_.back_through_trunks(block);
      net_.back_through_encoders(block, {workspace, kEncoderSlots});
    });
    return;
  }
  over_blocks([&](Block block, Workspace& workspace) {
    obs_.gather(piece, block);
    losses_.gather(minibatch, piece, block);
    net_.encode(block, {workspace, kEncoderSlots});
  });
  remember(crew, piece);
  over_blocks([&](Block block, Workspace& workspace) {
    net_.run_trunks(block);
    losses_.run(minibatch, block, workspace);
    net_.back_through_trunks(block);
  });
  const std::vector<std::size_t> begins = piece.steps.shares(crew.size());
  for (const LearningPolicy::Remembering& one : net_.remembering) {
    for (std::size_t layer = one.cells->num_layers(); layer-- > 0;) {
      crew.each(begins.size() - 1, [&](std::size_t i, std::size_t) {
        one.cells->backward(layer, piece.steps, {begins[i], begins[i + 1]});
      });
      over_blocks([&](Block block, Workspace&) { one.cells->pass_back(layer, block); });
    }
  }
  over_blocks(
      [&](Block block, Workspace& workspace) { net_.back_through_encoders(block, {workspace, kEncoderSlots}); });
}

/// Runs all memories forward, layer by layer.
void Learner::Work::remember(Crew& crew, const Piece& piece) {
  states_.enter(piece);
  const Blocks blocks(piece.samples.size(), crew.size());
  const std::vector<std::size_t> begins = piece.steps.shares(crew.size());
  for (const LearningPolicy::Remembering& one : net_.remembering) {
    for (std::size_t layer = 0; layer < one.cells->num_layers(); ++layer) {
      crew.each(blocks.count, [&](std::size_t i, std::size_t) { one.cells->take_inputs(layer, blocks[i]); });
      crew.each(begins.size() - 1, [&](std::size_t i, std::size_t) {
        one.cells->forward(layer, piece.steps, {begins[i], begins[i + 1]});
      });
    }
  }
}

/// Prepares the initial states of sequences, recomputed if configured.
void Learner::Work::carry_states(Crew& crew) {
  states_.restore();
  for (std::size_t i = 0; i < states_.carried().size(); ++i) {
    const Piece& piece = states_.carried()[i];
    const Blocks blocks(piece.samples.size(), crew.size());
    crew.each(blocks.count, [&](std::size_t block, std::size_t thread) {
      obs_.gather(piece, blocks[block]);
      net_.encode(blocks[block], {workspaces_[thread], kEncoderSlots});
    });
    remember(crew, piece);
    states_.leave(i);
  }
}

void Learner::Work::sum(std::size_t task, const Piece& piece, bool adds, Workspace& workspace) {
  const std::size_t rows = piece.samples.size();
  if (task >= sum_tasks_) {
    const std::size_t index = task - sum_tasks_;
    sums_[index] = (adds ? sums_[index] : 0) + losses_.sum(index, rows);
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
  const std::vector<std::string>& names = losses_.measures();
  const auto found =
      std::find_if(names.begin(), names.end(), [](const std::string& name) { return name.ends_with(".approx_kl"); });
  if (found == names.end()) return 0;
  const std::size_t column = static_cast<std::size_t>(found - names.begin()),
                    width = names.size() + 2 + part_squares_.size();
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
