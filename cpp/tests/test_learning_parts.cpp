// Heads, critics and activations when they learn: against formulas in double, whose gradients are finite differences.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "check.hpp"
#include "engine_arrays.hpp"
#include "made_up.hpp"
#include "same_bits.hpp"
#include "surefoot/parts/critic.hpp"
#include "surefoot/parts/head.hpp"

namespace surefoot {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kUntouched = 12345.0f;
constexpr std::size_t kPadding = 3;  // columns between the rows of what layers gave
const double kHalfLogTwoPi = 0.5 * std::log(2 * M_PI);

/// Numbers that look random, within `scale` of 0.
float made_up(std::size_t i, double scale, double phase) {
  return static_cast<float>(scale * std::sin(1.7 * static_cast<double>(i * i % 1013) + phase));
}

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One row in double: what each layer gave, the vectors, and what was done.
struct PlainRow {
  std::vector<Doubles> given, vectors;
  Doubles action{};
  std::vector<std::int64_t> choice{};
  std::vector<bool> mask{};

  bool allows(std::size_t i) const { return mask.empty() || mask[i]; }
};

struct PlainValue {
  double log_prob, entropy;
};

/// A head, and its formulas as the Python class has them.
struct HeadCase {
  std::string name;
  PartPlan plan;
  std::size_t size;  // elements of an action
  std::function<PlainValue(const PlainRow&)> formula;
  std::vector<std::int64_t> choices{};  // of each element; empty: Box actions
  bool is_masked = false;
  bool is_unit = false;  // actions lie in [0, 1]
};

PlainValue gaussian_value(const PlainRow& row, double floor, bool squash) {
  PlainValue sum{0, 0};
  for (std::size_t j = 0; j < row.action.size(); ++j) {
    const double raw = row.vectors[0][j] + (row.given.size() > 1 ? row.given[1][j] : 0);
    const double mean = row.given[0][j], std = floor + std::exp(raw), u = row.action[j];
    const auto log_det = [](double x) { return 2 * (std::log(2) - x - softplus(-2 * x)); };
    sum.log_prob -= 0.5 * std::pow((u - mean) / std, 2) + std::log(std) + kHalfLogTwoPi;
    sum.entropy += std::log(std) + 0.5 + kHalfLogTwoPi;
    if (!squash) continue;
    sum.log_prob -= log_det(u);
    double weights = 0, weighted = 0;
    for (int k = 0; k < 48; ++k) {
      const double node = -6 + k * 12.0 / 47, weight = std::exp(-0.5 * node * node);
      weights += weight;
      weighted += weight * log_det(mean + std * node);
    }
    sum.entropy += weighted / weights;
  }
  return sum;
}

HeadCase gaussian_case(const std::string& kind, std::size_t size, bool by_state, double floor) {
  const PartPlan plan{kind,
                      {{"low", Doubles(size, -1.0)},
                       {"high", Doubles(size, 1.0)},
                       {"layer", "mean"},
                       {"std_layer", by_state ? "std" : ""},
                       {"log_std", "log_std"},
                       {"std_floor", floor},
                       {"rescale", false}}};
  const double used = static_cast<double>(static_cast<float>(floor));
  return {kind + (by_state ? " by state" : ""), plan, size,
          [used, kind](const PlainRow& row) { return gaussian_value(row, used, kind == "tanh_gaussian"); }};
}

/// By differences, so that it is not the series that the core has.
double digamma(double x) {
  constexpr long double kStep = 1e-5L;
  return static_cast<double>((lgammal(x + kStep) - lgammal(x - kStep)) / (2 * kStep));
}

PlainValue beta_value(const PlainRow& row) {
  PlainValue sum{0, 0};
  const std::size_t size = row.action.size();
  for (std::size_t j = 0; j < size; ++j) {
    const double a = 1 + softplus(row.given[0][j]), b = 1 + softplus(row.given[0][size + j]), total = a + b;
    const double inside = std::clamp(row.action[j], static_cast<double>(1e-6f), static_cast<double>(1 - 1e-6f));
    const double normalizer = std::lgamma(a) + std::lgamma(b) - std::lgamma(total);
    sum.log_prob += (a - 1) * std::log(inside) + (b - 1) * std::log1p(-inside) - normalizer;
    sum.entropy += normalizer - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (total - 2) * digamma(total);
  }
  return sum;
}

HeadCase beta_case(std::size_t size) {
  const PartPlan plan{"beta", {{"low", Doubles(size, -1.0)}, {"high", Doubles(size, 1.0)}, {"layer", "both"}}};
  return {.name = "beta", .plan = plan, .size = size, .formula = beta_value, .is_unit = true};
}

PlainValue categorical_value(const PlainRow& row, const std::vector<std::int64_t>& sizes) {
  PlainValue sum{0, 0};
  std::size_t first = 0;
  for (std::size_t element = 0; element < sizes.size(); ++element) {
    const std::size_t end = first + static_cast<std::size_t>(sizes[element]);
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for (std::size_t i = first; i < end; ++i) {
      if (row.allows(i)) largest = std::max(largest, row.given[0][i]);
    }
    for (std::size_t i = first; i < end; ++i) total += row.allows(i) ? std::exp(row.given[0][i] - largest) : 0;
    for (std::size_t i = first; i < end; ++i) {
      if (!row.allows(i)) continue;  // probability 0
      const double log_prob = row.given[0][i] - largest - std::log(total);
      sum.entropy -= std::exp(log_prob) * log_prob;
      if (static_cast<std::size_t>(row.choice[element]) == i - first) sum.log_prob += log_prob;
    }
    first = end;
  }
  return sum;
}

HeadCase categorical_case(const std::vector<std::int64_t>& sizes, bool is_masked) {
  const std::string kind = sizes.size() == 1 ? "categorical" : "multi_discrete";
  const PartPlan plan{
      kind,
      {{"layer", "logits"}, {"sizes", Doubles(sizes.begin(), sizes.end())}, {"start", Doubles(sizes.size(), 0.0)}}};
  return {.name = kind,
          .plan = plan,
          .size = sizes.size(),
          .formula = [sizes](const PlainRow& row) { return categorical_value(row, sizes); },
          .choices = sizes,
          .is_masked = is_masked};
}

PlainValue bernoulli_value(const PlainRow& row) {
  PlainValue sum{0, 0};
  for (std::size_t j = 0; j < row.choice.size(); ++j) {
    const double logit = row.allows(j) ? row.given[0][j] : -1e4;
    sum.log_prob -= softplus(row.choice[j] != 0 ? -logit : logit);
    sum.entropy += softplus(logit) - sigmoid(logit) * logit;
  }
  return sum;
}

HeadCase bernoulli_case(std::size_t size, bool is_masked) {
  return {.name = "bernoulli",
          .plan = {"bernoulli", {{"layer", "logits"}, {"size", static_cast<double>(size)}}},
          .size = size,
          .formula = bernoulli_value,
          .choices = std::vector<std::int64_t>(size, 2),
          .is_masked = is_masked};
}

HeadCase laplace_case(std::size_t size) {
  const PartPlan plan{"laplace", {{"layer", "location"}, {"size", static_cast<double>(size)}, {"scale", 0.5}}};
  return {"laplace", plan, size, [](const PlainRow& row) {
            PlainValue sum{0, 0};
            for (std::size_t j = 0; j < row.action.size(); ++j) {
              sum.log_prob -= std::abs(row.action[j] - row.given[0][j]) / 0.5 + std::log(2 * 0.5);
              sum.entropy += 1 + std::log(2 * 0.5);
            }
            return sum;
          }};
}

std::vector<HeadCase> head_cases() {
  std::vector<HeadCase> cases;
  for (const std::size_t size : {1, 3, 6, 17}) {
    for (const char* kind : {"gaussian", "tanh_gaussian"}) {
      for (const bool by_state : {false, true}) {
        for (const double floor : {1e-3, 0.5}) cases.push_back(gaussian_case(kind, size, by_state, floor));
      }
    }
    cases.push_back(beta_case(size));
    cases.push_back(laplace_case(size));
    for (const bool is_masked : {false, true}) cases.push_back(bernoulli_case(size, is_masked));
  }
  const std::vector<std::vector<std::int64_t>> sizes{{1}, {2}, {5}, {18}, {1, 1}, {3, 1, 7}, {2, 2, 2, 2, 9}};
  for (const auto& choices : sizes) {
    for (const bool is_masked : {false, true}) cases.push_back(categorical_case(choices, is_masked));
  }
  return cases;
}

/// What a learner gives a head for some rows, made up but the same every time.
struct Minibatch {
  std::size_t count;
  std::vector<std::size_t> sizes{};  // of the layers
  std::vector<Floats> given{}, vectors{};
  Floats action{}, by_log_prob{}, by_entropy{};
  std::vector<std::int64_t> choice{};
  Flags mask{};

