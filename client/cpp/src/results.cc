#include "client/cpp/src/results.h"

#include "client/cpp/src/convert.h"
#include "client/cpp/src/errors.h"

namespace tensord::internal {

RemoteTensor Results::One(const std::shared_ptr<Connection>& connection,
                          const v1::Result& result,
                          const RemoteTensor* output) {
  return RemoteTensor(connection, FromProto(result.tensor()),
                      /*owns=*/output == nullptr, FromProto(result.report()));
}

absl::StatusOr<Factors> Results::Two(
    const std::shared_ptr<Connection>& connection, const v1::Result& result,
    const RemoteTensor* q, const RemoteTensor* r) {
  if (result.others_size() != 1) {
    return Error(absl::StatusCode::kInternal, "RESPONSE_MALFORMED",
                 "the response to a factorization has not two results");
  }
  return Factors{
      One(connection, result, q),
      RemoteTensor(connection, FromProto(result.others(0).tensor()),
                   /*owns=*/r == nullptr, FromProto(result.report()))};
}

}  // namespace tensord::internal
