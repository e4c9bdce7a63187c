#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "check.hpp"
#include "surefoot/statistics.hpp"

namespace surefoot {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(standardize_by_hand_over_the_valid_numbers) {
  const std::array<float, 5> numbers{1, 3, kNaN, 5, 7};
  std::array<bool, 5> valid{true, true, false, true, false};
  std::array<float, 5> out{};
  standardize(5, numbers.data(), valid.data(), out.data());  // mean 3, standard deviation 2
  CHECK_NEAR(std::vector<float>({out[0], out[1], out[3], out[4]}), std::vector<float>({-1, 0, 1, 2}), 1e-6);
  CHECK(std::isnan(out[2]));
  valid[2] = true;
  standardize(5, numbers.data(), valid.data(), out.data());
  for (const float one : out) CHECK(std::isnan(one));
}

TEST(fewer_than_two_numbers_are_left_as_they_are) {
  const std::array<float, 3> numbers{4, 5, 6};
  const std::array<bool, 3> valid{false, true, false};
  std::array<float, 3> out{};
  standardize(3, numbers.data(), valid.data(), out.data());
  CHECK_EQUAL(out, numbers);
}

TEST(standardize_equal_numbers_to_zeros) {
  const std::vector<float> numbers(1000, 0.1f);
  const std::array<bool, 1000> valid = [] {
    std::array<bool, 1000> all{};
    all.fill(true);
    return all;
  }();
  std::vector<float> out(1000, 1);
  standardize(1000, numbers.data(), valid.data(), out.data());
  CHECK_EQUAL(out, std::vector<float>(1000, 0));
}

TEST(fit_of_values_by_hand) {
  const std::array<float, 4> returns{1, 3, 5, 7}, values{2, 2, 6, 6};  // errors -1, 1, -1, 1
  const Fit fit = fit_of(4, values.data(), returns.data());
  CHECK_NEAR(fit.explained_variance, 1 - 1.0 / 5, 1e-12);
  CHECK_NEAR(fit.error, 1 / std::sqrt(21.0), 1e-12);
  CHECK_EQUAL(fit_of(4, returns.data(), returns.data()).explained_variance, 1.0);
}

TEST(constant_returns_have_no_variance_to_explain) {
  const std::vector<float> returns(100, 0.1f), values(100, 0.2f);
  const Fit fit = fit_of(100, values.data(), returns.data());
  CHECK(std::isnan(fit.explained_variance));
  CHECK_NEAR(fit.error, 0, 1e-12);
}

}  // namespace
}  // namespace surefoot