  std::size_t stride(std::size_t layer) const { return sizes[layer] + kPadding; }

  Minibatch(const HeadCase& of, const Head& head, std::size_t rows) : count(rows) {
    for (const Learned& layer : head.layers()) {
      const std::size_t index = sizes.size();
      sizes.push_back(layer.size);
      Floats& values = given.emplace_back(count * stride(index), kNan);  // nobody reads the padding
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i % stride(index) < layer.size) values[i] = made_up(i, 1.5, 0.3 + static_cast<double>(index));
      }
    }
    for (const Learned& vector : head.vectors()) {
      Floats& values = vectors.emplace_back(vector.size);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = made_up(i, 0.8, 0.9);
    }
    for (std::size_t row = 0; row < count; ++row) {
      by_log_prob.push_back(made_up(row, 1.0, 0.7));
      by_entropy.push_back(made_up(row, 0.5, 1.9));
    }
    of.choices.empty() ? add_actions(of) : add_choices(of, head.mask_size());
  }

  void add_actions(const HeadCase& of) {
    for (std::size_t i = 0; i < count * of.size; ++i) {
      const float number = made_up(i, 1.2, 0.2);
      action.push_back(of.is_unit ? std::clamp(0.5f + number, 0.0f, 1.0f) : number);  // both ends among them
    }
  }

  void add_choices(const HeadCase& of, std::size_t mask_size) {
    for (std::size_t row = 0; row < count; ++row) {
      for (std::size_t element = 0; element < of.size; ++element) {
        const auto at = static_cast<std::int64_t>(row * 7 + element * 3);
        choice.push_back(at % of.choices[element]);
      }
    }
    if (!of.is_masked) return;
    mask = Flags(count * mask_size);
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = (i * i + i / 3) % 5 < 3;
    if (mask_size == of.size) return;  // yes and no: what was done may be forbidden
    for (std::size_t row = 0; row < count; ++row) {
      bool* allowed = mask.data() + row * mask_size;
      for (std::size_t element = 0; element < of.size; allowed += of.choices[element++]) {
        allowed[choice[row * of.size + element]] = true;
      }
    }
  }

  PlainRow plain(std::size_t row) const {
    PlainRow made;
    for (std::size_t layer = 0; layer < given.size(); ++layer) {
      const float* const from = given[layer].data() + row * stride(layer);
      made.given.emplace_back(from, from + sizes[layer]);
    }
    for (const Floats& vector : vectors) made.vectors.emplace_back(vector.begin(), vector.end());
    const auto take = [&](const auto& all, auto& to) {
      const std::size_t size = all.size() / count;
      to.assign(all.begin() + static_cast<std::ptrdiff_t>(row * size),
                all.begin() + static_cast<std::ptrdiff_t>((row + 1) * size));
    };
    take(action, made.action);
    take(choice, made.choice);
    const std::size_t entries = mask.size() / count;
    made.mask.assign(mask.data() + row * entries, mask.data() + (row + 1) * entries);
    return made;
  }
};

