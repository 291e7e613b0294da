#include "client/cpp/src/results.h"

#include <iterator>
#include <vector>

#include "client/cpp/src/convert.h"
#include "client/cpp/src/errors.h"

namespace tensord::internal {

RemoteTensor Results::One(const std::shared_ptr<Connection>& connection,
                          const v1::Result& result,
                          const RemoteTensor* output) {
  return RemoteTensor(connection, FromProto(result.tensor()),
                      /*owns=*/output == nullptr, FromProto(result.report()));
}

absl::StatusOr<std::vector<RemoteTensor>> Results::All(
    const std::shared_ptr<Connection>& connection, const v1::Result& result,
    const std::vector<const RemoteTensor*>& outputs) {
  if (result.others_size() + 1 != std::ssize(outputs)) {
    return Error(absl::StatusCode::kInternal, "RESPONSE_MALFORMED",
                 "the response to a factorization has not as many results as "
                 "were asked for");
  }
  std::vector<RemoteTensor> all;
  for (int i = 0; i < std::ssize(outputs); ++i) {
    const v1::Result& one = i == 0 ? result : result.others(i - 1);
    all.push_back(
        RemoteTensor(connection, FromProto(one.tensor()),
                     /*owns=*/outputs[static_cast<size_t>(i)] == nullptr,
                     FromProto(result.report())));
  }
  return all;
}

}  // namespace tensord::internal
