// Several independent choices at once.
#include "choices.hpp"

namespace surefoot {
namespace {

const RegisteredPart<Head, CategoricalHead> kMultiDiscrete{"multi_discrete"};

}  // namespace
}  // namespace surefoot