/// What a head says of a minibatch.
struct Answer {
  Floats log_prob, entropy;
  std::vector<Floats> given, vectors;

  std::vector<const Floats*> all() const {
    std::vector<const Floats*> found{&log_prob, &entropy};
    for (const auto* group : {&given, &vectors}) {
      for (const Floats& one : *group) found.push_back(&one);
    }
    return found;
  }
  bool operator==(const Answer& other) const {
    const auto ours = all(), theirs = other.all();
    return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                      [](const auto* one, const auto* another) { return same_bytes(*one, *another); });
  }
};

/// Ask for rows [first, first + count). The workspace has been used for something else before.
Answer ask(const Head& head, const Minibatch& batch, std::size_t first, std::size_t count, bool wants_vectors = true) {
  Workspace workspace;
  const Scratch scratch{workspace, 2};
  for (std::size_t slot = 0; slot < 8; ++slot) std::fill_n(scratch.floats(slot, 5000), 5000, kNan);
  std::vector<MatrixView> given;
  std::vector<const float*> vectors;
  std::vector<float*> by_given, by_vectors;
  Answer answer{Floats(count), Floats(count), {}, {}};
  for (std::size_t i = 0; i < batch.given.size(); ++i) {
    given.push_back({batch.given[i].data() + first * batch.stride(i), batch.stride(i)});
    answer.given.emplace_back(count * batch.stride(i), kUntouched);
  }
  for (const Floats& vector : batch.vectors) {
    vectors.push_back(vector.data());
    answer.vectors.emplace_back(wants_vectors ? count * vector.size() : 0, kUntouched);
  }
  for (Floats& gradient : answer.given) by_given.push_back(gradient.data());
  for (Floats& gradient : answer.vectors) by_vectors.push_back(wants_vectors ? gradient.data() : nullptr);
  const LearnedRows rows{count, given, vectors, scratch};
  const std::size_t size = head.action_size();
  const Done done{batch.action.empty() ? nullptr : batch.action.data() + first * size,
                  batch.choice.empty() ? nullptr : batch.choice.data() + first * size,
                  batch.mask.size() > 0 ? batch.mask.data() + first * (batch.mask.size() / batch.count) : nullptr};
  head.evaluate(rows, done, answer.log_prob.data(), answer.entropy.data());
  head.gradient(rows, done, batch.by_log_prob.data() + first, batch.by_entropy.data() + first, {by_given, by_vectors});
  return answer;
}

Answer ask(const Head& head, const Minibatch& batch) { return ask(head, batch, 0, batch.count); }

/// How `value` changes with `number`.
template <class Value>
double slope(double& number, const Value& value) {
  constexpr double kStep = 1e-5;
  const double before = number;
  number = before + kStep;
  const double above = value();
  number = before - kStep;
  const double below = value();
  number = before;
  return (above - below) / (2 * kStep);
}

void check_close(double ours, double exact, const std::string& where) {
  const bool is_close = std::abs(ours - exact) <= 4e-6 * std::max(1.0, std::abs(exact));
  if (!is_close) testing::fail(where.c_str(), 0, testing::show(ours) + " instead of " + testing::show(exact));
}

void check_row(const HeadCase& of, const Minibatch& batch, const Answer& answer, std::size_t row,
               const std::string& where) {
  PlainRow plain = batch.plain(row);
  const PlainValue value = of.formula(plain);
  check_close(answer.log_prob[row], value.log_prob, where + " log_prob");
  check_close(answer.entropy[row], value.entropy, where + " entropy");
  const auto total = [&] {
    const PlainValue now = of.formula(plain);
    return batch.by_log_prob[row] * now.log_prob + batch.by_entropy[row] * now.entropy;
  };
  for (std::size_t layer = 0; layer < plain.given.size(); ++layer) {
    const float* const ours = answer.given[layer].data() + row * batch.stride(layer);
    for (std::size_t j = 0; j < plain.given[layer].size(); ++j) {
      check_close(ours[j], slope(plain.given[layer][j], total), where + " gradient");
      if (!plain.allows(j)) CHECK_EQUAL(ours[j], 0.0f);
    }
    for (std::size_t j = batch.sizes[layer]; j < batch.stride(layer); ++j) CHECK_EQUAL(ours[j], kUntouched);
  }
  for (std::size_t i = 0; i < plain.vectors.size(); ++i) {
    const std::size_t size = plain.vectors[i].size();
    for (std::size_t j = 0; j < size; ++j) {
      check_close(answer.vectors[i][row * size + j], slope(plain.vectors[i][j], total), where + " vector gradient");
    }
  }
}

TEST(heads_learn_by_their_formulas) {
  for (const Kernels* set : available_kernels()) {
    for (const HeadCase& of : head_cases()) {
      const auto head = make_part<Head>(of.plan, *set);
      for (const std::size_t rows : {1, 7, 33}) {
        const Minibatch batch(of, *head, rows);
        const Answer answer = ask(*head, batch);
        const std::string where = std::string(set->name) + " " + of.name + (of.is_masked ? " masked " : " ") +
                                  std::to_string(of.size) + " elements, " + std::to_string(rows) + " rows:";
        for (std::size_t row = 0; row < rows; ++row) check_row(of, batch, answer, row, where);
      }
    }
  }
}

TEST(vectors_that_are_not_learned_get_no_gradient) {
  for (const bool by_state : {false, true}) {
    const HeadCase of = gaussian_case("gaussian", 3, by_state, 1e-3);
    const auto head = make_part<Head>(of.plan, kernels());
    const Minibatch batch(of, *head, 9);
    CHECK(ask(*head, batch, 0, 9, false).given == ask(*head, batch).given);
  }
}

TEST(rows_of_heads_that_learn_do_not_depend_on_their_neighbors) {
  for (const Kernels* set : available_kernels()) {
    for (const HeadCase& of : head_cases()) {
      const auto head = make_part<Head>(of.plan, *set);
      const Minibatch batch(of, *head, 40);
      const Answer all = ask(*head, batch), some = ask(*head, batch, 5, 11), one = ask(*head, batch, 39, 1);
      const auto same = [&](const Answer& some, std::size_t first) {
        const auto ours = some.all(), theirs = all.all();
        for (std::size_t i = 0; i < ours.size(); ++i) {
          const std::size_t size = theirs[i]->size() / batch.count;
          if (std::memcmp(ours[i]->data(), theirs[i]->data() + first * size, ours[i]->size() * sizeof(float)) != 0) {
            return false;
          }
        }
        return true;
      };
      CHECK(same(some, 5));
      CHECK(same(one, 39));
    }
  }
}

TEST(heads_learn_the_same_bits_with_avx2_and_avx512) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const HeadCase& of : head_cases()) {
      const auto head = make_part<Head>(of.plan, set);
      for (const std::size_t rows : {1, 8, 33, 64}) {
        const Answer answer = ask(*head, Minibatch(of, *head, rows));
        for (const Floats* floats : answer.all()) all.insert(all.end(), floats->begin(), floats->end());
      }
    }
    return all;
  });
}

TEST(a_nan_that_a_head_is_given_shows_in_its_row_alone) {
  for (const Kernels* set : available_kernels()) {
    for (const HeadCase& of : head_cases()) {
      if (of.is_masked) continue;  // a forbidden logit may be anything
      const auto head = make_part<Head>(of.plan, *set);
      const Minibatch sound(of, *head, 19);
      const Answer expected = ask(*head, sound);
      for (std::size_t layer = 0; layer < sound.given.size(); ++layer) {
        for (const std::size_t column : {std::size_t{0}, sound.sizes[layer] - 1}) {
          Minibatch batch(of, *head, 19);
          batch.given[layer][4 * batch.stride(layer) + column] = kNan;
          const Answer answer = ask(*head, batch);
          CHECK(std::isnan(answer.log_prob[4]));
          CHECK(std::isnan(answer.given[layer][4 * batch.stride(layer) + column]));
          for (std::size_t row = 0; row < 19; ++row) {
            if (row != 4) CHECK_EQUAL(answer.log_prob[row], expected.log_prob[row]);
          }
        }
      }
    }
  }
}

TEST(a_nan_in_actions_vectors_or_weights_of_rows_shows) {
  for (const Kernels* set : available_kernels()) {
    for (const HeadCase& of : head_cases()) {
      const auto head = make_part<Head>(of.plan, *set);
      const auto is_noticed = [&](const auto& spoil) {
        Minibatch batch(of, *head, 5);
        spoil(batch);
        const Answer answer = ask(*head, batch);
        const auto has_nan = [](const Floats& values) {
          return std::any_of(values.begin(), values.end(), [](float value) { return std::isnan(value); });
        };
        return std::any_of(answer.given.begin(), answer.given.end(), has_nan);
      };
      if (!of.is_masked) CHECK(is_noticed([](Minibatch& batch) { batch.by_log_prob[2] = kNan; }));
      if (of.choices.empty()) CHECK(is_noticed([](Minibatch& batch) { batch.action.back() = kNan; }));
      const Minibatch sound(of, *head, 5);
      for (std::size_t i = 0; i < sound.vectors.size(); ++i) {
        CHECK(is_noticed([&](Minibatch& batch) { batch.vectors[i].back() = kNan; }));
      }
    }
  }
}

/// The tensors of a head's layers of four features and of its vectors.
MadeUp tensors_of(const Head& head) {
  MadeUp made_up;
  for (const Learned& layer : head.layers()) made_up.add_linear(layer.name, layer.size, 4);
  for (const Learned& vector : head.vectors()) made_up.add(vector.name, {vector.size});
  return made_up;
}

TEST(what_was_just_sampled_has_the_same_log_prob_when_it_is_learned) {
  constexpr std::size_t kRows = 37;
  Floats features(kRows * 4);
  for (std::size_t i = 0; i < features.size(); ++i) features[i] = surefoot::made_up(i, 2.0, 0.4);
  const MatrixView in{features.data(), 4};
  for (const Kernels* set : available_kernels()) {
    for (const HeadCase& of : head_cases()) {
      const auto head = make_part<Head>(of.plan, *set);
      const Minibatch batch(of, *head, kRows);  // for its masks
      const MadeUp tensors = tensors_of(*head);
      const std::vector<NamedTensor> named = tensors.named();
      TensorReader reader(named);
      head->check(reader, 4);
      reader.throw_problems();
      head->pack(reader);
      Workspace workspace;
      Floats action(kRows * of.size), log_prob(kRows), learned(kRows), entropy(kRows);
      std::vector<std::int64_t> choice(kRows * of.size);
      head->sample({kRows, in, {workspace, 0}}, batch.mask.data(), {7, 3, 0, 0},
                   {action.data(), choice.data(), log_prob.data()});
      std::vector<MatrixView> given;
      std::vector<const float*> vectors;
      Workspace others;
      for (const Learned& layer : head->layers()) {
        Layer packed;
        packed.pack(*set, reader, layer.name);
        given.push_back(packed.run(*set, kRows, in, {others, 0}, 10 + given.size()));
      }
      for (const Learned& vector : head->vectors()) vectors.push_back(reader[vector.name].data);
      head->evaluate({kRows, given, vectors, {others, 0}}, {action.data(), choice.data(), batch.mask.data()},
                     learned.data(), entropy.data());
      const double tolerance = of.name == "laplace" ? 1e-5 : 0.0;  // which samples from its noise
      CHECK_NEAR(learned, log_prob, tolerance);
    }
  }
}

struct CriticCase {
  bool is_normalized;
  float clip;
};

constexpr float kNone = std::numeric_limits<float>::infinity();
constexpr CriticCase kCritics[] = {{false, kNone}, {false, 0.2f}, {true, kNone}, {true, 0.2f}, {true, 5.0f}};

struct CriticAnswer {
  Floats loss, gradient;
};

/// Predictions are two columns apart from row to row.
CriticAnswer ask(const CriticCase& of, const Kernels& set, const Floats& prediction, const Floats& returns,
                 const Floats& old_value, float shift, float scale) {
  const auto critic = make_part<Critic>(
      {"scalar", {{"layer", "value"}, {"returns", of.is_normalized ? std::string("returns") : std::string()}}}, set);
  const std::size_t count = returns.size();
  Floats spread(2 * count, kNan), gradient(2 * count, kUntouched);
  for (std::size_t i = 0; i < count; ++i) spread[2 * i] = prediction[i];
  std::vector<const float*> vectors;
  for (const Learned& vector : critic->vectors()) vectors.push_back(vector.name == "returns.shift" ? &shift : &scale);
  CHECK_EQUAL(vectors.size(), of.is_normalized ? 2 : 0);
  Workspace workspace;
  CriticAnswer answer{Floats(count), {}};
  const MatrixView given{spread.data(), 2};
  float* const by_given = gradient.data();
  std::vector<float*> by_vectors(vectors.size(), nullptr);
  critic->loss({count, {&given, 1}, vectors, {workspace, 0}}, {returns.data(), {old_value.data(), 1}, of.clip},
               answer.loss.data(), {{&by_given, 1}, by_vectors});
  for (std::size_t i = 0; i < count; ++i) {
    answer.gradient.push_back(gradient[2 * i]);
    CHECK_EQUAL(gradient[2 * i + 1], kUntouched);
  }
  return answer;
}

TEST(scalar_critics_learn_by_their_formula) {
  constexpr float kShift = 1.5f, kScale = 4.0f;
  for (const Kernels* set : available_kernels()) {
    for (const CriticCase& of : kCritics) {
      for (const std::size_t count : {1, 33}) {
        Floats prediction, returns, old_value;
        for (std::size_t i = 0; i < count; ++i) {
          prediction.push_back(made_up(i, 1.0, 0.3));
          returns.push_back(made_up(i, 3.0, 0.8));
          old_value.push_back(made_up(i, 2.0, 1.1));
        }
        const CriticAnswer answer = ask(of, *set, prediction, returns, old_value, kShift, kScale);
        for (std::size_t i = 0; i < count; ++i) {
          const double shift = of.is_normalized ? kShift : 0, scale = of.is_normalized ? kScale : 1;
          const double old = (old_value[i] - shift) / scale, target = (returns[i] - shift) / scale, clip = of.clip;
          double v = prediction[i];
          const auto loss = [&] {
            const double clipped = old + std::clamp(v - old, -clip, clip);
            return std::max(std::pow(v - target, 2), std::pow(clipped - target, 2));
          };
          check_close(answer.loss[i], loss(), "loss");
          check_close(answer.gradient[i], slope(v, loss), "gradient of the loss");
        }
      }
    }
  }
}

TEST(scalar_critics_have_the_slopes_of_torch_where_their_loss_bends) {
  // Old values of 0 and a clip of 0.5. Both errors equal, the clipped one without a slope: half of the other's. At the
  // bounds of the clip the slope passes. Beyond them with the larger error clipped: none.
  const Floats prediction{1, 0.5f, -0.5f, 1, 1}, returns{0.75f, 2, 2, 2, -1}, old_value(5, 0.0f);
  for (const Kernels* set : available_kernels()) {
    const CriticAnswer answer = ask({false, 0.5f}, *set, prediction, returns, old_value, 0, 1);
    CHECK_EQUAL(answer.gradient, (Floats{0.25f, -3, -5, 0, 4}));
    CHECK_EQUAL(answer.loss, (Floats{0.0625f, 2.25f, 6.25f, 2.25f, 4}));
  }
}

TEST(a_nan_that_a_critic_is_given_shows_in_its_row_alone) {
  for (const CriticCase& of : kCritics) {
    Floats prediction(4, 0.5f), returns(4, 1.0f), old_value(4, 0.25f);
    prediction[0] = returns[1] = kNan;
    if (of.clip != kNone) old_value[2] = kNan;
    const CriticAnswer answer = ask(of, kernels(), prediction, returns, old_value, 0, 1);
    for (std::size_t row = 0; row < 4; ++row) {
      const bool is_spoiled = row < 2 || (row == 2 && of.clip != kNone);
      CHECK_EQUAL(std::isnan(answer.loss[row]), is_spoiled);
      CHECK_EQUAL(std::isnan(answer.gradient[row]), is_spoiled);
    }
  }
}

/// The loss of one sample of a quantile critic, as policies/critics/quantile.py has it.
double quantile_loss(const Doubles& quantiles, const Doubles& old, double target, double kappa, double clip,
                     const std::string& mode) {
  const std::size_t count = quantiles.size();
  const auto mean_of = [&](const Doubles& of) { return std::accumulate(of.begin(), of.end(), 0.0) / count; };
  const auto spread_of = [&](const Doubles& of) {
    double sum = 0;
    for (const double one : of) sum += std::pow(one - mean_of(of), 2);
    return std::sqrt(sum / count + 1e-12);
  };
  const auto loss_of = [&](double quantile, std::size_t i) {
    const double error = target - quantile, tau = (i + 0.5) / count;
    const double huber = std::abs(error) <= kappa ? error * error / (2 * kappa) : std::abs(error) - kappa / 2;
    return std::abs(tau - (error < 0 ? 1 : 0)) * huber;
  };
  const double mean = mean_of(quantiles), old_mean = mean_of(old);
  const double moved = old_mean + std::clamp(mean - old_mean, -clip, clip);
  const double old_spread = spread_of(old), spread = spread_of(quantiles);
  const double ratio = mode == "mean" ? 1 : (old_spread + std::clamp(spread - old_spread, -clip, clip)) / spread;
  double each = 0, plain = 0, clipped = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double near = old[i] + std::clamp(quantiles[i] - old[i], -clip, clip);
    each += std::max(loss_of(quantiles[i], i), loss_of(near, i));
    plain += loss_of(quantiles[i], i);
    clipped += loss_of(moved + (quantiles[i] - mean) * ratio, i);
  }
  if (clip == std::numeric_limits<double>::infinity()) return plain / count;
  return (mode == "quantiles" ? each : std::max(plain, clipped)) / count;
}

TEST(quantile_critics_learn_by_their_formula) {
  constexpr std::size_t kCount = 5, kRows = 12, kStride = 8;
  for (const std::string mode : {"quantiles", "mean", "mean_and_spread"}) {
    for (const double kappa : {0.0, 0.6}) {
      for (const float clip : {kNone, 0.3f}) {
        const auto critic = make_part<Critic>({"quantile",
                                               {{"layer", "value"},
                                                {"returns", std::string()},
                                                {"num_quantiles", static_cast<double>(kCount)},
                                                {"kappa", kappa},
                                                {"clip", mode}}},
                                              kernels());
        Floats given(kRows * kStride, kNan), gradient(kRows * kStride, kUntouched), returns, old, loss(kRows);
        for (std::size_t row = 0; row < kRows; ++row) {
          returns.push_back(made_up(row, 2.0, 0.8));
          for (std::size_t i = 0; i < kCount; ++i) {
            given[row * kStride + i] = made_up(row * kCount + i, 1.5, 0.3);
            old.push_back(made_up(row * kCount + i, 1.0, 1.1));
          }
        }
        Workspace workspace;
        const MatrixView view{given.data(), kStride};
        float* const by_given = gradient.data();
        critic->loss({kRows, {&view, 1}, {}, {workspace, 0}}, {returns.data(), {old.data(), kCount}, clip}, loss.data(),
                     {{&by_given, 1}, {}});
        for (std::size_t row = 0; row < kRows; ++row) {
          Doubles quantiles(given.begin() + row * kStride, given.begin() + row * kStride + kCount);
          const Doubles before(old.begin() + row * kCount, old.begin() + (row + 1) * kCount);
          const auto wanted = [&] {
            return quantile_loss(quantiles, before, returns[row], kappa, static_cast<double>(clip), mode);
          };
          check_close(loss[row], wanted(), "loss");
          for (std::size_t i = 0; i < kCount; ++i) {
            check_close(gradient[row * kStride + i], slope(quantiles[i], wanted), "gradient of the loss");
          }
          CHECK_EQUAL(gradient[row * kStride + kCount], kUntouched);
        }
      }
    }
  }
}

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kElu:
      return x > 0 ? x : std::expm1(x);
    case Activation::kSilu:
      return x * sigmoid(x);
    case Activation::kLeakyRelu:
      return x > 0 ? x : 0.01 * x;
    case Activation::kGelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Activation::kIdentity:
      return x;
  }
  return x;
}

/// dL/dx of `x`, by what the activation's slope is told from.
Floats differentiated(const Kernels& set, Activation activation, const Floats& x, const Floats& gradient) {
  Floats shown = x, out(x.size());
  if (slope_shows(activation)) set.activate(activation, shown.data(), shown.size());
  set.differentiate(activation, shown.data(), gradient.data(), out.data(), out.size());
  return out;
}

Floats many_inputs(std::size_t count) {
  Floats x(count);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = static_cast<float>(24.0 * (static_cast<double>(i) + 0.37) / static_cast<double>(count) - 12.0);
  }
  return x;
}

TEST(activations_have_the_slopes_of_their_formulas) {
  for (const Kernels* set : available_kernels()) {
    for (const Activation activation : kActivations) {
      for (const std::size_t count : {1, 5, 16, 33, 1001}) {
        const Floats x = many_inputs(count);
        Floats gradient(count);
        for (std::size_t i = 0; i < count; ++i) gradient[i] = made_up(i, 1.0, 0.6);
        const Floats ours = differentiated(*set, activation, x, gradient);
        for (std::size_t i = 0; i < count; ++i) {
          double at = x[i];
          const double exact = gradient[i] * slope(at, [&] { return activated(activation, at); });
          check_close(ours[i], exact, std::string(set->name) + " activation");
        }
      }
      // The slopes of relu and leaky relu are steps, as in torch; a NaN shows in what they gave.
      const bool is_step = activation == Activation::kRelu || activation == Activation::kLeakyRelu;
      const Floats spoiled = differentiated(*set, activation, {1, kNan, 2}, {1, 1, kNan});
      CHECK(is_step || activation == Activation::kIdentity || std::isnan(spoiled[1]));
      CHECK(std::isnan(spoiled[2]));
    }
  }
}

TEST(slopes_of_activations_end_at_0_and_1_far_out) {
  for (const Kernels* set : available_kernels()) {
    for (const Activation activation : {Activation::kSilu, Activation::kGelu}) {
      const Floats ours = differentiated(*set, activation, {-1e30f, -200, 200, 1e30f}, {1, 1, 1, 1});
      CHECK_NEAR(ours, (Floats{0, 0, 1, 1}), 1e-6);
    }
  }
}

TEST(slopes_of_activations_are_the_same_bits_with_avx2_and_avx512) {
  const Floats x = many_inputs(1001), gradient(1001, 0.7f);
  check_same_bits([&](const Kernels& set) {
    Floats all;
    for (const Activation activation : kActivations) {
      const Floats slopes = differentiated(set, activation, x, gradient);
      all.insert(all.end(), slopes.begin(), slopes.end());
    }
    return all;
  });
}

}  // namespace
}  // namespace surefoot
